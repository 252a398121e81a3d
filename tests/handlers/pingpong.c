/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/pingpong: all lengths both ways, each client with an entry of its own; the
 * bytes come back to where they were, and a streamed ping leaves nothing behind. And streamed, all
 * clients at one entry at the same time.
 *
 *      rank 0: the server       the others: clients
 */
#include "kit.h"

#include "pingpong.h"

enum { PING_BITS = 100, ANSWER_BITS = 1, ROUNDS = 5 };

/* At the server: an entry for each client, for pings of this length. */
static void serve(struct kit *k, enum pingpong_way way, size_t length, unsigned char **memory,
                  ptl_handle_me_t *entry)
{
    for (int r = 1; r < k->p.size; r++) {
        struct pingpong_state state;
        ptl_handlers_t h;
        pingpong_handlers(way, length, k->packet, ANSWER_BITS, &state, &h);
        memory[r] = kit_memory(length);
        entry[r] = kit_entry(k, memory[r], length, PING_BITS + (uint64_t)r, 0, PTL_CT_NONE, &h);
    }
}

/* The bytes of an answer may come in many messages: its counter counts them. */
static void play(struct kit *k, size_t length)
{
    unsigned char *ping = kit_memory(length), *pong = kit_memory(length + 1);
    ptl_handle_ct_t ct = port_ct(&k->p);
    ptl_handle_me_t entry =
        kit_entry(k, pong, length, ANSWER_BITS, PTL_ME_EVENT_CT_BYTES, ct, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned seed = (unsigned)k->p.rank * 100 + round;
        ptest_fill(ping, length, seed);
        memset(pong, 0xcc, length + 1);
        kit_put_once(k, ping, length, 0, PING_BITS + (uint64_t)k->p.rank, 0, 0, PTL_NI_OK);
        kit_wait(ct, (round + 1) * length);
        CHECK_FILL(pong, length, seed);
        CHECK_EQ(pong[length], 0xcc);
    }
    port_unlink(&k->p, entry);
    OK(PtlCTFree(ct));
    free(ping);
    free(pong);
}

static void all_lengths(int rank, int size, enum pingpong_way way)
{
    struct kit k;
    unsigned char *memory[PTEST_RANKS];
    ptl_handle_me_t entry[PTEST_RANKS];
    kit_open(&k, rank, size);
    for (int i = 1; i < KIT_SIZES; i++) { /* of no bytes there is no answer to count */
        size_t length = kit_size(&k, i);
        bool kept = way == PINGPONG_STORED && length > k.packet;
        if (rank == 0) {
            serve(&k, way, length, memory, entry);
        }
        BARRIER();
        if (rank != 0) {
            play(&k, length);
        }
        BARRIER();
        for (int r = 1; rank == 0 && r < size; r++) {
            if (kept) {
                CHECK_FILL(memory[r], length, (unsigned)r * 100 + ROUNDS - 1);
            } else {
                CHECK_BYTES(memory[r], length, 0);
            }
            port_unlink(&k.p, entry[r]);
            free(memory[r]);
        }
    }
    kit_close(&k);
}

PTEST(stored, 2)
{
    all_lengths(rank, size, PINGPONG_STORED);
}

PTEST(streamed, 2)
{
    all_lengths(rank, size, PINGPONG_STREAMED);
}

PTEST(stored_for_three, 4)
{
    all_lengths(rank, size, PINGPONG_STORED);
}

PTEST(streamed_for_three, 4)
{
    all_lengths(rank, size, PINGPONG_STREAMED);
}

/* Each client has several pings under way, all at one entry. */
PTEST(streamed_at_one_entry, 6)
{
    enum { PINGS = 8 };
    struct kit k;
    struct pingpong_state state;
    ptl_handlers_t h;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    kit_open(&k, rank, size);
    size_t length = 5 * k.packet + 77;
    if (rank == 0) {
        pingpong_handlers(PINGPONG_STREAMED, length, k.packet, ANSWER_BITS, &state, &h);
        entry = kit_entry(&k, kit_memory(0), 0, PING_BITS, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank != 0) {
        unsigned char *ping = kit_memory(length), *pong = kit_memory(length + 1);
        ptl_handle_ct_t ct = port_ct(&k.p);
        ptl_handle_me_t answers =
            kit_entry(&k, pong, length, ANSWER_BITS, PTL_ME_EVENT_CT_BYTES, ct, NULL);
        struct kit_sender s = kit_sender(&k, ping, length);
        BARRIER();
        ptest_fill(ping, length, (unsigned)rank);
        for (int i = 0; i < PINGS; i++) {
            kit_put(&s, 0, length, 0, PING_BITS, 0, 0);
        }
        kit_flush(&s);
        kit_wait(ct, PINGS * length);
        CHECK_FILL(pong, length, (unsigned)rank);
        BARRIER();
        kit_release(&s);
        port_unlink(&k.p, answers);
        OK(PtlCTFree(ct));
    } else {
        BARRIER();
        BARRIER();
        port_unlink(&k.p, entry);
    }
    kit_close(&k);
}
