/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the receiver finds asks. They are rare, so polls do not look at their rings: the sender sets
 * its bit in `asked`, then SEGMENT_ASKED, which is in the doorbell line that polls read anyway, and
 * rings. A receiver that finds the flag clears the bits, and looks at the rings of these peers at
 * each poll, until they are empty and no ask is in progress.
 *
 *   sender    record ──► bit in `asked` ──► SEGMENT_ASKED ──► doorbell (invariant set 1)
 *   receiver  SEGMENT_ASKED cleared ──► bits taken ──► fabric->asking ──► record
 *
 * So an ask that comes while the bits are taken is seen now, or by the flag that it sets itself.
 * The bit of a peer that is not connected yet is ignored: its ring is looked at when it is.
 */
#include "fabric/shm/asks.h"

#include "base/killpoint.h"
#include "fabric/shm/receive.h"
#include "fabric/shm/send.h"

void asks_tell(struct shm_peer *p)
{
    struct segment_header *h = p->remote->header;
    KILL_POINT("ask-untold");
    atomic_fetch_or(&h->asked[p->out_index / 64], 1ull << (p->out_index % 64));
    KILL_POINT("ask-bit-set");
    atomic_fetch_or(&h->flags, SEGMENT_ASKED);
    KILL_POINT("ask-flagged");
    shm_signal(p);
}

void asks_attend(struct shm_peer *p)
{
    struct shm_fabric *f = p->fabric;
    if (list_empty(&p->asking)) {
        list_push_back(&f->asking, &p->asking);
    }
    shm_attend(f);
}

void asks_note(struct shm_fabric *f)
{
    for (unsigned w = 0; w < f->words; w++) {
        uint64_t bits = atomic_exchange(&f->segment->header->asked[w], 0);
        for (; bits != 0; bits &= bits - 1) {
            KILL_POINT("ask-noted");
            unsigned index = w * 64 + (unsigned)__builtin_ctzll(bits);
            if (index < f->segment->info.slots && f->by_slot[index] != NULL) {
                asks_attend(f->by_slot[index]);
            }
        }
    }
}

bool asks_poll(struct shm_fabric *f)
{
    bool moved = false;
    /* Each peer moves to the end of the list before its turn, as the list may change while a
     * handler runs and the lock is free. */
    for (unsigned n = list_count(&f->asking); n != 0 && !list_empty(&f->asking); n--) {
        struct shm_peer *p = container_of(f->asking.next, struct shm_peer, asking);
        list_remove(&p->asking);
        list_push_back(&f->asking, &p->asking);
        if (p->dying) {
            continue; /* teardown.c takes its asks */
        }
        moved |= shm_rx_asks(p);
        if (!shm_rx_asked(p)) {
            list_remove(&p->asking);
        }
    }
    return moved;
}
