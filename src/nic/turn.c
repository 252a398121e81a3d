/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one channel side by side. Where a network has lost a packet of one, its fabric goes
 * on with those behind it (fabric_rx.behind). Their order is kept all the same:
 *
 *   - Headers are matched in the order of the messages.
 *   - Messages end in that order: completion handlers, events, counts, acks and replies, and with
 *     them the use of their entries.
 *   - Header and payload handlers run as packets come, but an entry has one message of a sender at
 *     a time: the next one there waits until that one has ended. One that would match a use-once
 *     entry which a message before it has in hand waits as well: handlers may yet leave that entry
 *     where it is.
 *   - Data reach an entry before those of the messages before them only where the interface has not
 *     promised PTL_TOTAL_DATA_ORDERING and no byte is one that these read or write, or where the
 *     sender has no use for an order (PTL_MD_UNORDERED). What must wait stays in the fabric.
 *   - Atomics wait for their turn, and so do gets, whose data are read when they end.
 *
 * The data of replies go to where they are awaited as they come.
 */
#include "nic/turn.h"

/* Whether `other`, of the same channel, is before a message and has its entry still. */
static bool is_before(const struct rx *other, const struct rx *rx)
{
    return other->at.le != NULL && other->f.number < rx->f.number;
}

static bool behind_entry(const struct rx *rx)
{
    const struct rx *other = rx->peer->rx[rx->class];
    while (other != NULL && !(is_before(other, rx) && other->at.le == rx->at.le)) {
        other = other->beside;
    }
    return other != NULL;
}

static bool has_entry(const struct rx *rx, const struct le *le)
{
    while (rx != NULL && rx->at.le != le) {
        rx = rx->beside;
    }
    return rx != NULL;
}

bool turn_keeps(const struct rx *rx, const struct le *le)
{
    return has_entry(rx->peer->rx[FABRIC_REQUEST], le) ||
           (rx->class == FABRIC_ASK && has_entry(rx->peer->rx[FABRIC_ASK], le));
}

/* Bytes of memory that a message reads or writes; of handlers, all that may be. */
struct range {
    uintptr_t begin;
    uint64_t length;
    bool anywhere;
};

static struct range range_of(const struct rx *rx)
{
    const struct le *le = rx->at.le;
    struct range r = {.anywhere = le->vector.parts != NULL};
    bool all = le->handlers != NULL;
    r.begin = (uintptr_t)le->start + (all ? 0 : rx->at.offset);
    r.length = all ? le->length : rx->at.mlength;
    return r;
}

static bool overlap(struct range a, struct range b)
{
    return a.anywhere || b.anywhere || (a.begin - b.begin < b.length) ||
           (b.begin - a.begin < a.length);
}

/* Whether its data may go to their place though messages before it are under way. */
static bool may_write(const struct rx *rx)
{
    if (rx->m->silent != 0) {
        return true;
    }
    if ((rx->at.ni->limits.features & PTL_TOTAL_DATA_ORDERING) != 0) {
        return false;
    }
    const struct rx *other = rx->peer->rx[rx->class];
    while (other != NULL && !(is_before(other, rx) && overlap(range_of(other), range_of(rx)))) {
        other = other->beside;
    }
    return other == NULL;
}

bool turn_waits_to_begin(const struct rx *rx)
{
    if (!rx->f.behind || rx->at.le == NULL || rx->at.fail != PTL_NI_OK || rx->f.torn) {
        return false;
    }
    if (rx_is_atomic(rx)) {
        return true;
    }
    return rx_has_handlers(rx) ? !rx_handlers_ran(rx) && behind_entry(rx)
                               : rx->m->type == MESSAGE_PUT && !may_write(rx);
}

bool turn_waits_to_write(const struct rx *rx)
{
    if (!rx->f.behind || rx->at.le == NULL) {
        return false;
    }
    bool writes = rx->f.sink == RX_DEPOSIT || (rx->f.sink == RX_PACKETS && rx->run->deposit);
    return writes && !may_write(rx);
}
