/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the receiver finds messages.
 *
 *   poll      looks at the rings of the peers that it listens to; then goes on with messages in
 *             progress, sends and teardowns
 *   peek      says whether poll would find a message or a new bit, without the lock: by the lines
 *             in `next`, and the bits in `known`
 *   new bits  those of other peers in the segment's bitmap, and its flags: poll begins to listen
 *
 * A bit stays set, and polls look at its ring, until arm() (shm.c) finds the connection quiet.
 */
#include "fabric/shm/poll.h"

#include "base/tsan.h"
#include "fabric/shm/asks.h"
#include "fabric/shm/connect.h"
#include "fabric/shm/receive.h"
#include "fabric/shm/slots.h"
#include "fabric/shm/teardown.h"
#include "fabric/shm/tx_payload.h"

#define NEW_BITS_POLLS 16 /* polls with work between two looks for new connections */
#define NEWS_FLAGS (SEGMENT_SWEEP | SEGMENT_LEFT | SEGMENT_ASKED)

static bool is_known(const struct shm_fabric *f, const struct shm_peer *p)
{
    return (atomic_load_explicit(&f->known[p->in_index / 64], memory_order_relaxed) &
            1ull << (p->in_index % 64)) != 0;
}

static void flip_known(struct shm_fabric *f, const struct shm_peer *p)
{
    _Atomic uint64_t *word = &f->known[p->in_index / 64];
    uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, bits ^ 1ull << (p->in_index % 64), memory_order_relaxed);
}

static void set_listener(struct shm_fabric *f, struct shm_peer *p, unsigned at)
{
    p->listening_at = at;
    f->listening[at] = p;
    shm_rx_announce(p, f->next[at]);
}

void shm_listen(struct shm_fabric *f, struct shm_peer *p)
{
    if (!is_known(f, p)) {
        unsigned count = atomic_load_explicit(&f->listening_count, memory_order_relaxed);
        flip_known(f, p);
        set_listener(f, p, count);
        atomic_store_explicit(&f->listening_count, count + 1, memory_order_release);
    }
}

void shm_ignore(struct shm_fabric *f, struct shm_peer *p)
{
    if (is_known(f, p)) {
        unsigned last = atomic_load_explicit(&f->listening_count, memory_order_relaxed) - 1;
        flip_known(f, p);
        set_listener(f, f->listening[last], p->listening_at);
        shm_rx_announce(p, NULL);
        atomic_store_explicit(&f->listening_count, last, memory_order_relaxed);
    }
}

/* Acts on the segment's doorbell, in which a sender sets the bit of its slot when it begins to
 * send. A connection whose bit is new is served and from now on polled by itself (shm_listen()).
 * Flags of the doorbell tell that an ask waits, or that slots of senders that have died are to be
 * freed. */
static __attribute__((noinline)) bool take_up_new_bits(struct shm_fabric *f)
{
    bool moved = false;
    uint32_t wishes =
        atomic_load_explicit(&f->segment->header->flags, memory_order_relaxed) & NEWS_FLAGS;
    if (wishes != 0) {
        atomic_fetch_and(&f->segment->header->flags, ~wishes);
        shm_attend(f);
        moved = true;
    }
    if ((wishes & SEGMENT_SWEEP) != 0) {
        sweep_slots(f);
    }
    if ((wishes & SEGMENT_ASKED) != 0) {
        asks_note(f);
    }
    for (unsigned w = 0; w < f->words; w++) {
        uint64_t known = atomic_load_explicit(&f->known[w], memory_order_relaxed);
        uint64_t bits =
            atomic_load_explicit(&f->segment->header->bitmap[w], memory_order_relaxed) & ~known;
        for (; bits != 0; bits &= bits - 1) {
            unsigned index = w * 64 + (unsigned)__builtin_ctzll(bits);
            if (index >= f->segment->info.slots) {
                clear_bit(f, index);
                continue;
            }
            struct shm_peer *p = f->by_slot[index];
            if (p == NULL) {
                p = accept_slot(f, index);
                moved |= p != NULL;
            }
            if (p != NULL) {
                shm_listen(f, p);
                moved |= !p->dying && shm_rx_advance(p);
            }
        }
    }
    return moved;
}

/* Whether the doorbell line has anything that take_up_new_bits() would act on. */
static bool has_new_bits(struct shm_fabric *f)
{
    const struct segment_header *h = atomic_load_explicit(&f->header, memory_order_relaxed);
    unsigned words = atomic_load_explicit(&f->words, memory_order_relaxed);
    uint64_t fresh = atomic_load_explicit(&h->flags, memory_order_relaxed) & NEWS_FLAGS;
    for (unsigned w = 0; w < words; w++) {
        fresh |= atomic_load_explicit(&h->bitmap[w], memory_order_relaxed) &
                 ~atomic_load_explicit(&f->known[w], memory_order_relaxed);
    }
    return fresh != 0;
}

/* Looks at the rings of all peers that are listened to. The bit of such a peer stays set until
 * arm() finds the connection quiet. Handlers may run without the lock meanwhile, and the list may
 * change. */
static bool poll_slots(struct shm_fabric *f)
{
    bool moved = false;
    for (unsigned i = 0; i < f->listening_count; i++) {
        struct shm_peer *p = f->listening[i];
        if (likely(!p->dying)) {
            moved |= shm_rx_advance(p);
        }
    }
    /* While there is other work, new bits wait for a few polls. */
    if (unlikely(!moved || ++f->busy_polls % NEW_BITS_POLLS == 0) && unlikely(has_new_bits(f))) {
        moved |= take_up_new_bits(f);
    }
    return moved;
}

/* Goes on with the teardown of one dying peer. Handlers may run without the lock meanwhile, so the
 * list of peers is not read afterwards. A peer that lives and goes on sending gets no more of a
 * poll than others. */
static bool tear_down_one(struct shm_fabric *f)
{
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if (p->dying) {
            list_remove(&p->link); /* moves to the end, so that each dying peer has its turn */
            list_push_back(&f->peers, &p->link);
            return peer_empty(p) || peer_tear_down(p);
        }
    }
    return false;
}

static bool poll_active(struct shm_fabric *f)
{
    bool moved = false;
    for (struct list *l = f->active.next, *next; l != &f->active; l = next) {
        next = l->next;
        struct shm_peer *p = container_of(l, struct shm_peer, active);
        if (p->dying) {
            continue;
        }
        moved |= tx_advance(p);
        if (!tx_pending(p)) {
            list_remove(&p->active);
        } else if (segment_closed(p->remote)) {
            peer_lost(p, NULL);
        }
    }
    return moved;
}

/* Whether a message is in progress or being sent, or a peer is to be torn down. */
static bool in_progress(struct shm_fabric *f)
{
    for (unsigned i = 0; i < f->listening_count; i++) {
        struct shm_peer *p = f->listening[i];
        bool left = atomic_load_explicit(&p->in->ready, memory_order_relaxed) == SLOT_LEFT;
        if ((shm_rx_state(p) & (RX_OURS | RX_AWAITS)) != 0 || left) {
            return true;
        }
    }
    return !list_empty(&f->active) || !list_empty(&f->asking) || f->dying != 0;
}

/* The rest of a poll while `attention` is set: sends, messages in progress, teardowns.
 * in_progress() keeps `attention` set as long as there are any. */
static __attribute__((noinline)) bool poll_rest(struct shm_fabric *f, bool moved)
{
    if (!list_empty(&f->active)) {
        moved |= poll_active(f);
    }
    if (!list_empty(&f->asking)) {
        moved |= asks_poll(f);
    }
    if (f->dying != 0) {
        moved |= tear_down_one(f);
    }
    if (!moved) {
        atomic_store_explicit(&f->attention, in_progress(f), memory_order_relaxed);
    }
    return moved;
}

bool shm_poll(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    bool moved = poll_slots(f);
    bool more = atomic_load_explicit(&f->attention, memory_order_relaxed);
    return unlikely(more) ? poll_rest(f, moved) : moved;
}

/* Whether the record at `next` has been written. Between the caller's load of `next` and this load
 * of the record's word, another thread may take the record out, and the sender may write its line
 * anew, payload included; then the answer was right a moment ago. */
static TSAN_IGNORES bool record_seen(uintptr_t next)
{
    const volatile uint32_t *word = (const volatile uint32_t *)(next & ~(uintptr_t)RECORD_TAG);
    return ((*word ^ next) & RECORD_TAG) == 0;
}

bool shm_peek(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    unsigned count = atomic_load_explicit(&f->listening_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned c = 0; c < LARGE_CLASSES; c++) {
            uintptr_t next = atomic_load_explicit(&f->next[i][c], memory_order_relaxed);
            if (record_seen(next)) {
                return true;
            }
        }
    }
    return atomic_load_explicit(&f->attention, memory_order_relaxed) || has_new_bits(f);
}

void shm_foresee(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    if (atomic_load_explicit(&f->listening_count, memory_order_acquire) != 0) {
        uintptr_t next = atomic_load_explicit(&f->next[0][FABRIC_REQUEST], memory_order_relaxed);
        __builtin_prefetch((const void *)next);
    }
}
