/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers do without calls, and what is the same natively and on the RV32 cores all the
 * same: a division that C leaves undefined ends them, atomics of each size are atomic among HPUs.
 */
#include "kit.h"

#include "plain_handlers.h"

#include <sys/mman.h>

enum { BITS = 5, LENGTH = 64, ENTRY = 1 << 17 };

static _Alignas(64) uint8_t memory[ENTRY], data[1 << 16];

static void *entry_memory = memory;

/* Rank 1 has the handlers, with that state; rank 0 puts a message, which ends that way. The state
 * is what the handlers have left. */
static void run(struct kit *k, const ptl_handlers_t *what, void *state, size_t length, int fail)
{
    if (k->p.rank == 1) {
        ptl_handlers_t h = *what;
        OK(PtlHPUAllocMem(k->p.ni, what->hpu_initial_length, &h.hpu_mem));
        h.hpu_initial_state = state;
        ptl_handle_me_t entry = kit_entry(k, entry_memory, ENTRY, BITS, 0, PTL_CT_NONE, &h);
        BARRIER();
        if (fail != PTL_NI_OK) {
            EVENT_FAIL(k->p.eq, PTL_EVENT_PUT, fail);
        }
        BARRIER();
        OK(PtlHPURead(h.hpu_mem, 0, state, what->hpu_initial_length));
        port_unlink(&k->p, entry);
        OK(PtlHPUFreeMem(h.hpu_mem));
    } else {
        BARRIER();
        kit_put_once(k, data, length, 1, BITS, 0, 0, fail);
        BARRIER();
    }
}

/* The quotient or remainder as a plain computation has it, with more bits than are needed. */
static uint64_t divided(const struct plain_division *d)
{
    bool is_signed = (d->kind & PLAIN_SIGNED) != 0, is_long = (d->kind & PLAIN_LONG) != 0;
    __int128 a = is_long     ? is_signed ? (__int128)(int64_t)d->a : (__int128)d->a
                 : is_signed ? (__int128)(int32_t)d->a
                             : (__int128)(uint32_t)d->a;
    __int128 b = is_long     ? is_signed ? (__int128)(int64_t)d->b : (__int128)d->b
                 : is_signed ? (__int128)(int32_t)d->b
                             : (__int128)(uint32_t)d->b;
    return (uint64_t)((d->kind & PLAIN_REMAINDER) != 0 ? a % b : a / b);
}

/* Of each kind: what is defined gives its result, what is not ends the handler, wherever it runs,
 * and the next message is handled. */
PTEST(divisions, 2)
{
    static const struct {
        uint64_t a, b;
    } defined[] = {{100, 7},
                   {(uint64_t)-100, 7},
                   {100, (uint64_t)-7},
                   {0, 1},
                   {5, UINT64_MAX},
                   {(uint64_t)INT32_MIN + 1, UINT64_MAX},
                   {UINT64_C(1) << 62, 3}};
    struct kit k;
    kit_open(&k, rank, size);
    for (uint32_t kind = 0; kind < PLAIN_DIVISIONS; kind++) {
        bool is_long = (kind & PLAIN_LONG) != 0;
        for (size_t i = 0; i < sizeof(defined) / sizeof(defined[0]); i++) {
            struct plain_division d = {defined[i].a, defined[i].b, 0, kind, 0};
            run(&k, &plain_dividing, &d, LENGTH, PTL_NI_OK);
            if (rank == 1) {
                CHECK_EQ(d.result, divided(&d));
            }
        }
        for (uint64_t a = 0; a < 3; a++) {
            struct plain_division d = {a * INT32_MAX, 0, 77, kind, 0};
            run(&k, &plain_dividing, &d, LENGTH, PTL_NI_HANDLER_SEGV);
            if (rank == 1) {
                CHECK_EQ(d.result, 77);
            }
        }
        if ((kind & PLAIN_SIGNED) != 0) {
            struct plain_division d = {is_long ? (uint64_t)INT64_MIN : (uint64_t)INT32_MIN,
                                       UINT64_MAX, 77, kind, 0};
            run(&k, &plain_dividing, &d, LENGTH, PTL_NI_HANDLER_SEGV);
        }
    }
    kit_close(&k);
}

/* The same operations, one after another, as this program does them. */
PTEST(operations, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct plain_atomics s = {.seed = seed}, want = {.seed = seed};
        plain_operations(&want);
        run(&k, &plain_counting, &s, LENGTH, PTL_NI_OK);
        for (int i = 0; i < PLAIN_SIZES && rank == 1; i++) {
            CHECK_EQ(s.cell[i], want.cell[i]);
            for (int j = 0; j < PLAIN_OPERATIONS; j++) {
                CHECK_EQ(s.found[i][j], want.found[i][j]);
            }
        }
    }
    kit_close(&k);
}

/* Packets of messages of two senders at once: nothing is lost, and no half of a word is seen
 * without the other. */
PTEST(shared, 3)
{
    enum { MESSAGES = 4, NUMBERS = 1024 };
    struct kit k;
    kit_open(&k, rank, size);
    uint64_t *number = (uint64_t *)data, all = 2 * MESSAGES * NUMBERS;
    for (uint64_t i = 0; i < NUMBERS; i++) {
        number[i] = 1000 + i;
    }
    if (rank == 1) {
        struct plain_shared s = {.low = UINT64_MAX};
        ptl_handlers_t h = plain_sharing;
        ptl_handle_ct_t ct = port_ct(&k.p);
        OK(PtlHPUAllocMem(k.p.ni, sizeof(s), &h.hpu_mem));
        h.hpu_initial_state = &s;
        ptl_handle_me_t entry = kit_entry(&k, memory, sizeof(memory), BITS, 0, ct, &h);
        BARRIER();
        kit_wait(ct, 2 * MESSAGES);
        OK(PtlHPURead(h.hpu_mem, 0, &s, sizeof(s)));
        uint64_t sum = 2 * MESSAGES * (NUMBERS * 1000 + (uint64_t)NUMBERS * (NUMBERS - 1) / 2);
        CHECK_EQ(s.sum, sum);
        CHECK_EQ(s.swapped, sum);
        CHECK_EQ(s.bits, UINT64_MAX);
        CHECK_EQ(s.low, 1000);
        CHECK_EQ(s.torn, 0);
        CHECK_EQ(s.pair >> 32, s.pair & UINT32_MAX);
        CHECK_EQ(s.left, s.ticket);
        CHECK_EQ(s.short_sums, all / 4 * UINT64_C(0x0001000100010001));
        CHECK_EQ(s.byte_sums, (all / 8 & 0xff) * UINT64_C(0x0101010101010101));
        port_unlink(&k.p, entry);
        OK(PtlHPUFreeMem(h.hpu_mem));
        OK(PtlCTFree(ct));
    } else {
        BARRIER();
        struct kit_sender s = kit_sender(&k, data, NUMBERS * sizeof(*number));
        for (int i = 0; i < MESSAGES; i++) {
            kit_put(&s, 0, NUMBERS * sizeof(*number), 1, BITS, 0, 0);
        }
        kit_flush(&s);
        kit_release(&s);
    }
    kit_close(&k);
}

/* Whose fault it was that a handler was ended: memory of the program that is not there, in a range
 * of the entry, is the program's; all else is the handler's. Target and initiator are told. */
PTEST(blamed, 2)
{
    static struct plain_touching state;
    struct kit k;
    kit_open(&k, rank, size);
    for (int bad = 0; bad < 2; bad++) {
        entry_memory =
            bad == 0 ? memory : mmap(NULL, ENTRY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(entry_memory != MAP_FAILED);
        for (uint32_t how = 0; how < PLAIN_TOUCHES; how++) {
            bool hosts = how < PLAIN_OUTSIDE;
            if (bad != 0 && (how == PLAIN_LOCAL_READ || how == PLAIN_LOCAL_WRITTEN)) {
                continue; /* both are wrong */
            }
            state = (struct plain_touching){.how = how};
            run(&k, &plain_touching, &state, LENGTH,
                !hosts     ? PTL_NI_HANDLER_SEGV
                : bad != 0 ? PTL_NI_SEGV
                           : PTL_NI_OK);
        }
    }
    CHECK(PTL_NI_HANDLER_SEGV != PTL_NI_SEGV);
    kit_close(&k);
}
