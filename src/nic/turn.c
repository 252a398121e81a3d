/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In-order completion for messages of one channel that are in progress side by side: where a
 * network has lost a packet of one, the fabric goes on with those behind it (fabric_rx.behind).
 * Still:
 *
 *   - Headers are matched in the order of the messages.
 *   - Messages end in that order: completion handlers, events, counts, acks and replies, and with
 *     them the use of their entries.
 *   - Header and payload handlers run as packets come, but an entry has one message of a sender at
 *     a time: the next one at that entry waits until the first has ended. A message that would
 *     match a use-once entry which an earlier one has reserved waits as well: the handlers may
 *     still leave that entry in its list.
 *   - The NIC writes the data of a message before those of earlier messages only if the NI has not
 *     promised PTL_TOTAL_DATA_ORDERING and the earlier ones neither read nor write any of the same
 *     bytes; or if the sender needs no order (PTL_MD_UNORDERED), or the fabric keeps it
 *     (fabric_rx.in_order). Data that must wait stay in the fabric.
 *   - Atomics wait for their turn, and so do gets, whose data are read when they end.
 *
 * In virtual time an entry has `messages_most` messages of a sender at a time, besides those whose
 * sender needs no order; one whose handlers have ended no longer counts. Completion handlers, too,
 * run when their message has come. What is in order is what a program sees: a message at handlers
 * ends, with its event, count and answer, after those before it at its entry and at entries without
 * handlers, and answers leave in the order of the messages (turn_passes()).
 *
 * The data of replies go to the initiator's memory as they come.
 */
#include "nic/turn.h"

/* Whether `other`, of the same channel, came before a message and still uses its entry. */
static bool is_before(const struct rx *other, const struct rx *rx)
{
    return other->at.le != NULL && other->f.number < rx->f.number;
}

/* In virtual time a message whose handlers have ended may still wait to tell the host so. What a
 * run says that has not begun is of the message before. */
static bool only_tells(const struct rx *rx)
{
    return rx->header_begun && rx->run->told != 0;
}

static bool behind_entry(const struct rx *rx)
{
    const struct nic *nic = rx->peer->nic;
    unsigned before = 0;
    if (nic->time != NULL && rx->m->silent != 0) {
        return false; /* its sender needs no order */
    }
    for (const struct rx *other = rx->peer->rx[rx->class]; other != NULL; other = other->beside) {
        before += is_before(other, rx) && other->at.le == rx->at.le && !only_tells(other);
    }
    return before >= nic->messages_most;
}

bool turn_passes(const struct rx *rx, const struct rx *other)
{
    const struct le *le = rx->at.le, *before = other->at.le;
    return rx->class == FABRIC_REQUEST && le != NULL && before != NULL && le != before &&
           le->handlers != NULL && before->handlers != NULL &&
           !(rx->at.response_due && other->at.response_due);
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

/* The memory of an entry that a message may read or write; with handlers, all of the entry. */
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

/* Whether the data of a message must wait for those of another one: with `all`, of each before it.
 * In virtual time none waits for one that it passes: handlers keep no order with what they write.
 */
static bool writes_behind(const struct rx *rx, const struct rx *other, bool all)
{
    if (other->f.number >= rx->f.number ||
        (rx->peer->nic->time != NULL && turn_passes(rx, other))) {
        return false;
    }
    return all || (other->at.le != NULL && overlap(range_of(other), range_of(rx)));
}

/* Whether the data of a message may be written although earlier messages are in progress. */
static bool may_write(const struct rx *rx)
{
    if (rx->m->silent != 0 || rx->f.in_order) {
        return true;
    }
    bool all = (rx->at.ni->limits.features & PTL_TOTAL_DATA_ORDERING) != 0;
    if (all && rx->peer->nic->time == NULL) {
        return false;
    }
    const struct rx *other = rx->peer->rx[rx->class];
    while (other != NULL && !writes_behind(rx, other, all)) {
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
