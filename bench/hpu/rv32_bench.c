/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the RV32 core is: millions of its instructions per second of CPU time.
 *
 *     rv32_bench GOLDEN-FOLDER [--rounds N] [KERNEL...]
 *
 * GOLDEN-FOLDER is tests/hpu/golden, which has the kernels. Each runs with arguments that
 * keep it busy for some thousand instructions a call, in three ways: checked (each access
 * against the bounds of its region; warm timing), unchecked (the same loop, addresses are
 * offsets into 4 GiB of address space), cached (checked, each instruction followed through the
 * fetch buffer and the instruction cache: `pinwheel hpu --cold`, of which nobody asks for speed).
 * The three take turns N times (9); reported are the medians. "start" is the time of a
 * call of the empty kernel.
 */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS_MOST = 99, INSTRUCTIONS = 4000000, OWN_L1 = 0x10000000, CODE = 0x1d000000 };
enum { PACKET = OWN_L1 + 0x4800, SCRATCHPAD = OWN_L1 + 0x14400, STACK = OWN_L1 + 0x400 };

enum way { CHECKED, UNCHECKED, CACHED, WAYS };

struct kernel {
    const char *name;
    uint32_t arguments[3];
};

/* 4 KiB of data, or a thousand rounds; what takes no length runs as it is. */
static const struct kernel kernels[] = {
    {"k_sum32", {SCRATCHPAD, 1024}},
    {"k_sum16", {SCRATCHPAD, 2048}},
    {"k_copyw", {SCRATCHPAD, PACKET, 1024}},
    {"k_copyb", {SCRATCHPAD, PACKET, 4096}},
    {"k_cksum_naive", {PACKET, 4096}},
    {"k_cksum_opt", {PACKET, 4096}},
    {"k_crc32", {PACKET, 4096}},
    {"k_fnv", {PACKET, 4096}},
    {"k_divchain", {123456789, 1000}},
    {"k_remsmall", {2, 1000}},
    {"k_mulh", {12345, 1000}},
    {"k_popcnt", {0xffffffff}},
    {"k_chase", {SCRATCHPAD, 1000}},
    {"k_ld8", {SCRATCHPAD}},
    {"k_st8", {SCRATCHPAD, 1}},
    {"k_amo8", {SCRATCHPAD}},
    {"k_loop_calls", {1000}},
    {"k_sort8", {SCRATCHPAD}},
    {"k_swaphdr", {PACKET}},
};

enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

struct bench {
    struct kernels *warm, *cached;
    uint8_t *arena; /* of 4 GiB, with L1 and the code where they are in the cores' map */
    int rounds;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct rv32_result *call(const struct bench *b, enum way way, uint32_t pc,
                                      const struct kernel *k)
{
    struct rv32_call c = {.pc = pc, .stack = STACK, .budget = 1 << 30};
    memcpy(c.arguments, k->arguments, sizeof(k->arguments));
    if (way == UNCHECKED) {
        return rv32_core_call_unchecked(&b->warm->core, &c, b->arena);
    }
    return rv32_core_call(way == CACHED ? &b->cached->core : &b->warm->core, &c);
}

/* Millions of instructions per second. */
static double rate(const struct bench *b, enum way way, const struct kernel *k)
{
    uint32_t pc = rv32_image_find(&b->warm->image, k->name)->address;
    const struct rv32_result *r = call(b, way, pc, k);
    if (r->end != RV32_RETURNED) {
        return NAN;
    }
    uint64_t calls = 1 + INSTRUCTIONS / r->instructions, each = r->instructions;
    double begin = seconds();
    for (uint64_t i = 0; i < calls; i++) {
        call(b, way, pc, k);
    }
    return (double)(calls * each) / (seconds() - begin) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(const struct bench *b, const struct kernel *k, double median[WAYS])
{
    double rates[WAYS][ROUNDS_MOST];
    for (int i = 0; i < b->rounds; i++) {
        for (int way = 0; way < WAYS; way++) {
            rates[way][i] = rate(b, way, k);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        qsort(rates[way], (size_t)b->rounds, sizeof(double), compare);
        median[way] = rates[way][b->rounds / 2];
    }
}

static bool make_arena(struct bench *b)
{
    b->arena = mmap(NULL, 1ul << 32, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->arena == MAP_FAILED ||
        mprotect(b->arena + OWN_L1, KERNELS_MEMORY, PROT_READ | PROT_WRITE) ||
        mprotect(b->arena + CODE, RV32_CODE_MAX, PROT_READ | PROT_WRITE)) {
        perror("rv32_bench");
        return false;
    }
    const struct rv32_segment *code = &b->warm->image.code;
    memcpy(b->arena + code->base, code->bytes, code->size);
    return true;
}

static bool chosen(const char *name, char **names, int count)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++) {
        found |= strcmp(name, names[i]) == 0;
    }
    return found;
}

static void tell_start(const struct bench *b)
{
    enum { CALLS = 200000 };
    static const struct kernel empty = {"k_empty", {1}};
    uint32_t pc = rv32_image_find(&b->warm->image, empty.name)->address;
    double times[ROUNDS_MOST] = {0};
    for (int i = 0; i < b->rounds; i++) {
        double begin = seconds();
        for (int n = 0; n < CALLS; n++) {
            call(b, CHECKED, pc, &empty);
        }
        times[i] = (seconds() - begin) * 1e9 / CALLS;
    }
    qsort(times, (size_t)b->rounds, sizeof(double), compare);
    printf("start %.1f ns (target 80)\n", times[b->rounds / 2]);
}

int main(int argc, char **argv)
{
    struct bench b = {.rounds = 9};
    int next = 2;
    if (argc > 3 && strcmp(argv[2], "--rounds") == 0) {
        b.rounds = atoi(argv[3]);
        next = 4;
    }
    if (argc < 2 || b.rounds < 1 || b.rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: rv32_bench GOLDEN-FOLDER [--rounds N] [KERNEL...]\n");
        return 2;
    }
    b.warm = kernels_open(argv[1], RV32_WARM);
    b.cached = kernels_open(argv[1], RV32_CACHE);
    if (b.warm == NULL || b.cached == NULL || !make_arena(&b)) {
        return 1;
    }
    double sum[WAYS] = {0};
    int count = 0;
    printf("%-14s %9s %9s %9s   million instructions per second\n", "kernel", "checked",
           "unchecked", "cached");
    for (int i = 0; i < KERNELS; i++) {
        double median[WAYS];
        if (!chosen(kernels[i].name, argv + next, argc - next)) {
            continue;
        }
        measure(&b, &kernels[i], median);
        printf("%-14s %9.0f %9.0f %9.0f\n", kernels[i].name, median[CHECKED], median[UNCHECKED],
               median[CACHED]);
        for (int way = 0; way < WAYS; way++) {
            sum[way] += log(median[way]);
        }
        count++;
    }
    if (count > 0) {
        double checked = exp(sum[CHECKED] / count), unchecked = exp(sum[UNCHECKED] / count);
        printf("%-14s %9.0f %9.0f %9.0f   target: checked 450\n", "geometric mean", checked,
               unchecked, exp(sum[CACHED] / count));
        printf("checks cost %.0f %% (target 30)\n", 100 * (unchecked / checked - 1));
    }
    tell_start(&b);
    return 0;
}
