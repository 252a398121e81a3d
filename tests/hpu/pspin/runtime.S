/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hpu_run(cluster, hpu): serves one task, as the run time of PsPIN does in a loop:
 *
 *   read the function, which waits for a task; nop; call it; nop; read the doorbell
 *
 * A handler's cycles are those between the two nops. All measured handlers take one cycle
 * more than their instructions account for; so the second nop stands where a return to it
 * costs that cycle: it has four bytes and begins in the last two of a fetch line.
 */
    .text
    .balign 16
    .globl hpu_run
    .type hpu_run, @function
hpu_run:
    .option push
    .option norvc
    addi sp, sp, -32
    sw ra, 28(sp)
    sw s1, 24(sp)
    /* handler_args_t at sp */
    lui s1, 0x1b205
    addi t0, s1, 8
    sw t0, 0(sp)
    slli t0, a0, 3
    add t0, t0, a1
    sw t0, 4(sp)
    sw a0, 8(sp)
    sw a1, 12(sp)
    .option rvc
    c.nop
    .option norvc
    lw a5, 0(s1)
    nop
    mv a0, sp
    jalr a5
.Lreturn:
    .if (.Lreturn - hpu_run) % 16 != 14
    .error "the call returns to where it costs no cycle"
    .endif
    nop
    lw zero, 0x50(s1)
    lw ra, 28(sp)
    lw s1, 24(sp)
    addi sp, sp, 32
    ret
    .option pop
    .size hpu_run, . - hpu_run
