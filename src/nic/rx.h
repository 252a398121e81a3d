/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message at its receiver, as it goes through the stages.
 *
 *   plain.c     all of it in one step, if it is one of the usual ones
 *   lookup.c    header: whose is it, does it match, may it
 *   receive.c   where its payload goes, and all of it in one step if it is here whole
 *   handlers.c  with handlers: header, payload, completion
 *   handler_run.c  how their calls are run
 *   handler_send.c  what these send
 *   packets.c   their payload handlers on HPUs that are threads
 *   deliver.c   the end: reply, event, counter, ack
 *   turn.c      what must wait for the messages before it
 *
 * Each stage may say RX_WAIT and is then called again; what it has done is
 * noted here, so that it is done once.
 */
#ifndef NIC_RX_H
#define NIC_RX_H

#include "base/paths.h"
#include "nic/message.h"
#include "nic/objects.h"

/* A message at the handlers of its entry. */
struct handler_run {
    struct hpu_exec exec;
    bool active;   /* a handler was started and has not ended */
    bool inside;   /* some thread runs it inline, without the lock */
    bool pending;  /* some handler said ..._PENDING */
    bool finished; /* no further handler is to be called */
    bool deposit;  /* no payload handler: the NIC deposits after the user header */
    bool header_done, completion_done;
    ptl_ni_fail_t fail; /* the first error */
    bool lost;          /* bytes that are not kept are dropped: after an error, or half a message */
    bool flow_control;  /* there was no room for too long */
    int64_t stalled;    /* since when its next call finds no room; 0: it does not */
    int64_t begun;      /* with nic->sched: when it was made ready */
    uint64_t kept, dropped;
    uint64_t length;      /* of the message; of a swap, its operand included */
    uint64_t user_header; /* of this message: not longer than it; of a swap, its operand */
    uint8_t *bounce;      /* one packet, where packets must be cut anew */
    size_t filled;        /* bytes in it */
    size_t consumed;      /* of the wire packet in progress, and of those behind it */
    uint64_t emitted;     /* payload bytes that handlers have been called for */
    const uint8_t *packet;
    size_t packet_length; /* of the running payload handler */
    struct nic *nic;
    struct le *le;
    void *block;            /* memory of the message's own (blocks.c); NULL: it has none */
    void *state;            /* part of it that the message's handlers share; NULL: there is none */
    uint8_t *user_copy;     /* part of it that keeps the user header; NULL: it is not kept */
    uint32_t state_length;  /* bytes of `state` */
    uint8_t block_kind;     /* kind of `block` */
    _Atomic bool described; /* exec.arg.header is set up */

    /* With HPUs that are threads (nic->sched). The exec above is for header and completion
     * handlers then. */
    struct rx *rx;
    bool ended;          /* the active handler has ended */
    int code;            /* its return code then */
    unsigned orphans;    /* calls that run on, and its NI is closed: who ends the last frees this */
    struct list packets; /* struct packet (packets.c), in order: not all that has ended yet */
    unsigned outstanding; /* of these, not ended */
};

/* The place that a request has found at its target, and what becomes of it there. */
struct target {
    struct ni *ni;                 /* NULL: nobody's, or its NI was closed */
    struct pt *pt;                 /* its portal table entry */
    struct le *le;                 /* pinned while not NULL */
    struct unexpected *unexpected; /* its header, where the overflow list took it */
    union {
        ptl_process_t initiator;
        uint64_t source; /* the same as one word */
    };
    uint64_t offset; /* used at the entry */
    uint64_t mlength;
    ptl_ni_fail_t fail;
    ptl_list_t list; /* of the entry that matched */
    bool response_due;
    bool reserved; /* the entry is use-once and held back for this message */
};

struct rx {
    struct fabric_rx f; /* first: the fabric knows it as this */
    struct nic_peer *peer;
    struct rx *beside; /* another one of the channel; the first is the peer's */
    enum fabric_class class;
    struct message *m; /* the header, where the fabric copied it */
    bool decided;      /* the header went through match and checks */
    bool held;         /* it is to wait for room, and be decided then */
    bool held_by_turn; /* it is to wait for a message before it to end */
    bool response_silent;
    bool event_posted;

    /* a request: */
    struct target at;
    bool applied;                /* an atomic was done */
    uint8_t *before;             /* the old values that a fetch returns: a packet, kept */
    bool header_begun;           /* its handlers were set up */
    bool away;                   /* it is in no channel: invoke.c */
    bool detached;               /* it was in one */
    bool tick;                   /* of a timer: it completes nothing */
    struct invocation *stored;   /* to which its payload goes, to leave the channel (detach.c) */
    const struct request *local; /* of self.c: whom to answer */
    int64_t wait_end;            /* of a message that waits for room; 0: it does not */
    int64_t refused_at;       /* the last one of this peer that waited in vain; of the first rx */
    struct message_acks acks; /* gathered, not sent yet, but for its head: */
    unsigned ack_count, ack_overflow;
    struct list acks_due; /* in the NIC's list while there are some */
    struct fabric_tx reply;
    bool reply_started, reply_left;
    struct handler_run *run; /* kept from message to message */

    /* a response: */
    struct op *op; /* valid while `cookie` names it */
    uint32_t cookie;
};

static inline bool rx_is_atomic(const struct rx *rx)
{
    return message_is_atomic(rx->m);
}

/* rx_new() makes the object of a channel, rx_free() frees it. */
struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class);
void rx_free(struct nic_peer *peer, struct fabric_rx *rx);
/* rx_abandon() takes from a message what it has of an NI that is being closed: what is left to do
 * is to discard it. */
void rx_abandon(struct rx *rx);
/* rx_reset() makes the object ready for the next message. */
void rx_reset(struct rx *rx);
/* rx_lend() says where the fabric is to put the payload; rx_deposit() puts it there when all of it
 * is here: 0 or -EFAULT. */
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
/* A physical id, as one word: an event's reader loads it so. */
static inline uint64_t nic_peer_id(const struct nic_peer *peer)
{
    _Static_assert(offsetof(struct nic_peer, pid) == offsetof(struct nic_peer, nid) + 4 &&
                       offsetof(ptl_process_t, phys.pid) == 4,
                   "it is two words side by side");
    uint64_t id;
    memcpy(&id, (const char *)peer + offsetof(struct nic_peer, nid), sizeof(id));
    return id;
}
/* A logical NI knows who may be who: the rank that a message claims must be the peer's own. */
static inline bool rx_rank_is_true(const struct rx *rx, const struct ni *ni)
{
    uint32_t rank = rx->m->rank;
    return rank < ni->map_size && ni->map[rank].phys.nid == rx->peer->nid &&
           ni->map[rank].phys.pid == rx->peer->pid;
}
/* target_source() sets who has sent a message, as events have it; false: he is another one.
 * target_key() is what lists compare: the source of such a message, and its match bits. */
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
/* With flow control each message in progress has a place in the event queue. */
static inline bool pt_queue_has_room(const struct pt *pt)
{
    const struct eq *eq = pt->eq.eq;
    return (pt->options & PTL_PT_FLOWCTRL) == 0 || !eq_ref_alive(pt->eq) ||
           atomic_load_explicit(&eq->tail, memory_order_relaxed) -
                   atomic_load_explicit(&eq->head, memory_order_relaxed) + pt->users <
               eq->count;
}
/* Whether the message's entry has handlers that are to run. */
static inline bool rx_has_handlers(const struct rx *rx)
{
    return rx->at.le != NULL && rx->at.le->handlers != NULL && rx->at.fail == PTL_NI_OK &&
           !rx->f.torn;
}

/* Whether its header handler has had its turn: then the completion handler has one. */
static inline bool rx_handlers_ran(const struct rx *rx)
{
    return rx->at.le != NULL && rx->header_begun && rx->run->header_done;
}
/* Whether a handler of the message is with an HPU that is a thread. */
static inline bool handlers_away(const struct rx *rx)
{
    return rx->f.elsewhere && rx->run != NULL && (rx->run->active || rx->run->outstanding != 0);
}

#endif
