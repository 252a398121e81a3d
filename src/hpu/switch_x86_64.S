/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch between two stacks: what the ABI wants kept across a call is pushed
 * here and popped there.
 *
 *      void hpu_switch_in(void **save, void *to)       thread ──► context
 *      void hpu_switch_out(void **save, void *to)      context ──► thread
 *
 *      stack  | mxcsr 4, x87 control 2, - 2 | r15 r14 r13 r12 rbx rbp | return address |
 *             ^ *save
 *
 * They are the same code; two copies, and a jump in place of a return, let the
 * processor predict each direction. The control words are loaded only where they
 * differ, as loading them is slow; the flags in mxcsr (its low six bits) belong to
 * nobody.
 */
    .text

    .macro SWITCH name
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
#ifdef __CET__
    endbr64
#endif
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movl (%rsp), %eax
    movzwl 4(%rsp), %ecx
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    xorl (%rsp), %eax
    testl $0xffc0, %eax
    jz 1f
    ldmxcsr (%rsp)
1:  cmpw 4(%rsp), %cx
    je 2f
    fldcw 4(%rsp)
2:  addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r15
    .cfi_adjust_cfa_offset -8
    popq %r14
    .cfi_adjust_cfa_offset -8
    popq %r13
    .cfi_adjust_cfa_offset -8
    popq %r12
    .cfi_adjust_cfa_offset -8
    popq %rbx
    .cfi_adjust_cfa_offset -8
    popq %rbp
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    jmp *%rcx
    .cfi_endproc
    .size \name, . - \name
    .endm

    SWITCH hpu_switch_in
    SWITCH hpu_switch_out

/* Where a fresh context begins: r12 holds it. The end of every back trace. */
    .globl hpu_switch_begin
    .hidden hpu_switch_begin
    .type hpu_switch_begin, @function
    .p2align 4
hpu_switch_begin:
    .cfi_startproc
    .cfi_undefined %rip
#ifdef __CET__
    endbr64
#endif
    xorl %ebp, %ebp
    movq %r12, %rdi
    call hpu_ctx_main
    ud2
    .cfi_endproc
    .size hpu_switch_begin, . - hpu_switch_begin

    .section .note.GNU-stack, "", @progbits
