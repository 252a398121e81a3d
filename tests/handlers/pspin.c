/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/pspin: all lengths, and three senders at once, each kernel against a plain
 * loop over what was sent.
 *
 *      ranks 0 to 2: senders        the last rank: the entry
 */
#include "kit.h"

#include "pspin.h"

enum { BITS = 1 };

/* What a sender sends as message m: words of which some are small. */
static size_t message(const struct kit *k, int sender, int m, size_t unit, uint32_t *word)
{
    size_t length = kit_size(k, m) / unit * unit;
    uint64_t r = (uint64_t)sender * 1000 + (uint64_t)m;
    for (size_t i = 0; i < length / sizeof(*word); i++) {
        uint64_t n = splitmix(&r);
        word[i] = (uint32_t)(n % 4 == 0   ? n >> 32
                             : n % 4 == 1 ? (n >> 8) % 20
                                          : (n >> 8) % (PSPIN_BINS + 10));
    }
    return length;
}

/* All messages of this sender, one after the other in memory, all under way at once. */
static void send_all(struct kit *k, size_t unit)
{
    size_t most = KIT_SIZES * (kit_largest(k) + 64), at = 0;
    unsigned char *memory = kit_memory(most);
    struct kit_sender s = kit_sender(k, memory, most);
    for (int m = 0; m < KIT_SIZES; m++) {
        size_t length = message(k, k->p.rank, m, unit, (uint32_t *)(memory + at));
        kit_put(&s, at, length, k->p.size - 1, BITS, 0, 0);
        at += (length + 63) / 64 * 64;
    }
    kit_flush(&s);
    kit_release(&s);
    free(memory);
}

/* Runs `each` on every message that was sent. */
static void for_all(struct kit *k, size_t unit, void (*each)(const uint32_t *word, size_t length))
{
    uint32_t *word = kit_memory(kit_largest(k));
    for (int sender = 0; sender < k->p.size - 1; sender++) {
        for (int m = 0; m < KIT_SIZES; m++) {
            each(word, message(k, sender, m, unit, word));
        }
    }
    free(word);
}

/* The round of a kernel: true at the rank with the entry, when all has been sent. */
static bool round_of(struct kit *k, const ptl_handlers_t *h, size_t unit)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    bool target = k->p.rank == k->p.size - 1;
    if (target) {
        entry = kit_entry(k, NULL, 0, BITS, 0, PTL_CT_NONE, h);
    }
    BARRIER();
    if (!target) {
        send_all(k, unit);
    }
    BARRIER();
    if (target) {
        port_unlink(&k->p, entry);
    }
    return target;
}

PTEST(copy, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    size_t most = kit_largest(&k);
    unsigned char *memory = kit_memory(most + 1);
    ptl_handlers_t h;
    pspin_copy_handlers(&h);
    if (rank == 1) {
        kit_entry(&k, memory, most, BITS, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    for (int m = 0; m < KIT_SIZES; m++) {
        size_t length = kit_size(&k, m);
        memset(memory, 0x77, most);
        BARRIER();
        if (rank == 0) {
            ptest_fill(memory, length, (unsigned)m);
            kit_put_once(&k, memory, length, 1, BITS, 0, 0, PTL_NI_OK);
        }
        BARRIER();
        CHECK_FILL(memory, length, (unsigned)m);
        CHECK_BYTES(memory + length, most - length, 0x77);
    }
    BARRIER(); /* what comes now writes where rank 1 has looked */
    if (rank == 0) {
        kit_put_once(&k, memory, most + 1, 1, BITS, 0, 0, PTL_NI_HANDLER_SEGV);
    } else {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_SEGV);
    }
    kit_close(&k);
}

static struct pspin_sum sum, want_sum;

static void add_words(const uint32_t *word, size_t length)
{
    for (size_t i = 0; i < length / 4; i++) {
        want_sum.sum += word[i];
        want_sum.words++;
    }
}

PTEST(aggregate, 4)
{
    struct kit k;
    ptl_handlers_t h;
    kit_open(&k, rank, size);
    pspin_aggregate_handlers(&sum, &h);
    if (round_of(&k, &h, 4)) {
        for_all(&k, 4, add_words);
        CHECK_EQ(sum.words, want_sum.words);
        CHECK_EQ(sum.sum, want_sum.sum);
    }
    kit_close(&k);
}

static struct pspin_histogram histogram, want_histogram;

static void count_words(const uint32_t *word, size_t length)
{
    for (size_t i = 0; i < length / 4; i++) {
        if (word[i] < PSPIN_BINS) {
            want_histogram.bin[word[i]]++;
        } else {
            want_histogram.beyond++;
        }
    }
}

PTEST(count_bins, 4)
{
    struct kit k;
    ptl_handlers_t h;
    kit_open(&k, rank, size);
    pspin_histogram_handlers(&histogram, &h);
    if (round_of(&k, &h, 4)) {
        for_all(&k, 4, count_words);
        CHECK(want_histogram.beyond > 0 && want_histogram.bin[PSPIN_BINS - 1] > 0);
        CHECK_SAME(&histogram, &want_histogram, sizeof(histogram));
    }
    kit_close(&k);
}

PTEST(reduce, 4)
{
    enum { ROUNDS = 5 };
    struct kit k;
    kit_open(&k, rank, size);
    for (int m = 0; m < KIT_SIZES; m++) {
        size_t elements = kit_size(&k, m) / 8, length = elements * 8;
        uint64_t *vector = kit_memory(length), *want = kit_memory(length);
        struct pspin_reduce_state state;
        ptl_handle_hpu_mem_t memory;
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        ptl_handlers_t h;
        if (rank == 3) {
            OK(PtlHPUAllocMem(k.p.ni, pspin_reduce_memory(elements), &memory));
            pspin_reduce_handlers(elements, 3 * ROUNDS, memory, vector, &state, &h);
            entry = kit_entry(&k, NULL, 0, BITS, 0, PTL_CT_NONE, &h);
        }
        BARRIER();
        if (rank < 3) {
            struct kit_sender s = kit_sender(&k, vector, length);
            for (size_t i = 0; i < elements; i++) {
                vector[i] = ((uint64_t)rank << 60) + i * i;
            }
            for (int r = 0; r < ROUNDS; r++) {
                kit_put(&s, 0, length, 3, BITS, 0, 0);
            }
            kit_flush(&s);
            kit_release(&s);
            if (m == 5) {
                kit_put_once(&k, vector, length - 8, 3, BITS, 0, 0, PTL_NI_HANDLER_FAIL);
            }
        }
        BARRIER();
        if (rank == 3) {
            for (size_t i = 0; i < elements; i++) {
                want[i] = ROUNDS * (((uint64_t)3 << 60) + 3 * i * i);
            }
            CHECK_SAME(vector, want, length);
            for (int i = 0; i < (m == 5 ? 3 : 0); i++) {
                EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
            }
            port_unlink(&k.p, entry);
            OK(PtlHPUFreeMem(memory));
        }
        free(vector);
        free(want);
    }
    CHECK_EQ(pspin_reduce_memory(UINT64_MAX / 8), UINT64_MAX);
    kit_close(&k);
}

/* ---- filter ---- */

static struct pspin_filter_state set;
static unsigned char *wanted; /* records that pass */
static size_t wanted_records;

/* Keys of the set: two words that are small. */
static bool is_key(uint64_t key)
{
    return (uint32_t)key < 30 && (uint32_t)(key >> 32) < 20;
}

static void filter_words(const uint32_t *word, size_t length)
{
    for (size_t at = 0; at < length; at += set.record) {
        uint64_t key;
        memcpy(&key, (const char *)word + at, 8);
        if (is_key(key)) {
            memcpy(wanted + wanted_records++ * set.record, (const char *)word + at, set.record);
        }
    }
}

static int compare_records(const void *a, const void *b)
{
    return memcmp(a, b, set.record);
}

static void filter_round(struct kit *k, uint64_t record, uint64_t room)
{
    ptl_handlers_t h;
    struct pspin_kept *kept = kit_memory(sizeof(*kept) + room * record + 1);
    OK(pspin_filter_start(&set, record));
    for (uint64_t low = 0; low < 30; low++) {
        for (uint64_t high = 0; high < 20; high++) {
            OK(pspin_filter_add(&set, high << 32 | low));
        }
    }
    pspin_filter_handlers(&set, kept, room, &h);
    if (round_of(k, &h, record)) {
        wanted = kit_memory(3 * KIT_SIZES * kit_largest(k));
        wanted_records = 0;
        for_all(k, record, filter_words);
        CHECK(wanted_records > 10);
        CHECK_EQ(kept->records, wanted_records);
        if (room >= wanted_records) { /* in any order: packets come so */
            qsort(wanted, wanted_records, record, compare_records);
            qsort(kept + 1, wanted_records, record, compare_records);
            CHECK_SAME(kept + 1, wanted, wanted_records * record);
        } else {
            for (uint64_t i = 0; i < room; i++) {
                uint64_t key;
                memcpy(&key, (char *)(kept + 1) + i * record, 8);
                CHECK(is_key(key));
            }
        }
        free(wanted);
    }
    free(kept);
}

PTEST(filter, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    filter_round(&k, 8, 100000);
    filter_round(&k, 16, 100000);
    filter_round(&k, 32, 100000);
    filter_round(&k, 8, 7);
    filter_round(&k, 8, 0);
    kit_close(&k);
}

PTEST(full_set, 1)
{
    OK(pspin_filter_start(&set, 8));
    INVALID(pspin_filter_start(&set, 24));
    OK(pspin_filter_start(&set, 64));
    for (uint64_t i = 0; i < PSPIN_KEYS; i++) {
        OK(pspin_filter_add(&set, i << 20));
        OK(pspin_filter_add(&set, i << 20)); /* is there */
    }
    CHECK_CODE(pspin_filter_add(&set, 1), PTL_NO_SPACE);
    OK(pspin_filter_add(&set, 0));
}

/* What is not whole is told. */
PTEST(not_whole, 2)
{
    struct kit k;
    ptl_handlers_t h[3];
    kit_open(&k, rank, size);
    OK(pspin_filter_start(&set, 8));
    struct pspin_kept kept = {0};
    pspin_aggregate_handlers(&sum, &h[0]);
    pspin_histogram_handlers(&histogram, &h[1]);
    pspin_filter_handlers(&set, &kept, 0, &h[2]);
    for (uint64_t i = 0; i < 3 && rank == 1; i++) {
        kit_entry(&k, NULL, 0, BITS + i, 0, PTL_CT_NONE, &h[i]);
    }
    BARRIER();
    for (uint64_t i = 0; i < 3 && rank == 0; i++) {
        kit_put_once(&k, "eleven byte", 11, 1, BITS + i, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (uint64_t i = 0; i < 3 && rank == 1; i++) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    kit_close(&k);
}
