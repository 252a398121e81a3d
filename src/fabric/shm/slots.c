/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of our own segment that nobody is connected by: given back, banned, found to be dead
 * ones'; wall 3.
 */
#include "fabric/shm/shm.h"

#include <errno.h>
#include <string.h>

/* The owner word of a slot that nobody may have: no address (PIDs of NID 0 do not exist). Either
 * its claimant may still write to it, fabric->banned says who that is, and the slot is free when it
 * is gone; or the receiver is about to free it, and no sender may take it over meanwhile. */
#define OWNER_BANNED 1u

bool slot_is_claimed(uint64_t owner)
{
    return owner > OWNER_BANNED;
}

/* Whether the process that claimed a slot still lives. An unready slot does not
 * say yet which incarnation claimed it. */
static bool claimant_alive(struct fabric *f, uint64_t owner, const struct slot *slot)
{
    char error[512];
    struct segment *s;
    int rc = segment_open(f->options, (uint32_t)(owner >> 32), (uint32_t)owner, &s, error,
                          sizeof(error));
    if (rc != 0) {
        return rc != -ENOENT; /* it may live, and only cannot be asked */
    }
    bool alive =
        atomic_load(&slot->ready) == SLOT_UNREADY || s->info.incarnation == slot->incarnation;
    segment_release(s, false);
    return alive;
}

void clear_slot(struct fabric *f, struct slot *slot, unsigned index)
{
    const struct segment_info *g = &f->segment->info;
    /* First, so that a sender which finds the slot unready also finds it taken; see take_slot(). */
    atomic_store(&f->segment->header->owner[index], OWNER_BANNED);
    full_fence();
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        memset(slot_ring(slot, c, g->ring_lines), 0, (size_t)g->ring_lines * RECORD_LINE);
    }
    memset(slot, 0, SLOT_HEADER_BYTES);
    atomic_store_explicit(&f->segment->header->owner[index], 0, memory_order_release);
}

void ban_slot(struct fabric *f, unsigned index, const struct fabric_address *who)
{
    f->banned[index] = *who;
    atomic_store(&f->segment->header->owner[index], OWNER_BANNED);
}

/* Gives a banned slot back when nobody has it mapped any more who may write to it. */
static void pardon_slot(struct fabric *f, unsigned index)
{
    const struct fabric_address *who = &f->banned[index];
    int rc;
    if (segment_left(f->options, who->nid, who->pid, &who->incarnation)) {
        struct slot *slot = segment_slot(f->segment, index, true, &rc);
        if (slot != NULL) {
            clear_slot(f, slot, index);
        }
    }
}

/* Frees a slot whose claimant seems to have died before it was ready. Its address may have another
 * owner by now, who took the slot over; and who closes its NIC may still be about to fill it. So
 * the slot is withheld from then on, and asked is who may write there. */
static void reclaim_slot(struct fabric *f, unsigned index, uint64_t owner, struct slot *slot)
{
    _Atomic uint64_t *word = &f->segment->header->owner[index];
    uint64_t expected = owner;
    if (!atomic_compare_exchange_strong(word, &expected, OWNER_BANNED)) {
        return;
    }
    bool gone = segment_left(f->options, (uint32_t)(owner >> 32), (uint32_t)owner, NULL);
    bool ready = atomic_load(&slot->ready) != SLOT_UNREADY;
    atomic_store(word, gone && !ready ? 0 : owner);
    if (ready) {
        set_bit(f, index);
    }
}

void sweep_slots(struct fabric *f)
{
    struct segment_header *h = f->segment->header;
    for (unsigned i = 0; i < f->segment->info.slots; i++) {
        uint64_t owner = atomic_load(&h->owner[i]);
        int rc;
        if (owner == OWNER_BANNED) {
            pardon_slot(f, i);
            continue;
        }
        struct slot *slot = slot_is_claimed(owner) && f->by_slot[i] == NULL
                                ? segment_slot(f->segment, i, true, &rc)
                                : NULL;
        if (slot == NULL || claimant_alive(f, owner, slot)) {
            continue;
        }
        if (atomic_load(&slot->ready) == SLOT_UNREADY) {
            reclaim_slot(f, i, owner, slot);
        } else {
            /* It may have sent something: it is met, then buried. */
            set_bit(f, i);
        }
    }
}
