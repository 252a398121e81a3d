/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quiet operations: puts of a line at the most, and atomics of one word, of an NI on itself, that
 * are told by nothing but counts. They need no stages and leave no trace: all that there is to
 * know of one is known when its arguments and its entry are, and may be kept to do it with later.
 *
 *   quiet_make()  a request, and the entry that it finds ─► struct quiet
 *   quiet_send()  moves the data and counts, as often as it is asked to, while quiet_is_good()
 *
 * An entry that was the first to match stays the first: new ones are behind it. So what was found
 * holds until `ni->epoch` changes, which it does when
 *   - an entry leaves its list that le_lasts(): what finds the others is not quiet;
 *   - an entry with handlers is linked: its portal table entry has quiet operations no more;
 *   - a portal table entry is opened or closed by the program; with flow control it has none.
 * All else that a quiet operation depends on does not change while its MD and its entry live, but
 * for the counters, which are looked at when they count.
 *
 * It must not overtake: it is done only while nothing that the NIC sent to itself is on the
 * fabric's way (nic->self_afar).
 */
#ifndef NIC_QUIET_H
#define NIC_QUIET_H

#include "nic/stages.h"

#define QUIET_MAX 64 /* bytes of a put */
_Static_assert(QUIET_MAX <= NIC_COPY_OVERLAP, "both ends may be the same memory");

/* quiet_look_up() is the entry that a quiet operation of the NI on itself finds, which takes puts;
 * NULL: there is none, or what it takes is not quiet. The index is one of the table's. */
struct le *quiet_look_up(struct ni *ni, uint32_t pt_index, uint64_t match_bits);

/* The same; the one that was found last by its portal table entry is remembered. */
static inline struct le *quiet_find(struct ni *ni, uint32_t pt_index, uint64_t match_bits)
{
    const struct pt *pt = &ni->pts[pt_index];
    return likely(pt->quiet_bits == match_bits && pt->quiet_epoch == ni->epoch)
               ? pt->quiet_entry
               : quiet_look_up(ni, pt_index, match_bits);
}

/* quiet_set() fills one with what its entry says, as a put; false: there is too little room. */
static inline bool quiet_set(struct quiet *q, const struct le *le, uint64_t length, uint64_t offset)
{
    if (unlikely(!le_holds(le, offset, length))) {
        return false;
    }
    q->epoch = le->ni->epoch;
    le_say_place(le, offset, length, &q->deed);
    le_say_count(le, &q->deed);
    return true;
}

/* quiet_make() makes one of a request to oneself, if it is quiet. */
bool quiet_make(struct ni *ni, const struct request *r, struct quiet *q);

static inline bool quiet_is_good(const struct ni *ni, const struct quiet *q)
{
    return q->epoch == ni->epoch && !ni->nic->self_afar;
}

/* quiet_send() does it. False: some memory is not there. Of an atomic nothing is done then, and a
 * put may be done twice: to tell of it is for the stages. */
static inline bool quiet_send(struct nic *nic, const struct quiet *q)
{
    const struct deed *d = &q->deed;
    uint64_t word = 0; /* of a shorter one these are the low bytes */
    bool put = d->kind == OP_PUT;
    if (!put && unlikely(nic_copy(&word, q->from, d->length) != 0)) {
        return false;
    }
    if (unlikely(deed_write(d, put ? q->from : &word) != 0)) {
        return false;
    }
    deed_count(nic, d);
    stats_count(nic->stats->sent, &nic->stats->sent_bytes, (enum stats_movement)d->kind, d->length);
    return true;
}

/* target_is_own() tells, without the lock, whether this is the address of the NI itself. */
static inline bool target_is_own(const struct ni *ni, ptl_process_t target)
{
    if (ni_is_logical(ni)) {
        ptl_rank_t own = __atomic_load_n(&ni->rank, __ATOMIC_RELAXED);
        return target.rank == own && own != PTL_RANK_ANY;
    }
    return target.phys.nid == ni->nic->nid && target.phys.pid == ni->nic->pid;
}

#endif
