/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two messages that are nearly all: a put that is here whole and meets, at the head of its
 * list, an entry without handlers that takes all of it; and acks of puts that went as asked.
 *
 *   fabric ──► plain_short() ──usual──► over
 *                    └──────any other──► rx_short() (receive.c)
 *
 * A message is either over here, or nothing was done and the stages have it from the beginning.
 * What is done here is what the stages do where this is known, in their order:
 *
 *   - nobody has to be told of a fault: the message makes sense, goes to an entry of an open portal
 *     table entry, which it is permitted to, and its whole payload is in its place;
 *   - nothing has to wait: there is room for the event, none of the peer's messages is at handlers,
 *     and its ack can be gathered, if it cannot leave.
 *
 * So there is no state of it to keep, and struct rx is left as it was but for gathered acks.
 */
#include "nic/entry.h"
#include "nic/rx.h"

#include "base/nic_copy.h"
#include "base/paths.h"

/* Where a put goes, once it is found. */
struct target {
    struct ni *ni;
    struct pt *pt;
    struct le *le;
    union {
        ptl_process_t initiator;
        uint64_t source; /* the same as one word */
    };
};

/* What the first word of its header says: a put with a known ack, for one of the NIs there may be.
 */
static inline bool is_put(const struct message *m)
{
    _Static_assert(NI_KINDS == 4 && PTL_OC_ACK_REQ == 3 && offsetof(struct message, ni) == 1 &&
                       offsetof(struct message, ack) == 2,
                   "two bits each");
    uint32_t begin;
    memcpy(&begin, m, sizeof(begin));
    return (begin & 0x00fcfcff) == MESSAGE_PUT;
}

/* Who sent it, as an event has it; false: he is another one. */
static inline bool find_source(const struct rx *rx, const struct message *m, struct target *t)
{
    t->source = nic_peer_id(rx->peer);
    if (rare(ni_is_logical(t->ni))) {
        t->source = m->rank;
        return rx_rank_is_true(rx, t->ni);
    }
    return true;
}

/* Whether the entry that matched last is again the first that matches, and takes all of the put. */
static inline bool takes_it(const struct rx *rx, const struct message *m, const struct target *t)
{
    const struct le *le = t->le;
    struct match_header header = {
        .bits = m->match_bits, .nid = (uint32_t)t->source, .pid = (uint32_t)(t->source >> 32)};
    return usual(le != NULL) && le->plain &&
           (le->options & (PTL_IOVEC | PTL_ME_ACK_DISABLE)) == 0 &&
           le_permits(le, rx->peer->uid, PTL_ME_OP_PUT) == PTL_NI_OK &&
           match_is_eldest(&t->pt->priority, &le->match) && match_key(&le->match, &header) &&
           le_holds(le, m->remote_offset, m->length);
}

static inline bool find_target(const struct rx *rx, const struct message *m, struct target *t)
{
    t->ni = rx->peer->nic->ni[m->ni];
    if (rare(t->ni == NULL || m->pt_index > (unsigned)t->ni->limits.max_pt_index)) {
        return false;
    }
    t->pt = &t->ni->pts[m->pt_index];
    t->le = t->pt->recent;
    return usual(t->pt->allocated && t->pt->enabled && find_source(rx, m, t) &&
                 takes_it(rx, m, t) && pt_queue_has_room(t->pt) && list_empty(&rx->peer->detached));
}

/* As target_event(). */
static inline void fill_event(const struct rx *rx, const struct message *m, const struct target *t,
                              ptl_event_t *event)
{
    event->start = memory_at(t->le->start, m->remote_offset);
    event->user_ptr = t->le->user_ptr;
    event->hdr_data = m->hdr_data;
    event->match_bits = m->match_bits;
    event->rlength = m->length;
    event->mlength = m->length;
    event->remote_offset = m->remote_offset;
    event->initiator = t->initiator;
    eq_whose(event, rx->peer->uid, m->pt_index);
    eq_kinds(event, PTL_EVENT_PUT, PTL_PRIORITY_LIST, PTL_NI_OK, m->op, m->datatype);
}

/* As post_target_event(). */
static inline void tell(const struct rx *rx, const struct message *m, const struct target *t)
{
    unsigned options = t->le->options;
    if (rare((options & PTL_ME_EVENT_CT_COMM) != 0)) {
        ct_count(t->le->ct, PTL_NI_OK, (options & PTL_ME_EVENT_CT_BYTES) != 0, m->length);
    }
    bool wanted = (options & (PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE)) == 0;
    if (usual(wanted && eq_ref_alive(t->pt->eq))) {
        struct eq *eq = t->pt->eq.eq;
        fill_event(rx, m, t, eq_place(eq));
        eq_placed(eq);
    }
}

/* False: nothing was done. */
static inline bool take_put(struct rx *rx, const struct message *m, const void *payload)
{
    struct target t;
    if (rare(!is_put(m) || m->length != rx->f.length || rx->ack_count == ACKS_MOST) ||
        !find_target(rx, m, &t)) {
        return false;
    }
    /* What cannot be written is told by the stages, which try again. */
    if (usual(m->length != 0) &&
        rare(nic_copy(memory_at(t.le->start, m->remote_offset), payload, m->length) != 0)) {
        return false;
    }
    COUNT_PATH(take_put);
    struct nic_board *board = t.ni->nic->board;
    board_count(board->received, &board->received_bytes, BOARD_PUT, m->length);
    unsigned once = t.le->options & (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
    tell(rx, m, &t);
    /* All events come before the ack; an entry that goes without one is put away behind it. */
    if (rare(once == PTL_ME_USE_ONCE)) {
        le_use_up(t.le);
    }
    if (usual(m->cookie != 0)) {
        rx_add_ack(rx, m->cookie, PTL_PRIORITY_LIST);
    }
    if (once == (PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE)) {
        le_use_up(t.le);
    }
    return true;
}

static bool is_acks(const struct rx *rx, const struct message_acks *a)
{
    return (a->head & 0xff) == MESSAGE_ACKS && acks_count(a) <= ACKS_MOST && rx->f.length == 0;
}

/* Apart from each other: one needs few registers. */
static __attribute__((noinline)) enum rx_step plain_acks(struct nic_peer *peer, struct rx *rx,
                                                         const void *payload)
{
    const struct message_acks *a = (const struct message_acks *)rx->f.header;
    return usual(is_acks(rx, a)) ? acks_done(peer, a) : rx_short(peer, &rx->f, payload);
}

static __attribute__((noinline)) enum rx_step plain_put(struct nic_peer *peer, struct rx *rx,
                                                        const void *payload)
{
    const struct message *m = (const struct message *)rx->f.header;
    return usual(take_put(rx, m, payload)) ? RX_GO : rx_short(peer, &rx->f, payload);
}

enum rx_step plain_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    struct rx *rx = (struct rx *)f;
    return rx->class == FABRIC_RESPONSE ? plain_acks(peer, rx, payload)
                                        : plain_put(peer, rx, payload);
}
