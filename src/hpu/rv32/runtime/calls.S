/* SPDX-License-Identifier: BSD-3-Clause */
/* The stubs of the handler calls (calls.h), each in a section of its own. */
#include "calls.h"

        .macro stub number, name
        .section .text.\name, "ax", @progbits
        .balign 2
        .globl \name
        .type \name, @function
\name:
        li t0, \number
        ecall
        ret
        .size \name, . - \name
        .endm

#define RV32_CALL(number, name, ...) stub number, name ;
RV32_CALLS

/* Reads the cycle counter of the core, again if its upper half has changed meanwhile. */
        .section .text.PtlHandlerCycles, "ax", @progbits
        .balign 2
        .globl PtlHandlerCycles
        .type PtlHandlerCycles, @function
PtlHandlerCycles:
        rdcycleh a1
        rdcycle a0
        rdcycleh t0
        bne t0, a1, PtlHandlerCycles
        ret
        .size PtlHandlerCycles, . - PtlHandlerCycles

/* Stands in virtual function tables for a pure function: ends the handler with SEGV. */
        .section .text.__cxa_pure_virtual, "ax", @progbits
        .balign 2
        .globl __cxa_pure_virtual
        .type __cxa_pure_virtual, @function
__cxa_pure_virtual:
        unimp
        .size __cxa_pure_virtual, . - __cxa_pure_virtual
