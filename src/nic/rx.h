/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message at its receiver, as it goes through the stages.
 *
 *   plain.c     all of it in one step, if it is one of the usual ones
 *   lookup.c    the header: which entry it matches, and whether that permits it
 *   receive.c   where its payload goes; all in one step if the message has come whole
 *   handlers.c  with handlers: header, payload, completion
 *   handler_run.c  how their calls are run
 *   handler_send.c  the messages that handlers send
 *   packets.c   their payload handlers on HPUs that are threads
 *   deliver.c   the end: reply, event, counter, ack
 *   turn.c      which messages must wait for those before them
 *
 * A stage may return RX_WAIT, and is then called again. Struct rx notes what it has done, so that
 * it does that once.
 */
#ifndef NIC_RX_H
#define NIC_RX_H

#include "base/paths.h"
#include "nic/message.h"
#include "nic/objects.h"

/* A message at the handlers of its entry. */
struct handler_run {
    struct hpu_exec exec;
    union {
        struct {
            bool active;   /* a handler was started and has not ended */
            bool pending;  /* some handler said ..._PENDING */
            bool finished; /* no further handler is to be called */
            bool header_done, completion_done;
            /* further bytes are dropped: after an error, or since the message was cut */
            bool lost;
            bool flow_control; /* the message found no room for longer than the patience */
        };
        uint64_t progress; /* all of these; 0 when the message is set up */
    };
    bool inside; /* without nic->sched: a thread runs it now, and has released the lock */
    /* the entry has no payload handler: the NIC deposits the payload behind the user header */
    bool deposit;
    ptl_ni_fail_t fail; /* the first error */
    /* since when its next call has found no room; 0: it has not tried in vain */
    int64_t stalled;
    int64_t begun; /* with nic->sched: when it was made ready */
    uint64_t kept, dropped;
    uint64_t emitted; /* payload bytes that handlers have been called for */
    /* of packets that come in any order: where the one in progress lies, behind the user header;
     * those of which a part is there (pieces.c) */
    uint64_t place;
    struct list pieces;
    size_t filled; /* bytes in `bounce` */
    /* bytes taken of the wire packet in progress, and of the packets taken with it */
    size_t consumed;
    uint64_t length;      /* of the message; of a swap, its operand included */
    uint64_t user_header; /* bytes of the user header of this message; of a swap, of its operand */
    /* one packet, put together here where wire packets and handlers' packets differ */
    uint8_t *bounce;
    const uint8_t *packet;
    size_t packet_length; /* of the running payload handler */
    struct nic *nic;
    struct le *le;
    void *block;            /* the message's own block (blocks.c); NULL: none */
    void *state;            /* the part of it that all handlers of the message share; NULL: none */
    uint8_t *user_copy;     /* the part of it with the copy of the user header; NULL: none */
    uint32_t state_length;  /* bytes of `state` */
    uint8_t block_kind;     /* kind of `block` */
    _Atomic bool described; /* exec.arg.header is set up */

    /* In virtual time: when the host is told of the end, 0 if that is not known yet; what the home
     * notes of calls. */
    uint64_t told, calls;

    /* With HPUs that are threads (nic->sched); `exec` above is then for header and completion
     * handlers only. */
    struct rx *rx;
    bool ended; /* the active handler has ended */
    int code;   /* its return code then */
    /* calls that run on although their NI is closed; the end of the last one frees this */
    unsigned orphans;
    struct list packets; /* struct packet (packets.c) in order, from the first that has not ended */
    unsigned outstanding; /* packets in this list that have not ended */
};

/* What the lookup has found for a request at its target, and how the request fares there. */
struct target {
    struct ni *ni; /* NULL: none was found, or it was closed */
    struct pt *pt; /* its portal table entry */
    struct le *le; /* the message is one of its users while this is not NULL */
    /* its unexpected header, if an entry of the overflow list took it */
    struct unexpected *unexpected;
    union {
        ptl_process_t initiator;
        uint64_t source; /* both halves as one word */
    };
    uint64_t offset; /* the offset used at the entry */
    uint64_t mlength;
    ptl_ni_fail_t fail;
    ptl_list_t list; /* of the entry that matched */
    bool response_due;
    bool reserved; /* the entry is use-once, and reserved by this message */
};

struct rx {
    struct fabric_rx f; /* first, since the fabric has this object as its fabric_rx */
    struct nic_peer *peer;
    struct rx *beside; /* the next message object of the channel; the peer has the first */
    enum fabric_class class;
    struct message *m; /* the header, where the fabric copied it */
    bool held;         /* the lookup says that the message waits, and looks up again */
    bool held_by_turn; /* ... until a message before it of its peer has ended */
    union {
        struct {
            bool decided;      /* a request: lookup and checks are done */
            bool header_begun; /* its handlers were set up: handlers_start() */
            bool applied;      /* an atomic was done on the entry's memory */
            bool event_posted;
            bool response_silent;
            bool reply_started, reply_left;
        };
        uint64_t done; /* all of these: what was done of the message; 0 before it begins */
    };

    /* a request: */
    struct target at;
    /* a buffer of one packet for the old values that a fetch returns; kept from message to
     * message */
    uint8_t *before;
    bool away;     /* it is in no channel, but in an invocation: invoke.c */
    bool detached; /* it has left a channel */
    bool tick;     /* it is a tick of a timer, and completes nothing */
    /* its payload is copied into this invocation, so that it may leave the channel (detach.c) */
    struct invocation *stored;
    const struct request *local; /* of a message to oneself (self.c): the request to be answered */
    int64_t wait_end;            /* when a message stops waiting for room; 0: it does not wait */
    /* of the channel's first object: when a message of this peer last waited for room in vain */
    int64_t refused_at;
    struct message_acks acks; /* acks gathered and not sent yet; its head is set when they are: */
    unsigned ack_count, ack_overflow;
    struct list acks_due; /* in nic->acks_due while there are gathered acks */
    struct fabric_tx reply;
    struct handler_run *run; /* kept for the next message */

    /* a response: */
    uint32_t cookie; /* names its operation; 0: there is none */
};

static inline bool rx_is_atomic(const struct rx *rx)
{
    return message_is_atomic(rx->m);
}

/* rx_new() makes a message object of a channel, rx_free() frees it. */
struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class);
void rx_free(struct nic_peer *peer, struct fabric_rx *rx);
/* rx_abandon() takes the NI that is being closed from a message; what has yet to come of it is
 * discarded. */
void rx_abandon(struct rx *rx);
/* rx_reset() makes the object ready for the next message. */
void rx_reset(struct rx *rx);
/* rx_lend() tells the fabric where to put the payload. rx_deposit() puts it there, of a message
 * that has come whole: 0 or -EFAULT. */
static inline void rx_lend(struct rx *rx, struct memory to, uint64_t room)
{
    rx->f.sink = RX_DEPOSIT;
    rx->f.base = to.base;
    rx->f.vector = to.vector;
    rx->f.skip = to.skip;
    rx->f.room = room;
}
static inline int rx_deposit(const struct fabric_rx *f, const void *payload)
{
    struct memory to = {f->base, f->vector, f->skip};
    return memory_write(&to, payload, f->room);
}
/* Returns the physical id of a peer as one word, since the reader of an event loads it so. */
static inline uint64_t nic_peer_id(const struct nic_peer *peer)
{
    _Static_assert(offsetof(struct nic_peer, pid) == offsetof(struct nic_peer, nid) + 4 &&
                       offsetof(ptl_process_t, phys.pid) == 4,
                   "it is two words side by side");
    uint64_t id;
    memcpy(&id, (const char *)peer + offsetof(struct nic_peer, nid), sizeof(id));
    return id;
}
/* Whether the rank that a message names as its sender's is that of the peer: a logical NI has the
 * map to know. */
static inline bool rx_rank_is_true(const struct rx *rx, const struct ni *ni)
{
    uint32_t rank = rx->m->rank;
    return rank < ni->map_size && ni->map[rank].phys.nid == rx->peer->nid &&
           ni->map[rank].phys.pid == rx->peer->pid;
}
/* target_source() sets the sender of a message as its event will name it; false: the rank that it
 * claims is not the peer's. target_key() returns the key that matching compares: sender and match
 * bits. */
static inline bool target_source(struct target *t, const struct rx *rx, const struct message *m)
{
    t->source = nic_peer_id(rx->peer);
    if (unlikely(ni_is_logical(t->ni))) {
        t->source = m->rank;
        return rx_rank_is_true(rx, t->ni);
    }
    return true;
}
static inline struct match_header target_key(const struct target *t, const struct message *m)
{
    return (struct match_header){
        .bits = m->match_bits, .nid = (uint32_t)t->source, .pid = (uint32_t)(t->source >> 32)};
}
/* Whether the event queue has a place for the event of one more message. With flow control each
 * message in progress holds one. */
static inline bool pt_queue_has_room(const struct pt *pt)
{
    const struct eq *eq = pt->eq.eq;
    return (pt->options & PTL_PT_FLOWCTRL) == 0 || !eq_ref_alive(pt->eq) ||
           atomic_load_explicit(&eq->tail, memory_order_relaxed) -
                   atomic_load_explicit(&eq->head, memory_order_relaxed) + pt->users <
               eq->count;
}
/* Whether the entry of the message has handlers that are still to run. */
static inline bool rx_has_handlers(const struct rx *rx)
{
    return rx->at.le != NULL && rx->at.le->handlers != NULL && rx->at.fail == PTL_NI_OK &&
           !rx->f.torn;
}

/* Whether the header handler has run: then the completion handler shall run, too. */
static inline bool rx_handlers_ran(const struct rx *rx)
{
    return rx->at.le != NULL && rx->header_begun && rx->run->header_done;
}
/* Whether a handler of the message is queued or running on an HPU that is a thread. */
static inline bool handlers_away(const struct rx *rx)
{
    return rx->f.elsewhere && rx->run != NULL && (rx->run->active || rx->run->outstanding != 0);
}

#endif
