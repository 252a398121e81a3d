/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost table against a real core: the recorded instructions one by one, the measured
 * kernels as wholes, with a warm cache and a cold one. What is not exact is printed.
 */
#include "kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
    unsigned seq, cycles;
    char function[32];
    struct rv32_retired retired;
};

/* A field that may be empty. */
static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 16);
}

static bool read_row(struct row *r, char *line)
{
    char *field[7], *rest = line;
    for (int i = 0; i < 7; i++) {
        field[i] = strsep(&rest, ",");
        if (field[i] == NULL) {
            return false;
        }
    }
    *r = (struct row){.seq = (unsigned)atoi(field[0]), .cycles = (unsigned)atoi(field[6])};
    snprintf(r->function, sizeof(r->function), "%s", field[1]);
    r->retired.pc = number(field[2]);
    r->retired.insn = rv32_decode(number(field[3]));
    r->retired.address = number(field[4]);
    r->retired.area = rv32_pspin_area(r->retired.address);
    r->retired.divisor = number(field[5]);
    return r->retired.insn.op != RV32_ILLEGAL;
}

static void test_replay(void **state)
{
    enum { ROWS = 4096 };
    static struct row rows[ROWS];
    char line[256];
    int count = 0, exact = 0;
    FILE *f = fopen(GOLDEN "/trace.csv", "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    while (fgets(line, sizeof(line), f) != NULL) {
        assert_true(count < ROWS);
        assert_true(read_row(&rows[count++], line));
    }
    fclose(f);
    struct rv32_replay replay = {.begun = false};
    for (int i = 0; i < count; i++) {
        bool follows = i + 1 < count && rows[i + 1].seq == rows[i].seq + 1;
        unsigned cycles = rv32_replay_step(&replay, &rv32_timings[0], &rows[i].retired,
                                           follows ? &rows[i + 1].retired : NULL);
        exact += cycles == rows[i].cycles;
        if (cycles != rows[i].cycles) {
            char text[RV32_TEXT];
            rv32_disassemble(&rows[i].retired.insn, rows[i].retired.pc, text);
            print_message("seq %u in %s: %s: %u, measured %u\n", rows[i].seq, rows[i].function,
                          text, cycles, rows[i].cycles);
        }
        if (!follows) {
            replay = (struct rv32_replay){.begun = false};
        }
    }
    print_message("%d of %d rows exact: %.2f %%\n", exact, count, 100.0 * exact / count);
    assert_int_equal(count, 3146);
    assert_true(exact >= 0.996 * count);
}

static void test_warm(void **state)
{
    struct kernels *k = kernels_open(GOLDEN, RV32_WARM);
    assert_non_null(k);
    int ran = 0, wrong = 0;
    for (int i = 0; i < k->call_count; i++) {
        const struct kernels_call *c = &k->calls[i];
        if (!c->runs) {
            continue;
        }
        const struct rv32_result *r = kernels_run(k, c);
        assert_int_equal(r->end, RV32_RETURNED);
        double error = fabs((double)r->cycles - c->warm);
        if (error > 0) {
            print_message("%s/%d: %llu cycles, measured %u\n", c->function, c->number,
                          (unsigned long long)r->cycles, c->warm);
        }
        assert_int_equal(r->instructions, c->instructions);
        wrong += error > fmax(0.01 * c->warm, 1);
        ran++;
    }
    kernels_close(k);
    assert_int_equal(ran, 21);
    assert_int_equal(wrong, 0);
}

/* The kernels were called one after the other, and what one prefetched the next one finds. Cycles
 * were counted from a kernel's first instruction on, after it had come. Behind the last one,
 * k_swaphdr, was code that ran before and is not recorded: it takes the miss of a line more. */
static void test_cold(void **state)
{
    struct kernels *k = kernels_open(GOLDEN, RV32_CACHE), *warm = kernels_open(GOLDEN, RV32_WARM);
    assert_non_null(k);
    assert_non_null(warm);
    int ran = 0, exact = 0;
    for (int i = 0; i < k->call_count; i++) {
        const struct kernels_call *c = &k->calls[i];
        if (!c->runs || c->number != 0) {
            continue;
        }
        rv32_core_share(&k->core, rv32_image_find(&k->image, c->function)->address);
        long cycles = (long)kernels_run(k, c)->cycles, expected = c->cold;
        long again = (long)kernels_run(k, c)->cycles;
        print_message("%s: cold %ld cycles, measured %u\n", c->function, cycles, c->cold);
        expected += strcmp(c->function, "k_swaphdr") == 0 ? rv32_timings[0].miss : 0;
        expected -= strcmp(c->function, "k_st8") == 0; /* as warm */
        assert_int_equal(cycles, expected);
        /* Again, everything is there. */
        assert_int_equal(again, kernels_run(warm, &warm->calls[i])->cycles);
        exact += cycles == c->cold;
        ran++;
    }
    kernels_close(warm);
    kernels_close(k);
    assert_int_equal(ran, 14);
    assert_int_equal(exact, 12);
}

/* What the kernels find, the same for each run: some of them sort. */
static void fill_memory(struct kernels *k)
{
    for (uint32_t i = 0; i < sizeof(k->own) / 4; i++) {
        uint32_t word = i * 7 % 13;
        memcpy(&k->own[4 * i], &word, 4);
    }
}

/* A row that nothing was fitted to, and that is not in the tables: a loop of eight lines without a
 * jump, 820 cycles the first time. */
static void test_cold_straight(void **state)
{
    struct kernels *k = kernels_open(GOLDEN, RV32_CACHE);
    assert_non_null(k);
    uint32_t pc = rv32_image_find(&k->image, "k_crc32")->address;
    struct rv32_call call = {
        .pc = pc, .arguments = {0x10004800, 16}, .stack = 0x10000400, .budget = 100000};
    rv32_core_share(&k->core, pc);
    assert_int_equal(rv32_core_call(&k->core, &call)->cycles, 820);
    kernels_close(k);
}

/* With all code in the cache nothing is waited for: warm programs count the same, whatever the
 * code, and whatever it does. */
static void test_all_cached(void **state)
{
    struct kernels *k = kernels_open(GOLDEN, RV32_CACHE), *warm = kernels_open(GOLDEN, RV32_WARM);
    assert_non_null(k);
    assert_non_null(warm);
    int returned = 0;
    for (size_t n = 0; n < k->image.function_count; n++) {
        struct rv32_call call = {.pc = k->image.functions[n].address,
                                 .arguments = {0x10014400, 5, 7},
                                 .stack = 0x10000400,
                                 .budget = 30000};
        for (int i = 0; i < 2; i++) {
            fill_memory(k);
            rv32_core_call(&k->core, &call);
        }
        fill_memory(warm);
        const struct rv32_result *r = rv32_core_call(&warm->core, &call);
        if (r->end == RV32_RETURNED) {
            assert_int_equal(k->core.result.cycles, r->cycles);
            returned++;
        }
    }
    kernels_close(warm);
    kernels_close(k);
    print_message("%d functions\n", returned);
    assert_true(returned >= 15);
}

/* The interpreter, which sums up, and the replay, which steps, count alike: traces of the
 * kernels as the interpreter runs them. */
struct recorder {
    struct kernels *k;
    struct rv32_retired rows[4096];
    int count;
};

static enum rv32_turn record(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    struct recorder *r = context;
    assert_true(r->count < 4096);
    struct rv32_retired *row = &r->rows[r->count++];
    *row = (struct rv32_retired){.pc = pc, .insn = rv32_program_insn(&r->k->image.code, pc)};
    bool offset = rv32_traits[row->insn.op].class != RV32_CLASS_AMO;
    row->address = core->x[row->insn.rs1] + (offset ? (uint32_t)row->insn.imm : 0);
    row->area = rv32_pspin_area(row->address);
    row->divisor = core->x[row->insn.rs2];
    return RV32_GO_ON;
}

static void test_same_rules(void **state)
{
    static struct recorder r;
    r.k = kernels_open(GOLDEN, RV32_WARM);
    assert_non_null(r.k);
    for (size_t n = 0; n < r.k->image.function_count; n++) {
        const struct rv32_symbol *s = &r.k->image.functions[n];
        struct rv32_call call = {
            .pc = s->address, .arguments = {0x10014400, 5, 7}, .stack = 0x10000400, .budget = 3000};
        r.count = 0;
        struct rv32_replay replay = {.jumped = true};
        fill_memory(r.k);
        uint64_t fast = rv32_core_call(&r.k->core, &call)->cycles, sum = 0;
        fill_memory(r.k);
        const struct rv32_result *slow = rv32_core_trace(&r.k->core, &call, record, &r);
        for (int i = 0; i < r.count; i++) {
            sum += rv32_replay_step(&replay, &rv32_timings[0], &r.rows[i],
                                    i + 1 < r.count ? &r.rows[i + 1] : NULL);
        }
        assert_int_equal(slow->cycles, fast);
        /* One that faults was seen, but did not retire. */
        bool faulted = slow->end != RV32_RETURNED && slow->end != RV32_TIMEOUT;
        assert_int_equal(slow->instructions, r.count - faulted);
        if (slow->end == RV32_RETURNED && sum != fast) {
            print_message("%s: stepped %llu, run %llu\n", s->name, (unsigned long long)sum,
                          (unsigned long long)fast);
        }
        assert_true(slow->end != RV32_RETURNED || sum == fast);
    }
    kernels_close(r.k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),     cmocka_unit_test(test_warm),
        cmocka_unit_test(test_cold),       cmocka_unit_test(test_cold_straight),
        cmocka_unit_test(test_all_cached), cmocka_unit_test(test_same_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
