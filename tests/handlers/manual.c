/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The example of the manual page of PtlHandlerPutFromDevice, which answers each packet with itself:
 * several clients at once, and each has its own answers. CMakeLists.txt takes the handler from the
 * page.
 */
#include "kit.h"

#include "spin_handler.h"

enum { ASK_BITS = 31, ANSWER_BITS = 32, ROUNDS = 20, PACKETS = 9 };

int echo(const ptl_payload_t p, void *state);

/* The bytes of an answer come in many messages: its counter counts them. */
static void play(struct kit *k)
{
    size_t length = PACKETS * k->packet;
    uint8_t *ask = kit_memory(length), *answer = kit_memory(length);
    ptl_handle_ct_t ct = port_ct(&k->p);
    ptl_handle_me_t entry =
        kit_entry(k, answer, length, ANSWER_BITS, PTL_ME_EVENT_CT_BYTES, ct, NULL);
    struct kit_sender s = kit_sender(k, ask, length);
    BARRIER();
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned seed = (unsigned)k->p.rank * 100 + round;
        ptest_fill(ask, length, seed);
        kit_put(&s, 0, length, 0, ASK_BITS, 0, ANSWER_BITS);
        kit_flush(&s);
        kit_wait(ct, (round + 1) * length);
        CHECK_FILL(answer, length, seed);
    }
    BARRIER();
    kit_release(&s);
    port_unlink(&k->p, entry);
    OK(PtlCTFree(ct));
}

static void clients(int rank, int size)
{
    struct kit k;
    const ptl_handlers_t h = {.payload_handler = echo, .hpu_mem = PTL_HPU_MEM_NONE};
    kit_open(&k, rank, size);
    if (rank == 0) {
        ptl_handle_me_t entry = kit_entry(&k, kit_memory(0), 0, ASK_BITS, 0, PTL_CT_NONE, &h);
        BARRIER();
        BARRIER();
        port_unlink(&k.p, entry);
    } else {
        play(&k);
    }
    kit_close(&k);
}

PTEST(one_client, 2)
{
    clients(rank, size);
}

PTEST(two_clients, 3)
{
    clients(rank, size);
}

PTEST(five_clients, 6)
{
    clients(rank, size);
}
