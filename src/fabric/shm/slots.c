/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of the own segment that have no connection: freed, withheld from a claimant that broke
 * the rules or is refused, or found to be those of dead processes; invariant set 3. */
#include "fabric/shm/slots.h"

#include "base/log.h"
#include "fabric/shm/teardown.h"

#include <string.h>

bool slot_is_claimed(uint64_t owner)
{
    return owner > OWNER_ASKED;
}

/* Whether the process that has claimed a slot still lives. A slot that is not ready does not say
 * yet which incarnation claimed it. */
static bool claimant_alive(struct shm_fabric *f, uint64_t owner, const struct slot *slot)
{
    struct reason why;
    struct segment *s;
    int rc = segment_open(f->setup.options, (uint32_t)(owner >> 32), (uint32_t)owner, &s, &why);
    if (rc != 0) {
        return rc != -ENOENT; /* it may live: it only cannot be found out */
    }
    bool alive =
        atomic_load(&slot->ready) == SLOT_UNREADY || s->info.incarnation == slot->incarnation;
    segment_release(s, false);
    return alive;
}

void clear_slot(struct shm_fabric *f, struct slot *slot, unsigned index)
{
    const struct segment_info *g = &f->segment->info;
    /* Stored first, so that a sender which finds the slot unready also finds it taken:
     * take_slot(). */
    atomic_store(&f->segment->header->owner[index], OWNER_BANNED);
    full_fence();
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        memset(slot_ring(slot, c, g->ring_lines), 0,
               class_lines(c, g->ring_lines) * (size_t)RECORD_LINE);
    }
    memset(slot, 0, SLOT_HEADER_BYTES);
    f->refuse_at[index] = 0;
    atomic_store_explicit(&f->segment->header->owner[index], 0, memory_order_release);
}

void withhold_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                   bool broken)
{
    f->withheld[index] = *who;
    f->refuse_at[index] = 0;
    atomic_store(&f->segment->header->owner[index], broken ? OWNER_BANNED : OWNER_REFUSED);
}

void put_off_slot(struct shm_fabric *f, unsigned index, const struct fabric_address *who,
                  const char *why)
{
    int64_t now = clock_ns();
    char note[LOG_NOTE];
    if (f->refuse_at[index] == 0) {
        f->refuse_at[index] = now + f->setup.options->number[OPT_CONNECT_MS] * 1000000;
    }
    if (now < f->refuse_at[index]) {
        f->put_off = true;
        return;
    }
    withhold_slot(f, index, who, false);
    if (log_again((uintptr_t)put_off_slot, now, note)) {
        log_line(LOG_WARN, "messages of %s are refused, since no answer can reach it: %s%s",
                 peer_name(who).text, why, note);
    }
}

/* Frees a slot if no process may write to it any more. Its owner word has the address of a claimant
 * that seems to have died before it was ready, or says that the slot is withheld. A living NIC may
 * have that address by now and have taken the slot over, and a NIC that is closing may be about to
 * fill it. So the owner word becomes OWNER_ASKED, which keeps others from claiming the slot, before
 * it is found out whether the claimant is gone. */
static void free_slot(struct shm_fabric *f, unsigned index, uint64_t owner, struct slot *slot)
{
    const struct fabric_address *who = &f->withheld[index];
    _Atomic uint64_t *word = &f->segment->header->owner[index];
    bool claimed = slot_is_claimed(owner);
    if (!atomic_compare_exchange_strong(word, &owner, OWNER_ASKED)) {
        return;
    }
    bool left =
        (owner == OWNER_REFUSED && atomic_load(&slot->ready) == SLOT_LEFT) ||
        segment_left(f->setup.options, claimed ? (uint32_t)(owner >> 32) : who->nid,
                     claimed ? (uint32_t)owner : who->pid, claimed ? NULL : &who->incarnation);
    bool ready = claimed && atomic_load(&slot->ready) != SLOT_UNREADY;
    if (left && !ready) {
        clear_slot(f, slot, index);
        return;
    }
    atomic_store(word, owner);
    if (ready) {
        set_bit(f, index);
    }
}

void sweep_slots(struct shm_fabric *f)
{
    struct segment_header *h = f->segment->header;
    for (unsigned i = 0; i < f->segment->info.slots; i++) {
        uint64_t owner = atomic_load(&h->owner[i]);
        struct slot *slot =
            owner != 0 && f->by_slot[i] == NULL ? segment_slot(f->segment, i) : NULL;
        bool claimed = slot_is_claimed(owner);
        if (slot == NULL || (claimed && claimant_alive(f, owner, slot))) {
            continue;
        }
        if (claimed && atomic_load(&slot->ready) != SLOT_UNREADY) {
            /* Its claimant may have sent messages: it is accepted, and then torn down. */
            set_bit(f, i);
        } else {
            free_slot(f, i, owner, slot);
        }
    }
}
