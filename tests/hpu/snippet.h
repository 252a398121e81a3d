/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few instructions, given as words, with 256 bytes of memory and 256 of stack:
 *
 *   0001c000  code      00020000  memory, L1      00030000  stack, L1
 */
#ifndef TESTS_HPU_SNIPPET_H
#define TESTS_HPU_SNIPPET_H

#include "hpu/rv32/core.h"

enum { SNIPPET_CODE = 0x1c000, SNIPPET_MEMORY = 0x20000, SNIPPET_STACK = 0x30000 };
enum { SNIPPET_BYTES = 256, SNIPPET_WORDS = 32 };

struct snippet {
    uint32_t words[SNIPPET_WORDS]; /* 16-bit instructions two in a word, the first one low */
    struct rv32_image image;
    struct rv32_program program;
    struct rv32_core core;
    uint32_t memory[SNIPPET_BYTES / 4], stack[SNIPPET_BYTES / 4];
};

/* snippet_make() makes words ready to run; memory is kept. */
static inline void snippet_make(struct snippet *s, const uint32_t *words, uint32_t count)
{
    struct rv32_error error;
    for (uint32_t i = 0; i < count; i++) {
        s->words[i] = words[i];
    }
    s->image = (struct rv32_image){.name = (char *)"snippet"};
    s->image.code = (struct rv32_segment){SNIPPET_CODE, 4 * count, false, (uint8_t *)s->words};
    assert_int_equal(rv32_program_make(&s->program, &s->image, &rv32_timings[0], RV32_WARM, &error),
                     0);
    rv32_core_init(&s->core, &s->program);
    assert_int_equal(rv32_core_map_image(&s->core, &s->image, &error), 0);
    assert_int_equal(rv32_core_map(&s->core, "memory", SNIPPET_MEMORY, SNIPPET_BYTES, s->memory,
                                   RV32_READ | RV32_WRITE, RV32_AREA_L1, &error),
                     0);
    assert_int_equal(rv32_core_map(&s->core, "stack", SNIPPET_STACK, SNIPPET_BYTES, s->stack,
                                   RV32_READ | RV32_WRITE, RV32_AREA_L1, &error),
                     0);
}

/* snippet_run() calls its first instruction with a0, a1, a2. */
static inline const struct rv32_result *snippet_run(struct snippet *s, uint32_t a0, uint32_t a1,
                                                    uint32_t a2)
{
    struct rv32_call call = {.pc = SNIPPET_CODE,
                             .arguments = {a0, a1, a2},
                             .stack = SNIPPET_STACK + SNIPPET_BYTES,
                             .budget = 1000};
    const struct rv32_result *r = rv32_core_call(&s->core, &call);
    return r;
}

static inline void snippet_free(struct snippet *s)
{
    rv32_program_free(&s->program);
}

#endif
