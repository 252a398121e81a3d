/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fetching costs: jumps to instructions that end in another line than they begin in, and
 * to those before such ones. Programs have a jump at their beginning, to a few instructions at
 * any place of a line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "snippet.h"

/* Two and four bytes long; what they are charged with when nothing is late. */
enum {
    NOP2 = 0x0001,
    RET2 = 0x8082,
    NOP4 = 0x00000013,
    RET4 = 0x00008067,
    LOAD = 0x0005a503,       /* lw a0,0(a1) */
    USE = 0x00150513,        /* addi a0,a0,1 */
    MULH = 0x02b51533,       /* mulh a0,a0,a1 */
    SKIP = 0x0080006f,       /* j .+8 */
    TAKEN = 0x00000463,      /* beq zero,zero,.+8 */
    STAYS = 0x00001463,      /* bne zero,zero,.+8 */
    JUMP_TO_16 = 0x0100006f, /* j .+16; a multiple of 2 more in bits 21 to 24 */
};

static struct snippet s;

struct fetch_row {
    uint32_t at; /* in the second line: where the jump leads */
    uint32_t code[3];
    unsigned cycles; /* of these instructions, the jump's 2 not counted */
    unsigned late;
};

static uint32_t length_of(uint32_t code)
{
    return (code & 3) == 3 ? 4 : 2;
}

static void make(const struct fetch_row *row)
{
    uint8_t bytes[sizeof(s.words)];
    uint32_t at = 16 + row->at;
    for (size_t i = 0; i < sizeof(bytes); i += 2) {
        memcpy(bytes + i, &(uint16_t){RET2}, 2);
    }
    memcpy(bytes, &(uint32_t){JUMP_TO_16 | row->at << 20}, 4);
    for (int i = 0; i < 3 && row->code[i] != 0; i++) {
        memcpy(bytes + at, &row->code[i], length_of(row->code[i]));
        at += length_of(row->code[i]);
    }
    uint32_t words[SNIPPET_WORDS];
    memcpy(words, bytes, sizeof(words));
    snippet_make(&s, words, SNIPPET_WORDS);
}

static void test_after_jumps(void **state)
{
    static const struct fetch_row rows[] = {
        /* The instruction jumped to lies in two lines. */
        {14, {NOP4, RET2}, 3, 1},
        {14, {NOP2, RET2}, 3, 0},
        /* The one behind it does, and the fetch buffer, just filled, did not ask in time. */
        {10, {NOP4, NOP4, RET2}, 4, 1},
        {10, {NOP4, RET4}, 3, 1},
        {10, {STAYS, NOP4, RET2}, 4, 1},
        {10, {LOAD, NOP4, RET2}, 4, 1},
        /* Neighbours: no instruction in two lines, or foreseen in the line's last word. */
        {10, {NOP4, NOP2, RET2}, 4, 0},
        {10, {NOP2, NOP4, RET2}, 4, 0},
        {10, {NOP4, RET2}, 3, 0},
        {8, {NOP4, NOP4, RET2}, 4, 0},
        {8, {NOP4, NOP2, NOP4}, 5, 0}, /* and a RET2 */
        {12, {NOP2, NOP4, RET2}, 4, 0},
        {12, {NOP4, NOP4, RET2}, 4, 0},
        /* The one at 10 was not jumped to. */
        {6, {NOP4, NOP4, RET4}, 4, 0},
        {8, {NOP2, NOP4, RET4}, 4, 0},
        /* What takes longer hides it: a load that is used next, a product, memory elsewhere. */
        {10, {LOAD, USE, RET2}, 5, 0},
        {10, {MULH, NOP4, RET2}, 8, 0},
        /* What leads elsewhere does not come to the next one. */
        {10, {SKIP, NOP4, RET2}, 4, 0},
        {10, {TAKEN, NOP4, RET2}, 5, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make(&rows[i]);
        const struct rv32_result *r = snippet_run(&s, 0, SNIPPET_MEMORY, 0);
        assert_int_equal(r->end, RV32_RETURNED);
        if (r->cycles != 2 + rows[i].cycles + rows[i].late) {
            print_message("row %zu: %llu cycles\n", i, (unsigned long long)r->cycles);
        }
        assert_int_equal(r->cycles, 2 + rows[i].cycles + rows[i].late);
        snippet_free(&s);
    }
    /* Memory elsewhere: the code, read as data. */
    make(&(struct fetch_row){10, {LOAD, NOP4, RET2}, 0, 0});
    assert_int_equal(snippet_run(&s, 0, SNIPPET_CODE, 0)->cycles, 2 + 21 + 1 + 2);
    snippet_free(&s);
}

/* A call is a jump, too; what a watch counts is what a run counts. */
static enum rv32_turn watch(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    uint64_t *seen = context;
    (void)core;
    seen[(pc - SNIPPET_CODE) / 2] = cycles;
    return RV32_GO_ON;
}

static void test_watched(void **state)
{
    uint64_t seen[SNIPPET_WORDS * 2] = {0};
    make(&(struct fetch_row){10, {STAYS, NOP4, RET2}, 0, 0});
    struct rv32_call call = {.pc = SNIPPET_CODE, .budget = 1000};
    assert_int_equal(rv32_core_trace(&s.core, &call, watch, seen)->cycles, 2 + 4 + 1);
    assert_int_equal(seen[(16 + 10) / 2], 2);
    assert_int_equal(seen[(16 + 14) / 2], 2 + 1 + 1);
    assert_int_equal(seen[(16 + 18) / 2], 2 + 1 + 1 + 1);
    assert_int_equal(s.core.result.instructions, 4);
    call.pc = SNIPPET_CODE + 26;
    assert_int_equal(rv32_core_call(&s.core, &call)->cycles, 4 + 1);
    assert_int_equal(s.core.result.instructions, 3);
    snippet_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_jumps),
                                       cmocka_unit_test(test_watched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
