/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quiet operations: puts of a line at the most, and atomics of one word, from an NI to itself, of
 * which the program learns only by counters. They need no stages. The arguments of an operation and
 * its entry determine all of its effect, so that may be worked out once and done later, repeatedly:
 *
 *   quiet_make()  a request, and the entry that it finds ─► struct quiet
 *   quiet_send()  moves the data and counts, as often as it is called, while quiet_is_good()
 *
 * An entry that was the first to match remains the first: new ones come behind it. So the result of
 * the search holds until `ni->epoch` changes, which it does when
 *   - an entry leaves its list that le_lasts(): operations that find other entries are not quiet;
 *   - an entry with handlers is linked: its portal table entry then has no quiet operations;
 *   - the program enables or disables a portal table entry; one with flow control has no quiet
 *     operations at all.
 * Nothing else that a quiet operation depends on changes while its MD and its entry live, but for
 * the counters, whose handles are checked at each count.
 *
 * A quiet operation must not overtake others: it is done only while no message of the NIC to itself
 * is on its way through the fabric (nic->self_afar).
 */
#ifndef NIC_QUIET_H
#define NIC_QUIET_H

#include "nic/stages.h"

#define QUIET_MAX 64 /* the longest put, in bytes */
_Static_assert(QUIET_MAX <= NIC_COPY_OVERLAP, "both ends may be the same memory");

/* quiet_look_up() returns the entry that quiet operations of the NI to itself find at an index of
 * its portal table; NULL: none matches, or operations that find it are not quiet. */
struct le *quiet_look_up(struct ni *ni, uint32_t pt_index, uint64_t match_bits);

/* quiet_look_up(), with the entry that the portal table entry remembers from the last time. */
static inline struct le *quiet_find(struct ni *ni, uint32_t pt_index, uint64_t match_bits)
{
    const struct pt *pt = &ni->pts[pt_index];
    return likely(pt->quiet_bits == match_bits && pt->quiet_epoch == ni->epoch)
               ? pt->quiet_entry
               : quiet_look_up(ni, pt_index, match_bits);
}

/* quiet_set() fills in a quiet operation as a put to this entry; false: the entry does not hold
 * it. */
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

/* quiet_make() makes a quiet operation of a request to oneself; false: the request is not quiet. */
bool quiet_make(struct ni *ni, const struct request *r, struct quiet *q);

static inline bool quiet_is_good(const struct ni *ni, const struct quiet *q)
{
    return q->epoch == ni->epoch && !ni->nic->self_afar;
}

/* quiet_send() does the operation. False: some memory is not there. Then of an atomic nothing was
 * done, and a part of a put may have been: the stages do it again, and report the fault. */
static inline bool quiet_send(struct nic *nic, const struct quiet *q)
{
    const struct deed *d = &q->deed;
    uint64_t word = 0; /* a shorter value is in the low bytes */
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

/* target_is_own() tells, without the lock, whether this is the address or rank of the NI itself. */
static inline bool target_is_own(const struct ni *ni, ptl_process_t target)
{
    if (ni_is_logical(ni)) {
        ptl_rank_t own = __atomic_load_n(&ni->rank, __ATOMIC_RELAXED);
        return target.rank == own && own != PTL_RANK_ANY;
    }
    return target.phys.nid == ni->nic->nid && target.phys.pid == ni->nic->pid;
}

#endif
