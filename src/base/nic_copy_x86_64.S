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

    .globl nic_text_begin
    .hidden nic_text_begin
nic_text_begin:

/* int nic_copy_raw(void *dst, const void *src, size_t n, size_t rep_min, size_t wide_min)
 * Up to 128 bytes: all of them are loaded, from both ends towards the middle,
 * before any is stored. From wide_min (160 or more) on 32 bytes at a time, from rep_min on the
 * processor's string copy. A fault in the wide loop leaves the upper halves of the
 * registers in use, which costs time, not correctness. */
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
    /* The first 16 bytes, then 64 a turn to aligned destinations, then the last 64. */
    movups (%rsi), %xmm0
    movups %xmm0, (%rdi)
    movq %rdi, %rax
    negq %rax
    andl $15, %eax
    addq %rax, %rsi
    addq %rax, %rdi
    subq %rax, %rdx
    .p2align 4
.Lturn:
    movups (%rsi), %xmm0
    movups 16(%rsi), %xmm1
    movups 32(%rsi), %xmm2
    movups 48(%rsi), %xmm3
    movaps %xmm0, (%rdi)
    movaps %xmm1, 16(%rdi)
    movaps %xmm2, 32(%rdi)
    movaps %xmm3, 48(%rdi)
    addq $64, %rsi
    addq $64, %rdi
    subq $64, %rdx
    cmpq $64, %rdx
    ja .Lturn
    movups -64(%rsi,%rdx), %xmm0
    movups -48(%rsi,%rdx), %xmm1
    movups -32(%rsi,%rdx), %xmm2
    movups -16(%rsi,%rdx), %xmm3
    movups %xmm0, -64(%rdi,%rdx)
    movups %xmm1, -48(%rdi,%rdx)
    movups %xmm2, -32(%rdi,%rdx)
    movups %xmm3, -16(%rdi,%rdx)
    xorl %eax, %eax
    ret
.Lwide:
    /* The first 32 bytes, then 128 a turn to aligned destinations, then the last 128. */
    vmovups (%rsi), %ymm0
    vmovups %ymm0, (%rdi)
    movq %rdi, %rax
    negq %rax
    andl $31, %eax
    addq %rax, %rsi
    addq %rax, %rdi
    subq %rax, %rdx
    .p2align 4
.Lwide_turn:
    vmovups (%rsi), %ymm0
    vmovups 32(%rsi), %ymm1
    vmovups 64(%rsi), %ymm2
    vmovups 96(%rsi), %ymm3
    vmovaps %ymm0, (%rdi)
    vmovaps %ymm1, 32(%rdi)
    vmovaps %ymm2, 64(%rdi)
    vmovaps %ymm3, 96(%rdi)
    addq $128, %rsi
    addq $128, %rdi
    subq $128, %rdx
    cmpq $128, %rdx
    ja .Lwide_turn
    vmovups -128(%rsi,%rdx), %ymm0
    vmovups -96(%rsi,%rdx), %ymm1
    vmovups -64(%rsi,%rdx), %ymm2
    vmovups -32(%rsi,%rdx), %ymm3
    vmovups %ymm0, -128(%rdi,%rdx)
    vmovups %ymm1, -96(%rdi,%rdx)
    vmovups %ymm2, -64(%rdi,%rdx)
    vmovups %ymm3, -32(%rdi,%rdx)
    vzeroupper
    xorl %eax, %eax
    ret
.Lstring:
    movq %rdx, %rcx
    rep movsb
    xorl %eax, %eax
    ret
END nic_copy_raw

/* int nic_cas64_raw(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped) */
FUNCTION nic_cas64_raw
    movq (%rsi), %rax
    lock cmpxchgq %rdx, (%rdi)
    sete (%rcx)
    movq %rax, (%rsi)
    xorl %eax, %eax
    ret
END nic_cas64_raw

/* int nic_fetch_add_N(void *p, uint64_t inc, uint64_t *before) */
FUNCTION nic_fetch_add_1
    lock xaddb %sil, (%rdi)
    movzbl %sil, %esi
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_fetch_add_1

FUNCTION nic_fetch_add_2
    lock xaddw %si, (%rdi)
    movzwl %si, %esi
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_fetch_add_2

FUNCTION nic_fetch_add_4
    lock xaddl %esi, (%rdi)
    movl %esi, %esi
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_fetch_add_4

FUNCTION nic_fetch_add_8
    lock xaddq %rsi, (%rdi)
    movq %rsi, (%rdx)
    xorl %eax, %eax
    ret
END nic_fetch_add_8

    .globl nic_text_end
    .hidden nic_text_end
nic_text_end:

FUNCTION nic_text_fault
    movl MINUS_EFAULT, %eax
    ret
END nic_text_fault

    .section .note.GNU-stack, "", @progbits
