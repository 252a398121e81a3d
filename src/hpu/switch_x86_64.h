/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch between two stacks, and the floating-point modes that go with a stack.
 *
 *      switch_stacks(&mine, &other)    returns when the other side switches back to `mine`
 *
 * It is inlined, and switches by a jump. The processor predicts returns by a stack of calls: a
 * function that was called on one stack and returned on the other would make it mispredict every
 * return from there on.
 *
 * The thread that starts or resumes a stack reads its own modes (modes_save()), and loads those of
 * the stack only if they differ (modes_change()). On the way back they are loaded without a read
 * (modes_load()): to read mxcsr costs many times what it costs to load it.
 */
#ifndef HPU_SWITCH_X86_64_H
#define HPU_SWITCH_X86_64_H

#include <stddef.h>
#include <stdint.h>

/* The control words of both floating-point units. The flags in mxcsr, its low six bits, are not
 * kept for either side. */
struct switch_modes {
    uint32_t mxcsr;
    uint16_t x87;
};

#define MXCSR_FLAGS 0x3fu

/* The values that the ABI has for the start of a process. */
static const struct switch_modes switch_modes_default = {.mxcsr = 0x1f80, .x87 = 0x37f};

/* A stack that is switched out. */
struct switch_point {
    void *sp;
    void (*ip)(void);
    void *bp;
};

_Static_assert(offsetof(struct switch_point, ip) == 8 && offsetof(struct switch_point, bp) == 16,
               "switch_stacks() knows the offsets");

/* Where a new stack begins (switch_x86_64.S): calls hpu_ctx_main() with the switch_point that was
 * switched to. Its sp is a multiple of 16. */
void hpu_switch_begin(void);

static inline void modes_save(struct switch_modes *mine)
{
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mine->mxcsr), "=m"(mine->x87));
}

static inline void modes_load(const struct switch_modes *modes)
{
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(modes->mxcsr), "m"(modes->x87));
}

static inline void modes_change(const struct switch_modes *from, const struct switch_modes *to)
{
    if (((from->mxcsr ^ to->mxcsr) & ~MXCSR_FLAGS) != 0 || from->x87 != to->x87) {
        modes_load(to);
    }
}

#ifdef __CET__
#define SWITCH_LANDING "endbr64\n\t"
#else
#define SWITCH_LANDING
#endif

#ifdef __AVX512F__
#define SWITCH_AVX512                                                                              \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",    \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",  \
        "k7"
#else
#define SWITCH_AVX512
#endif

/* Switches stacks. It pushes nothing, so the red zone below the stack pointer of a leaf function
 * survives. */
static inline __attribute__((always_inline)) void switch_stacks(struct switch_point *mine,
                                                                const struct switch_point *other)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, (%0)\n\t"
                     "movq %%rax, 8(%0)\n\t"
                     "movq %%rbp, 16(%0)\n\t"
                     "movq (%1), %%rsp\n\t"
                     "movq 16(%1), %%rbp\n\t"
                     "jmpq *8(%1)\n"
                     "1:\n\t" SWITCH_LANDING
                     : "+D"(mine), "+S"(other)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",
                       "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc",
                       "memory" SWITCH_AVX512);
}

#endif
