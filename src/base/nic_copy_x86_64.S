/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instructions behind nic_copy.h. A fault at any of them is resumed at
 * nic_text_fault, which returns -EFAULT to the caller: hence no function here
 * pushes anything or calls another.
 */

#define MINUS_EFAULT $-14

    .section .text.nic_copy, "ax", @progbits

    .macro FUNCTION name
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 5
\name:
    .cfi_startproc
#ifdef __CET__
    endbr64
#endif
    .endm

    .macro END name
    .cfi_endproc
    .size \name, . - \name
    .endm

/* Copies more than 128 bytes: first `width` bytes from an unaligned address; then 4 * width bytes a
 * turn, to aligned destinations; then the last 4 * width bytes. */
    .macro TURNS width, unaligned, aligned, reg
    \unaligned (%rsi), \reg\()0
    \unaligned \reg\()0, (%rdi)
    movq %rdi, %rax
    negq %rax
    andl $(\width - 1), %eax
    addq %rax, %rsi
    addq %rax, %rdi
    subq %rax, %rdx
    .p2align 4
1:
    \unaligned (%rsi), \reg\()0
    \unaligned \width(%rsi), \reg\()1
    \unaligned (2 * \width)(%rsi), \reg\()2
    \unaligned (3 * \width)(%rsi), \reg\()3
    \aligned \reg\()0, (%rdi)
    \aligned \reg\()1, \width(%rdi)
    \aligned \reg\()2, (2 * \width)(%rdi)
    \aligned \reg\()3, (3 * \width)(%rdi)
    addq $(4 * \width), %rsi
    addq $(4 * \width), %rdi
    subq $(4 * \width), %rdx
    cmpq $(4 * \width), %rdx
    ja 1b
    \unaligned (-4 * \width)(%rsi,%rdx), \reg\()0
    \unaligned (-3 * \width)(%rsi,%rdx), \reg\()1
    \unaligned (-2 * \width)(%rsi,%rdx), \reg\()2
    \unaligned (-\width)(%rsi,%rdx), \reg\()3
    \unaligned \reg\()0, (-4 * \width)(%rdi,%rdx)
    \unaligned \reg\()1, (-3 * \width)(%rdi,%rdx)
    \unaligned \reg\()2, (-2 * \width)(%rdi,%rdx)
    \unaligned \reg\()3, (-\width)(%rdi,%rdx)
    .endm

    .globl nic_text_begin
    .hidden nic_text_begin
nic_text_begin:

/* int nic_copy_raw(void *dst, const void *src, size_t n, size_t rep_min, size_t wide_min)
 * Up to 128 bytes (NIC_COPY_OVERLAP) it loads all bytes, from both ends towards the middle, before
 * it stores any. From wide_min (160 or more) on it copies 32 bytes at a time, from rep_min on it
 * uses the processor's string copy. After a fault in the wide loop the upper halves of the registers
 * stay in use, which costs time, but changes no result. */
FUNCTION nic_copy_raw
    cmpq $16, %rdx
    ja .Lmore16
    cmpl $8, %edx
    jae .Lupto16
    cmpl $4, %edx
    jae .Lupto7
    cmpl $1, %edx
    ja .Lupto3
    jb .Ldone
    movzbl (%rsi), %eax
    movb %al, (%rdi)
.Ldone:
    xorl %eax, %eax
    ret
.Lupto3:
    movzwl (%rsi), %eax
    movzwl -2(%rsi,%rdx), %ecx
    movw %ax, (%rdi)
    movw %cx, -2(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lupto7:
    movl (%rsi), %eax
    movl -4(%rsi,%rdx), %ecx
    movl %eax, (%rdi)
    movl %ecx, -4(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lupto16:
    movq (%rsi), %rax
    movq -8(%rsi,%rdx), %rcx
    movq %rax, (%rdi)
    movq %rcx, -8(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lmore16:
    cmpq $32, %rdx
    ja .Lmore32
    movups (%rsi), %xmm0
    movups -16(%rsi,%rdx), %xmm1
    movups %xmm0, (%rdi)
    movups %xmm1, -16(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lmore32:
    cmpq $128, %rdx
    ja .Lmore128
    movups (%rsi), %xmm0
    movups 16(%rsi), %xmm1
    movups -32(%rsi,%rdx), %xmm2
    movups -16(%rsi,%rdx), %xmm3
    cmpl $64, %edx
    jbe .Lends
    movups 32(%rsi), %xmm4
    movups 48(%rsi), %xmm5
    movups -64(%rsi,%rdx), %xmm6
    movups -48(%rsi,%rdx), %xmm7
    movups %xmm4, 32(%rdi)
    movups %xmm5, 48(%rdi)
    movups %xmm6, -64(%rdi,%rdx)
    movups %xmm7, -48(%rdi,%rdx)
.Lends:
    movups %xmm0, (%rdi)
    movups %xmm1, 16(%rdi)
    movups %xmm2, -32(%rdi,%rdx)
    movups %xmm3, -16(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lmore128:
    cmpq %rcx, %rdx
    jae .Lstring
    cmpq %r8, %rdx
    jae .Lwide
    TURNS 16, movups, movaps, %xmm
    xorl %eax, %eax
    ret
.Lwide:
    TURNS 32, vmovups, vmovaps, %ymm
    vzeroupper
    xorl %eax, %eax
    ret
.Lstring:
    movq %rdx, %rcx
    rep movsb
    xorl %eax, %eax
    ret
END nic_copy_raw

/* Executes the instruction at (%rdi) on as many bytes of %rsi as %rcx says; one of the registers b,
 * w, l is its operand. The result in that is then widened to 64 bits with zeros. */
    .macro BY_SIZE instruction, b, w, l
    cmpl $4, %ecx
    ja 8f
    je 4f
    cmpl $2, %ecx
    je 2f
    \instruction\()b %sil, (%rdi)
    movzbl \b, \l
    jmp 9f
2:
    \instruction\()w %si, (%rdi)
    movzwl \w, \l
    jmp 9f
4:
    \instruction\()l %esi, (%rdi)
    movl \l, \l
    jmp 9f
8:
    \instruction\()q %rsi, (%rdi)
9:
    .endm

/* int nic_..._raw(void *p, uint64_t value, uint64_t *word, size_t size) */
FUNCTION nic_add_raw
    BY_SIZE "lock xadd", %sil, %si, %esi
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_add_raw

FUNCTION nic_swap_raw
    BY_SIZE xchg, %sil, %si, %esi
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_swap_raw

FUNCTION nic_cas_raw
    movq (%rdx), %rax
    BY_SIZE "lock cmpxchg", %al, %ax, %eax
    movq %rax, (%rdx)
    xorl %eax, %eax
    ret
END nic_cas_raw

/* These instructions do not return the old value: *word is left alone. */
FUNCTION nic_or_raw
    BY_SIZE "lock or", %sil, %si, %esi
    xorl %eax, %eax
    ret
END nic_or_raw

FUNCTION nic_and_raw
    BY_SIZE "lock and", %sil, %si, %esi
    xorl %eax, %eax
    ret
END nic_and_raw

FUNCTION nic_xor_raw
    BY_SIZE "lock xor", %sil, %si, %esi
    xorl %eax, %eax
    ret
END nic_xor_raw

    .globl nic_text_end
    .hidden nic_text_end
nic_text_end:

FUNCTION nic_text_fault
    movl MINUS_EFAULT, %eax
    ret
END nic_text_fault

    .section .note.GNU-stack, "", @progbits
