/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a new stack begins. The switch itself is in switch_x86_64.h; it leaves in rsi the address
 * of the switch_point that it went to. Every backtrace ends at this function. */
    .text
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
    movq %rsi, %rdi
    call hpu_ctx_main
    ud2
    .cfi_endproc
    .size hpu_switch_begin, . - hpu_switch_begin

    .section .note.GNU-stack, "", @progbits
