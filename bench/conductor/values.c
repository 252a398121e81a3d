/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of sizes and works, and what turns gave; see values.h. */
#include "values.h"

#include <inttypes.h>
#include <stdio.h>

const char *plan_size_text(enum size_kind kind, uint64_t size, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    if (kind == SIZE_NONE) {
        snprintf(text, 32, "-");
        return text;
    }
    if (kind == SIZE_WAITING) {
        snprintf(text, 32, "%" PRIu64 " waiting", size);
        return text;
    }
    if (kind == SIZE_ENTRIES || kind == SIZE_DEPTH) {
        snprintf(text, 32, "%" PRIu64 " %s", size, size == 1 ? "entry" : "entries");
        return text;
    }
    if (kind == SIZE_HANDLER || kind == SIZE_SLOW) {
        snprintf(text, 32, "%" PRIu64 " us", size);
        return text;
    }
    for (; size != 0 && size % 1024 == 0 && unit < 3; unit++) {
        size /= 1024;
    }
    snprintf(text, 32, "%" PRIu64 " %s", size, units[unit]);
    return text;
}

const char *plan_work_name(const struct run *r, int work, char text[80])
{
    char size[32];
    for (int i = 0; i < r->case_count; i++) {
        const struct bench_case *c = &r->cases[i];
        if (c->ours == work || c->theirs == work) {
            snprintf(text, 80, "%s, %s", c->bench->name,
                     plan_size_text(c->bench->sizes, c->size, size));
            return text;
        }
    }
    snprintf(text, 80, "work %d", work);
    return text;
}

double plan_stored(const struct turn_work *work, const struct turn_result result[2])
{
    switch (work->bench) {
    case BENCH_WAKE:
    case BENCH_MEMORY:
    case BENCH_FIRST:
    case BENCH_FIRST_RATIO:
    case BENCH_CHAIN_INC:
    case BENCH_CHAIN_PUT:
    case BENCH_CHAIN_ATOMIC:
    case BENCH_SPIN_BROADCAST:
    case BENCH_SPIN_ALLREDUCE:
    case BENCH_SPIN_FTBCAST:
    case BENCH_SPIN_RAID5:
    case BENCH_SPIN_REED_SOLOMON:
    case BENCH_SPIN_FAIR:
    case BENCH_SPIN_FAIR_WORST:
        return result[0].extra;
    case BENCH_ATOMIC_SHARED:
        return result[0].seconds / ((double)work->count + result[1].extra);
    case BENCH_EXPECTED:
    case BENCH_UNEXPECTED:
    case BENCH_UNEXPECTED_REVERSE:
    case BENCH_UNEXPECTED_WILD:
    case BENCH_UNEXPECTED_CLAIM:
    case BENCH_HANDLER_MESSAGE:
    case BENCH_HANDLER_PACKET:
    case BENCH_IDLE:
    case BENCH_COMPUTING:
    case BENCH_SPIN_OVERLAP:
    case BENCH_SPIN_OVERLAP_COST:
    case BENCH_SPIN_OVERLAP_GEMM:
        return result[1].extra;
    default:
        return result[0].seconds / (double)work->count;
    }
}

double plan_value(const struct bench *b, uint64_t size, double stored)
{
    switch (b->value) {
    case VALUE_RATE:
        return stored > 0 ? b->scale / stored : 0;
    case VALUE_BYTES:
        return stored > 0 ? b->scale * (double)size / stored / 1e9 : 0;
    default:
        return stored * b->scale;
    }
}
