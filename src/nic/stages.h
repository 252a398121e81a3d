/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stages of a put or an atomic at an entry. Each is written once, and put_at_entry() runs them
 * in this order:
 *
 *   place ──► write ──► event, counter ──► use-once ──► ack ──► use-once without an event
 *
 * A caller passes `fast` as a constant. True says that the message is a put, that the entry is
 * fast (objects.h) and has room for the whole message, and that the ack can be gathered; the
 * compiler then deletes the tests for all this. plain.c, the fast path, passes true. receive.c
 * passes false, and so does deliver.c, which ends messages that took more than one step.
 *
 * A struct deed holds what a message does at a fast entry: where it writes, and what it counts.
 * quiet.h stores deeds of loopback messages, so that the NIC can repeat them without a lookup.
 * The stages before these (access permission check, offset, room) are in entry.h.
 */
#ifndef NIC_STAGES_H
#define NIC_STAGES_H

#include "nic/apply.h"
#include "nic/deliver.h"
#include "nic/entry.h"

#include "base/nic_copy.h"
#include "base/paths.h"

/* Returns the kind of event that the target gets of a type of request. */
static inline ptl_event_kind_t target_event_kind(uint8_t type)
{
    static const uint8_t kinds[] = {
        [MESSAGE_PUT] = PTL_EVENT_PUT,
        [MESSAGE_GET] = PTL_EVENT_GET,
        [MESSAGE_ATOMIC] = PTL_EVENT_ATOMIC,
        [MESSAGE_FETCH] = PTL_EVENT_FETCH_ATOMIC,
    };
    return kinds[type];
}

/* Counts a request on the stats page. Each is counted once, when it is decided what becomes of
 * it. */
static inline void target_count_request(struct nic *nic, unsigned movement, uint64_t length)
{
    stats_count(nic->stats->received, &nic->stats->received_bytes, (enum stats_movement)movement,
                length);
}

/* Return where in the entry the request begins, and how much of it the entry takes. At a fast entry
 * both are those of the header. */
static inline __attribute__((always_inline)) uint64_t
target_offset(const struct target *t, const struct message *m, const bool fast)
{
    return fast ? m->remote_offset : t->offset;
}

static inline __attribute__((always_inline)) uint64_t
target_mlength(const struct target *t, const struct message *m, const bool fast)
{
    return fast ? m->length : t->mlength;
}

/* Sets how much of the request fits into the entry; of an atomic, in whole elements. */
static inline void target_place(struct target *t, const struct message *m)
{
    uint64_t room = le_room(t->le, t->offset);
    t->mlength = m->length < room ? m->length : room;
    if (message_is_atomic(m)) {
        t->mlength -= atomic_rest(t->mlength, m->datatype);
    }
}

/* Fills in the event of a request for the owner of the entry. */
static inline __attribute__((always_inline)) void target_event(const struct rx *rx,
                                                               const struct message *m,
                                                               const struct target *t,
                                                               ptl_event_t *event, const bool fast)
{
    const struct le *le = t->le;
    uint64_t offset = target_offset(t, m, fast);
    *event = (ptl_event_t){
        .start = fast ? memory_at(le->start, offset) : le_address(le, offset),
        .user_ptr = le->user_ptr,
        .hdr_data = m->hdr_data,
        .match_bits = m->match_bits,
        .rlength = m->length,
        .mlength = target_mlength(t, m, fast),
        .remote_offset = m->remote_offset,
        .initiator = t->initiator,
    };
    eq_whose(event, rx->peer->uid, le->pt_index);
    eq_kinds(event, fast ? PTL_EVENT_PUT : target_event_kind(m->type),
             fast ? PTL_PRIORITY_LIST : le->list, t->fail, m->op, m->datatype);
}

/* Posts the full event of the request. */
static inline __attribute__((always_inline)) void
target_post(const struct rx *rx, const struct message *m, const struct target *t, const bool fast)
{
    struct eq_ref eq = t->pt->eq;
    if (likely(le_wants_event(t->le, PTL_ME_EVENT_COMM_DISABLE, t->fail) && eq_ref_alive(eq))) {
        target_event(rx, m, t, eq_place(eq.eq), fast);
        eq_placed(eq.eq);
    }
}

/* Does a put or an atomic whose payload has come whole, and notes a fault in t->fail. Of an atomic,
 * `t` must be rx->at. */
static inline __attribute__((always_inline)) void
target_write(struct rx *rx, const struct message *m, struct target *t, const void *payload)
{
    if (m->type != MESSAGE_PUT) {
        rx_apply(rx, payload);
    } else if (likely(t->mlength != 0)) {
        struct memory to = le_memory(t->le, t->offset);
        t->fail = likely(memory_write(&to, payload, t->mlength) == 0) ? t->fail : PTL_NI_SEGV;
    }
}

/* deed_write() writes the data of a deed: 0; or -EFAULT, and then of an atomic nothing was done.
 * The payload of an atomic must be readable as a whole word. deed_count() counts the deed. */
static inline __attribute__((always_inline)) int deed_write(const struct deed *d,
                                                            const void *payload)
{
    uint64_t found;
    if (d->kind == OP_PUT) {
        return nic_copy(d->to, payload, d->length);
    }
    return likely(d->instruction != NULL)
               ? nic_word(d->instruction, d->to, *(const uint64_t *)payload, &found, d->length)
               : nic_atomic(d->to, payload, NULL, NULL, d->length, d->op, d->datatype);
}

static inline __attribute__((always_inline)) void deed_count(struct nic *nic, const struct deed *d)
{
    target_count_request(nic, d->kind, d->length);
    ct_add_success(d->ct, d->count);
}

/* Gathers the ack of a request; false: the ack has more to tell, and must be sent by itself. */
static inline __attribute__((always_inline)) bool target_ack(struct rx *rx, const struct message *m,
                                                             const struct target *t,
                                                             unsigned options, const bool fast)
{
    if (m->cookie == 0) {
        return true;
    }
    if (fast) {
        rx_add_ack(rx, m->cookie, t->list);
        return true;
    }
    bool as_asked = rx->local == NULL && t->fail == PTL_NI_OK && t->mlength == m->length &&
                    (options & PTL_ME_ACK_DISABLE) == 0;
    return as_asked && rx_gather_ack(rx, t->list);
}

/*
 * Takes a put or an atomic, whose payload has come whole, at a plain entry. It is done in one step
 * under the lock, so the entry need not count the message as a user, and only the ack may be left
 * to do. The caller has set t->offset. False: the ack must be sent by itself; or, with `fast` and
 * t->fail set, the entry has no memory there, and nothing was done.
 */
static inline __attribute__((always_inline)) bool put_at_entry(struct rx *rx,
                                                               const struct message *m,
                                                               struct target *t,
                                                               const void *payload, const bool fast)
{
    struct le *le = t->le;
    if (fast) {
        struct deed d;
        le_say_place(le, m->remote_offset, m->length, &d);
        if (unlikely(deed_write(&d, payload) != 0)) {
            t->fail = PTL_NI_SEGV;
            return false;
        }
        COUNT_PATH(take_put);
        le_say_count(le, &d);
        deed_count(t->ni->nic, &d);
        target_post(rx, m, t, fast);
    } else {
        target_place(t, m);
        target_write(rx, m, t, payload);
        COUNT_PATH_OF(plain_put, m->type != MESSAGE_PUT);
        target_count_request(t->ni->nic, m->type - MESSAGE_PUT, m->length);
        rx_tell(rx);
    }
    unsigned options = le->options;
    unsigned once = options & (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
    t->list = fast ? PTL_PRIORITY_LIST : le->list;
    /* All events come before the ack. A use-once entry that posts no event is removed after the
     * ack, to send that earlier. */
    if (unlikely(once == PTL_ME_USE_ONCE)) {
        le_use_up(le);
    }
    bool acked = target_ack(rx, m, t, options, fast);
    if (once == (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE)) {
        le_use_up(le);
    }
    return acked;
}

#endif
