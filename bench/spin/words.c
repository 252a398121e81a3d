/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done to each word of a message of work->size bytes at the target:
 *
 *   accumulate   doubles are added to memory        handlers/accumulate; MPI_Accumulate
 *   copy         the message is written to memory   handlers/pspin; cpu: a put
 *   aggregate    32-bit words are added up          handlers/pspin
 *   histogram    32-bit words are counted           likewise
 *   reduce       64-bit words are added to a vector likewise
 *   filter       of records of 16 bytes those are kept whose key is in a set, one of 16
 *
 * cpu: a put to memory aside, then a plain loop. One message at a time; after the last, what
 * is there is compared with the messages there were.
 */
#include "jobs.h"

#include "accumulate.h"
#include "pspin.h"

#include <string.h>

enum {
    ASIDE = 2 * SPIN_MESSAGE, /* in `to`: where messages land that the CPU works on */
    RECORD = 16,
    KEYS = 64,
    KEY_SPACE = 1024, /* keys of records are below */
    KEPT_ROOM = 1 << 16
};

struct record {
    uint64_t key, value;
};

/* The memory that jobs leave, of handlers and of the CPU alike. */
static struct {
    struct pspin_sum sum;
    struct pspin_histogram histogram;
    struct accumulate_locks locks;
    struct pspin_filter_state set;
    struct pspin_kept *kept; /* then records */
    ptl_handle_hpu_mem_t hpu_memory;
} left;

static uint64_t messages; /* of this turn */

static const uint8_t *aside(void)
{
    return spin.to + ASIDE;
}

/* ---- What is sent ---- */

static void fill(const struct turn_work *work)
{
    uint64_t random = 1;
    for (uint64_t i = 0; i < work->size / 8; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t high = random >> 33;
        uint64_t word = high;
        double number = (double)(high % 16);
        switch (work->bench) {
        case BENCH_SPIN_ACCUMULATE:
            memcpy(&word, &number, sizeof(word)); /* sums of such are exact */
            break;
        case BENCH_SPIN_HISTOGRAM:
        case BENCH_SPIN_AGGREGATE:
            word = high % PSPIN_BINS << 32 | high / PSPIN_BINS % PSPIN_BINS;
            break;
        case BENCH_SPIN_FILTER:
            word = i % 2 == 0 ? 1 + high % KEY_SPACE : high;
            break;
        default:
            break;
        }
        memcpy(spin.from + i * 8, &word, sizeof(word));
    }
}

/* ---- The jobs, by handlers ---- */

static int start_set(void)
{
    int rc = pspin_filter_start(&left.set, RECORD);
    for (uint64_t key = 1; key <= KEYS && rc == PTL_OK; key++) {
        rc = pspin_filter_add(&left.set, key * (KEY_SPACE / KEYS));
    }
    return link_ok(rc, "pspin_filter_add") ? 0 : -1;
}

static int attach(const struct turn_work *work)
{
    static struct accumulate_state accumulate;
    static struct pspin_reduce_state reduce;
    ptl_handlers_t h;
    int code = PTL_OK;
    switch (work->bench) {
    case BENCH_SPIN_ACCUMULATE:
        code = accumulate_handlers(PTL_SUM, PTL_DOUBLE, NULL, work->size, &left.locks, &accumulate,
                                   &h);
        break;
    case BENCH_SPIN_COPY:
        pspin_copy_handlers(&h);
        break;
    case BENCH_SPIN_AGGREGATE:
        pspin_aggregate_handlers(&left.sum, &h);
        break;
    case BENCH_SPIN_HISTOGRAM:
        pspin_histogram_handlers(&left.histogram, &h);
        break;
    case BENCH_SPIN_REDUCE:
        code = PtlHPUAllocMem(self.ni, pspin_reduce_memory(work->size / 8), &left.hpu_memory);
        pspin_reduce_handlers(work->size / 8, UINT64_MAX, left.hpu_memory, (uint64_t *)spin.to,
                              &reduce, &h);
        break;
    default:
        pspin_filter_handlers(&left.set, left.kept, KEPT_ROOM, &h);
        break;
    }
    return link_ok(code, "making the handlers") ? spin_append(LINK_COUNTED, spin.to, work->size, &h)
                                                : -1;
}

/* ---- The jobs, by the CPU ---- */

static void add_doubles(uint64_t size)
{
    double *restrict to = (double *)spin.to;
    const double *restrict from = (const double *)aside();
    for (uint64_t i = 0; i < size / sizeof(*to); i++) {
        to[i] += from[i];
    }
}

static void add_words(uint64_t size)
{
    uint64_t *restrict to = (uint64_t *)spin.to;
    const uint64_t *restrict from = (const uint64_t *)aside();
    for (uint64_t i = 0; i < size / sizeof(*to); i++) {
        to[i] += from[i];
    }
}

static void add_up(uint64_t size)
{
    const uint32_t *from = (const uint32_t *)aside();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < size / sizeof(*from); i++) {
        sum += from[i];
    }
    left.sum.sum += sum;
    left.sum.words += size / sizeof(*from);
}

static void count(uint64_t size)
{
    const uint32_t *from = (const uint32_t *)aside();
    for (uint64_t i = 0; i < size / sizeof(*from); i++) {
        uint64_t *bin =
            from[i] < PSPIN_BINS ? &left.histogram.bin[from[i]] : &left.histogram.beyond;
        ++*bin;
    }
}

/* By a table of the keys, a byte each. */
static void keep(uint64_t size)
{
    static uint8_t wanted[KEY_SPACE + 1];
    const struct record *from = (const struct record *)aside();
    struct record *to = (struct record *)(left.kept + 1);
    if (wanted[KEY_SPACE] == 0) {
        for (uint64_t key = 1; key <= KEYS; key++) {
            wanted[key * (KEY_SPACE / KEYS)] = 1;
        }
    }
    for (uint64_t i = 0; i < size / RECORD; i++) {
        if (wanted[from[i].key]) {
            if (left.kept->records < KEPT_ROOM) {
                to[left.kept->records] = from[i];
            }
            left.kept->records++;
        }
    }
}

static void by_cpu(const struct turn_work *work)
{
    switch (work->bench) {
    case BENCH_SPIN_ACCUMULATE:
        add_doubles(work->size);
        break;
    case BENCH_SPIN_REDUCE:
        add_words(work->size);
        break;
    case BENCH_SPIN_AGGREGATE:
        add_up(work->size);
        break;
    case BENCH_SPIN_HISTOGRAM:
        count(work->size);
        break;
    case BENCH_SPIN_FILTER:
        keep(work->size);
        break;
    default:
        break; /* a copy is there when it has come */
    }
}

/* ---- A turn ---- */

static int clear(void)
{
    static _Alignas(64) uint8_t kept[sizeof(struct pspin_kept) + (size_t)KEPT_ROOM * RECORD];
    left.kept = (struct pspin_kept *)kept;
    left.hpu_memory = PTL_HPU_MEM_NONE;
    memset(kept, 0, sizeof(struct pspin_kept));
    memset(&left.sum, 0, sizeof(left.sum));
    memset(&left.histogram, 0, sizeof(left.histogram));
    memset(spin.to, 0, SPIN_TO);
    messages = 0;
    return start_set();
}

/* Rank 1 has the message as well, to compare with what comes of it. */
static int begin(const struct turn_work *work)
{
    fill(work);
    if (turn_rank() == 1) {
        bool here = spin.way == WAY_CPU && work->bench != BENCH_SPIN_COPY;
        int rc = clear();
        rc = rc != 0 ? rc
             : spin.way != WAY_CPU
                 ? attach(work)
                 : spin_append(LINK_COUNTED, here ? spin.to + ASIDE : spin.to, work->size, NULL);
        if (rc != 0) {
            return rc;
        }
    }
    return spin_ready();
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    messages += iterations;
    return spin_flow(work, iterations, work->size, by_cpu);
}

static int wrong(const char *what)
{
    return turn_fail("%s differs from that of the messages sent", what);
}

static int check_vector(const struct turn_work *work)
{
    if (left.hpu_memory != PTL_HPU_MEM_NONE &&
        !link_ok(
            PtlHPURead(left.hpu_memory, sizeof(struct pspin_reduce_state), spin.to, work->size),
            "PtlHPURead")) {
        return -1;
    }
    for (uint64_t i = 0; i < work->size / 8; i++) {
        uint64_t sent, found;
        double number;
        memcpy(&sent, spin.from + i * 8, sizeof(sent));
        memcpy(&found, spin.to + i * 8, sizeof(found));
        if (work->bench == BENCH_SPIN_ACCUMULATE) {
            memcpy(&number, &sent, sizeof(number));
            number *= (double)messages;
            memcpy(&sent, &number, sizeof(sent));
        } else if (work->bench == BENCH_SPIN_REDUCE) {
            sent *= messages;
        }
        if (found != sent) {
            return wrong("the vector");
        }
    }
    return 0;
}

static int check_numbers(const struct turn_work *work)
{
    uint64_t sum = 0, in_bin_1 = 0, kept = 0;
    for (uint64_t i = 0; i < work->size / 4; i++) {
        uint32_t word;
        memcpy(&word, spin.from + i * 4, sizeof(word));
        sum += word;
        in_bin_1 += word == 1;
    }
    for (uint64_t i = 0; i < work->size / RECORD; i++) {
        uint64_t key;
        memcpy(&key, spin.from + i * RECORD, sizeof(key));
        kept += key % (KEY_SPACE / KEYS) == 0;
    }
    switch (work->bench) {
    case BENCH_SPIN_AGGREGATE:
        return left.sum.sum == sum * messages ? 0 : wrong("the sum");
    case BENCH_SPIN_HISTOGRAM:
        return left.histogram.bin[1] == in_bin_1 * messages ? 0 : wrong("a bin");
    default:
        return left.kept->records == kept * messages ? 0 : wrong("the number of kept records");
    }
}

static int check(const struct turn_work *work)
{
    switch (work->bench) {
    case BENCH_SPIN_ACCUMULATE:
    case BENCH_SPIN_REDUCE:
    case BENCH_SPIN_COPY:
        return check_vector(work);
    default:
        return check_numbers(work);
    }
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    if (turn_rank() == 0) {
        return 0;
    }
    int rc = work->check ? check(work) : 0;
    if (spin_unlink() != 0 ||
        (left.hpu_memory != PTL_HPU_MEM_NONE && PtlHPUFreeMem(left.hpu_memory) != PTL_OK)) {
        return turn_fail("the entry or its HPU memory is still in use");
    }
    return rc;
}

static bool fits(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && work->size % RECORD == 0 &&
           work->size <= SPIN_MESSAGE;
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_ACCUMULATE, fits, begin, run, end}, {BENCH_SPIN_COPY, fits, begin, run, end},
    {BENCH_SPIN_AGGREGATE, fits, begin, run, end},  {BENCH_SPIN_HISTOGRAM, fits, begin, run, end},
    {BENCH_SPIN_REDUCE, fits, begin, run, end},     {BENCH_SPIN_FILTER, fits, begin, run, end},
};

const struct spin_family spin_words = {duties, sizeof(duties) / sizeof(duties[0]),
                                       1u << WAY_HANDLERS | 1u << WAY_CPU};
