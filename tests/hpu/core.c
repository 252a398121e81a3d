/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may not do, what it is told of then, and what it costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "snippet.h"

enum { RET = 0x00008067, NOP = 0x00000013 };

static struct snippet s;

static const struct rv32_result *run(const uint32_t *words, uint32_t count, uint32_t a1)
{
    snippet_make(&s, words, count);
    const struct rv32_result *r = snippet_run(&s, 0, a1, 0);
    snippet_free(&s);
    return r;
}

/* Loads and stores of all sizes at all places round the memory's ends. */
static void test_bounds(void **state)
{
    static const struct {
        uint32_t word;
        int32_t bytes;
        bool store;
    } rows[] = {{0x00058503, 1, false}, {0x00059503, 2, false}, {0x0005a503, 4, false},
                {0x0005c503, 1, false}, {0x0005d503, 2, false}, {0x00058023, 1, true},
                {0x00059023, 2, true},  {0x0005a023, 4, true},  {0x0005a52f, 4, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        /* Once before, so that the base register has its hint: lw t0,0(a2) moves with a1. */
        uint32_t words[] = {rows[i].word, rows[i].word, RET};
        for (int32_t at = -8; at < SNIPPET_BYTES + 8; at++) {
            uint32_t address = SNIPPET_MEMORY + (uint32_t)at;
            bool inside = at >= 0 && at + rows[i].bytes <= SNIPPET_BYTES;
            bool atomic = rows[i].word == 0x0005a52f;
            const struct rv32_result *r = run(words, 3, address);
            if (inside && (!atomic || at % 4 == 0)) {
                assert_int_equal(r->end, RV32_RETURNED);
                continue;
            }
            assert_int_equal(r->end, atomic          ? RV32_FAULT_ATOMIC
                                     : rows[i].store ? RV32_FAULT_STORE
                                                     : RV32_FAULT_LOAD);
            assert_int_equal(r->address, address);
            assert_int_equal(r->bytes, rows[i].bytes);
            assert_int_equal(r->pc, SNIPPET_CODE);
        }
    }
}

/* A register that pointed into one region may point anywhere next. */
static void test_hints(void **state)
{
    /* lw t0,0(a1); sub a1,a1,a2; lw t0,0(a1): from memory to below it, with the hint of it */
    uint32_t words[] = {0x0005a283, 0x40c585b3, 0x0005a283, RET};
    snippet_make(&s, words, 4);
    const struct rv32_result *r = snippet_run(&s, 0, SNIPPET_MEMORY, 4);
    assert_int_equal(r->end, RV32_FAULT_LOAD);
    assert_int_equal(r->address, SNIPPET_MEMORY - 4);
    assert_int_equal(r->pc, SNIPPET_CODE + 8);
    assert_int_equal(snippet_run(&s, 0, SNIPPET_MEMORY, (uint32_t)-SNIPPET_BYTES)->end,
                     RV32_FAULT_LOAD);
    assert_int_equal(snippet_run(&s, 0, SNIPPET_MEMORY, SNIPPET_MEMORY - SNIPPET_STACK)->end,
                     RV32_RETURNED);
    snippet_free(&s);
}

static void test_code(void **state)
{
    uint32_t load[] = {0x0005a503, RET}, store[] = {0x0005a023, RET};
    /* Code may be read, constants are in it, but not written. */
    const struct rv32_result *r = run(load, 2, SNIPPET_CODE + 4);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, RET);
    assert_int_equal(run(store, 2, SNIPPET_CODE + 4)->end, RV32_FAULT_STORE);
}

static void test_stack(void **state)
{
    /* sw a1,-4(sp); sw a1,-256(sp); sw a1,-260(sp) */
    uint32_t good[] = {0xfeb12e23, 0xf0b12023, RET}, bad[] = {0xfeb12e23, 0xeeb12e23, RET};
    assert_int_equal(run(good, 3, 1)->end, RV32_RETURNED);
    const struct rv32_result *r = run(bad, 3, 1);
    assert_int_equal(r->end, RV32_FAULT_STACK);
    assert_int_equal(r->address, SNIPPET_STACK - 4);
    assert_int_equal(r->instructions, 1);
}

static void test_jumps(void **state)
{
    uint32_t past[] = {NOP, NOP};                /* runs off the end */
    uint32_t out[] = {0x0080006f, RET};          /* j .+8 */
    uint32_t back[] = {0xff9ff06f, RET};         /* j .-8 */
    uint32_t there[] = {0x00058067, RET};        /* jr a1 */
    uint32_t middle[] = {0x0060006f, 0x80820513, /* j .+6, which is ret, in addi a0,tp,-2040 */
                         RET};
    const struct rv32_result *r = run(past, 2, 0);
    assert_int_equal(r->end, RV32_FAULT_JUMP);
    assert_int_equal(r->pc, SNIPPET_CODE + 8);
    r = run(out, 2, 0);
    assert_int_equal(r->end, RV32_FAULT_JUMP);
    assert_int_equal(r->pc, SNIPPET_CODE + 8);
    assert_int_equal(run(back, 2, 0)->pc, SNIPPET_CODE - 8);
    assert_int_equal(run(there, 2, 0)->end, RV32_FAULT_JUMP);
    assert_int_equal(run(there, 2, SNIPPET_MEMORY)->end, RV32_FAULT_JUMP);
    assert_int_equal(run(there, 2, SNIPPET_CODE + 8)->end, RV32_FAULT_JUMP);
    assert_int_equal(run(there, 2, SNIPPET_CODE + 5)->end, RV32_RETURNED); /* bit 0 has no say */
    assert_int_equal(run(middle, 3, 0)->end, RV32_RETURNED);
}

/* The code ends inside an instruction of four bytes. */
static void test_cut(void **state)
{
    uint32_t words[] = {0x0513 << 16 | 0x0001};
    const struct rv32_result *r = run(words, 1, 0);
    assert_int_equal(r->end, RV32_FAULT_ILLEGAL);
    assert_int_equal(r->pc, SNIPPET_CODE + 2);
}

static void test_entry(void **state)
{
    uint32_t words[] = {RET};
    snippet_make(&s, words, 1);
    struct rv32_call call = {.pc = SNIPPET_CODE + 4, .budget = 10};
    assert_int_equal(rv32_core_call(&s.core, &call)->end, RV32_FAULT_JUMP);
    call.pc = SNIPPET_CODE + 1;
    assert_int_equal(rv32_core_call(&s.core, &call)->end, RV32_FAULT_JUMP);
    call.pc = SNIPPET_CODE - 2;
    assert_int_equal(rv32_core_call(&s.core, &call)->end, RV32_FAULT_JUMP);
    snippet_free(&s);
}

/* A budget is kept to the block: exactly as much is enough, one cycle less is not. */
static void test_budget(void **state)
{
    /* addi a1,a1,-1; bnez a1,.-4; ret: 1 + 3 cycles a round, the last one 1 + 1, 2 to return */
    uint32_t words[] = {0xfff58593, 0xfe059ee3, RET};
    snippet_make(&s, words, 3);
    struct rv32_call call = {.pc = SNIPPET_CODE, .arguments = {0, 10}, .budget = 9 * 4 + 2 + 2};
    const struct rv32_result *r = rv32_core_call(&s.core, &call);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->cycles, 40);
    assert_int_equal(r->instructions, 21);
    call.budget--;
    assert_int_equal(rv32_core_call(&s.core, &call)->end, RV32_TIMEOUT);
    call.arguments[1] = 0; /* 2^32 rounds */
    call.budget = 1000;
    r = rv32_core_call(&s.core, &call);
    assert_int_equal(r->end, RV32_TIMEOUT);
    assert_in_range(r->cycles, 1001, 1004);
    assert_int_equal(r->pc, SNIPPET_CODE);
    snippet_free(&s);
}

static void test_counters(void **state)
{
    /* nop; csrr a0,cycle; ret and the same of instret: they see what is behind them. */
    uint32_t cycle[] = {0x02b505b3, 0xc0002573, RET}, retired[] = {NOP, 0xc0202573, RET};
    uint32_t high[] = {NOP, 0xc8002573, RET};
    assert_int_equal(run(cycle, 3, 5)->value, 1);
    assert_int_equal(run(retired, 3, 0)->value, 1);
    assert_int_equal(run(high, 3, 0)->value, 0);
}

static int twice(struct rv32_core *core, void *context)
{
    core->x[10] = 2 * core->x[11];
    rv32_core_charge(core, 7);
    return *(int *)context;
}

static void test_ecall(void **state)
{
    uint32_t words[] = {NOP, 0x00000073, RET};
    int stop = 0;
    const struct rv32_result *r = run(words, 3, 0);
    assert_int_equal(r->end, RV32_FAULT_ECALL);
    assert_int_equal(r->pc, SNIPPET_CODE + 4);
    snippet_make(&s, words, 3);
    s.core.ecall = twice;
    s.core.ecall_context = &stop;
    r = snippet_run(&s, 0, 21, 0);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, 42);
    assert_int_equal(r->cycles, 1 + 1 + 7 + 2);
    stop = 5;
    r = snippet_run(&s, 0, 21, 0);
    assert_int_equal(r->end, RV32_STOPPED);
    assert_int_equal(r->value, 5);
    assert_int_equal(r->cycles, 1 + 1 + 7);
    assert_int_equal(r->instructions, 2);
    snippet_free(&s);
}

/* What was charged ahead is given back when control does not get there. */
static void test_fault_costs(void **state)
{
    /* nop; nop; ebreak; nop; nop; ret */
    uint32_t words[] = {NOP, NOP, 0x00100073, NOP, NOP, RET};
    const struct rv32_result *r = run(words, 6, 0);
    assert_int_equal(r->end, RV32_FAULT_EBREAK);
    assert_int_equal(r->cycles, 2);
    assert_int_equal(r->instructions, 2);
}

static void test_map(void **state)
{
    struct rv32_error error;
    uint32_t words[] = {RET}, more[16] = {0};
    snippet_make(&s, words, 1);
    assert_int_equal(rv32_core_map(&s.core, "odd", 0x40002, 4, more, RV32_READ, 0, &error), -1);
    assert_non_null(strstr(error.text, "region odd"));
    assert_int_equal(
        rv32_core_map(&s.core, "over", SNIPPET_MEMORY + 252, 8, more, RV32_READ, 0, &error), -1);
    assert_non_null(strstr(error.text, "over region memory"));
    assert_int_equal(rv32_core_map(&s.core, "high", 0xfffffffc, 8, more, RV32_READ, 0, &error), -1);
    for (uint32_t i = 3; i < RV32_REGIONS; i++) {
        assert_int_equal(
            rv32_core_map(&s.core, "more", 0x50000 + 64 * i, 64, more, RV32_READ, 0, &error), 0);
    }
    assert_int_equal(rv32_core_map(&s.core, "last", 0x60000, 64, more, RV32_READ, 0, &error), -1);
    assert_non_null(rv32_core_reach(&s.core, SNIPPET_MEMORY, SNIPPET_BYTES, RV32_WRITE));
    assert_null(rv32_core_reach(&s.core, SNIPPET_MEMORY, SNIPPET_BYTES + 1, RV32_WRITE));
    assert_null(rv32_core_reach(&s.core, SNIPPET_CODE, 4, RV32_WRITE));
    assert_null(rv32_core_reach(&s.core, SNIPPET_MEMORY + 4, 0xffffffff, RV32_READ));
    snippet_free(&s);
}

/* ---- Devices ---- */

struct device {
    uint32_t words[2];
    uint64_t cycle; /* of the last access */
    int64_t waits;
};

static int64_t access_device(void *context, enum rv32_access access, uint32_t offset,
                             uint64_t cycle, uint32_t *word)
{
    struct device *d = context;
    d->cycle = cycle;
    if (access == RV32_READ) {
        *word = d->words[offset / 4];
    } else {
        d->words[offset / 4] = *word;
    }
    return d->waits;
}

enum { DEVICE = 0x40000 };

static const struct rv32_result *run_device(struct device *d, const uint32_t *words, uint32_t count,
                                            uint32_t a0, uint32_t a1)
{
    struct rv32_error error;
    struct rv32_device device = {access_device, d};
    snippet_make(&s, words, count);
    assert_int_equal(rv32_core_map_device(&s.core, "device", DEVICE, 8, &device, &error), 0);
    assert_null(rv32_core_reach(&s.core, DEVICE, 4, RV32_READ));
    const struct rv32_result *r = snippet_run(&s, a0, a1, 0);
    snippet_free(&s);
    return r;
}

static void test_device(void **state)
{
    /* nop; sw a0,4(a1); nop; lw a0,0(a1); ret, whose last but one waits for the word */
    uint32_t words[] = {NOP, 0x00a5a223, NOP, 0x0005a503, NOP, RET};
    struct device d = {.words = {7, 0}};
    const struct rv32_result *r = run_device(&d, words, 6, 5, DEVICE);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, 7);
    assert_int_equal(d.words[1], 5);
    assert_int_equal(d.cycle, 3);
    assert_int_equal(r->cycles, 7);
    d.waits = 10; /* each of the two */
    r = run_device(&d, words, 6, 5, DEVICE);
    assert_int_equal(d.cycle, 13);
    assert_int_equal(r->cycles, 27);
    d.waits = -1;
    r = run_device(&d, words, 6, 5, DEVICE);
    assert_int_equal(r->end, RV32_FAULT_STORE);
    assert_int_equal(r->address, DEVICE + 4);
    assert_int_equal(r->cycles, 1);
    d.waits = 0;
    assert_int_equal(run_device(&d, words, 6, 5, DEVICE + 4)->end, RV32_FAULT_STORE);
    assert_int_equal(run_device(&d, words, 6, 5, DEVICE - 4)->end, RV32_FAULT_LOAD);
    /* lh, misaligned lw, amoadd.w: a device has words, and these are not in memory. */
    static const uint32_t odd[] = {0x00059503, 0x0015a503, 0x00a5a52f};
    for (int i = 0; i < 3; i++) {
        uint32_t one[] = {odd[i], RET};
        assert_int_equal(run_device(&d, one, 2, 5, DEVICE)->end,
                         i < 2 ? RV32_FAULT_LOAD : RV32_FAULT_ATOMIC);
    }
}

/* ---- Watching ---- */

struct turns {
    uint32_t at; /* an address, and what is to be done there */
    enum rv32_turn turn;
    uint32_t pcs[8];
    int count;
};

static enum rv32_turn decide(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    struct turns *t = context;
    t->pcs[t->count++ % 8] = pc;
    return pc == t->at ? t->turn : RV32_GO_ON;
}

static void test_turns(void **state)
{
    /* addi a0,a0,1; addi a0,a0,2; addi a0,a0,4; ret */
    uint32_t words[] = {0x00150513, 0x00250513, 0x00450513, RET};
    struct rv32_call call = {
        .pc = SNIPPET_CODE, .stack = SNIPPET_STACK + SNIPPET_BYTES, .budget = 100};
    struct turns t = {.at = SNIPPET_CODE + 4, .turn = RV32_GO_TO};
    snippet_make(&s, words, 4);
    s.core.go_to = SNIPPET_CODE + 8;
    const struct rv32_result *r = rv32_core_trace(&s.core, &call, decide, &t);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, 5);
    assert_int_equal(r->cycles, 4);
    assert_int_equal(r->instructions, 3);
    assert_int_equal(t.count, 4); /* it sees both, where it was and where it went */
    assert_int_equal(t.pcs[2], SNIPPET_CODE + 8);
    s.core.go_to = SNIPPET_MEMORY;
    r = rv32_core_trace(&s.core, &call, decide, &t);
    assert_int_equal(r->end, RV32_FAULT_JUMP);
    assert_int_equal(r->pc, SNIPPET_MEMORY);
    assert_int_equal(r->cycles, 1);
    t.turn = RV32_HALT;
    r = rv32_core_trace(&s.core, &call, decide, &t);
    assert_int_equal(r->end, RV32_STOPPED);
    assert_int_equal(r->pc, SNIPPET_CODE + 4);
    assert_int_equal(r->instructions, 1);
    /* Where it was halted it goes on; registers and budget are what they were. */
    t.turn = RV32_GO_ON;
    r = rv32_core_resume(&s.core, SNIPPET_CODE + 4, decide, &t);
    assert_int_equal(r->end, RV32_RETURNED);
    assert_int_equal(r->value, 7);
    assert_int_equal(r->cycles, 5);
    assert_int_equal(r->instructions, 4);
    assert_int_equal(rv32_core_resume(&s.core, 0, decide, &t)->end, RV32_FAULT_JUMP);
    snippet_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),      cmocka_unit_test(test_hints),
        cmocka_unit_test(test_code),        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_jumps),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_entry),       cmocka_unit_test(test_budget),
        cmocka_unit_test(test_counters),    cmocka_unit_test(test_ecall),
        cmocka_unit_test(test_fault_costs), cmocka_unit_test(test_map),
        cmocka_unit_test(test_device),      cmocka_unit_test(test_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
