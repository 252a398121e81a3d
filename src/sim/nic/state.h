/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share: ranks, messages and packets of a run (nic.h). */
#ifndef SIM_NIC_STATE_H
#define SIM_NIC_STATE_H

#include "nic.h"
#include "pairs.h"

#include "sim/models/match.h"
#include "sim/util/queue.h"

#define NIC_NONE UINT32_MAX
#define NIC_NEVER UINT64_MAX

/* Events; `ref` of sim_event is the kind, and a rank, packet or message. */
enum nic_event {
    NIC_LEAVE,  /* a rank's egress port takes a packet */
    NIC_ARRIVE, /* the last byte of a packet has come */
    NIC_READY,  /* it is matched */
    NIC_TOLD,   /* a message is in memory, and its event there */
    NIC_HOST,   /* a rank's program goes on */
};

struct nic_message {
    uint32_t from, to, node; /* node: its send */
    uint32_t tag, next;      /* of the rank's departures, of its events, of free ones */
    uint64_t ready;          /* when its first byte can leave */
    uint64_t bytes, left;    /* bytes that have left */
    uint64_t begin, came;    /* LogGOPS: since when it is taken (NIC_NEVER: it is not); of which
                              * bytes have come */
    uint64_t deposited;      /* bytes that the DMA engine has */
    uint32_t behind;         /* the next one of the pair */
    uint32_t first, last;    /* packets that are ready and wait, by their `next` */
    bool headed;             /* its first packet is ready */
};

struct nic_packet {
    uint32_t message, bytes; /* bytes: at least 1, as the network counts; of a free one the next */
    uint32_t next;           /* of those of its message that are ready */
    uint64_t offset;
    bool first, last;
};

/* A list of messages by their `next`. */
struct nic_list {
    uint32_t first, last;
};

struct nic_rank {
    struct goal_rank goal;
    uint64_t busy;                    /* the host is, until then */
    uint64_t egress, dma, memory;     /* when the port, the engine, host memory are free */
    uint64_t ingress;                 /* LogGOPS: when the receiving side is */
    uint32_t ready_first, ready_last; /* operations that may begin, by nic_run.next */
    uint32_t running;                 /* the one that takes the host's time; NIC_NONE */
    uint32_t done;
    bool waits;
    struct nic_list departures, events;
    struct match_side posted, arrived;
};

struct nic_run {
    const struct sim_input *in;
    const struct nic_machine *m;
    struct sim_output *out;
    struct net *net;
    uint64_t now, lookahead, byte; /* byte: of the network's cables */
    struct nic_rank *ranks;
    uint32_t *met;  /* by node: dependencies that are met */
    uint32_t *next; /* by node: the next operation that may begin */
    struct nic_message *messages;
    size_t message_count, message_room;
    uint32_t free_message;
    struct nic_packet *packets;
    size_t packet_count, packet_room;
    uint32_t free_packet;
    struct nic_pairs pairs;
    struct match_pool pool;
    struct sim_queue queue;
    uint64_t serial, events;
    bool memory_short, overflow; /* overflow: a time is beyond 2^63 - 1 ps */
};

/* nic_at() has something happen. */
void nic_at(struct nic_run *r, uint64_t time, enum nic_event kind, uint32_t of);

/* nic_send() hands a message over to the NIC of its sender; its first byte is at the egress port at
 * `ready`. nic_leave() to nic_ready() are what happens to it (send.c, receive.c). */
void nic_send(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ready);
void nic_leave(struct nic_run *r, uint32_t rank);
void nic_announce(struct nic_run *r, uint32_t packet, uint64_t time);
void nic_arrive(struct nic_run *r, uint32_t packet);
void nic_ready(struct nic_run *r, uint32_t packet);
extern const struct net_hooks nic_hooks;

/* nic_begin() makes the operations of a rank ready that depend on nothing. nic_host() has its
 * program go on, nic_told() gives it the event of a message (host.c). */
void nic_begin(struct nic_run *r, uint32_t rank);
void nic_host(struct nic_run *r, uint32_t rank);
void nic_told(struct nic_run *r, uint32_t message);

/* nic_append() adds a message to a list, nic_take() takes the first, NIC_NONE: there is none. */
static inline void nic_append(struct nic_run *r, struct nic_list *l, uint32_t message)
{
    r->messages[message].next = NIC_NONE;
    *(l->last == NIC_NONE ? &l->first : &r->messages[l->last].next) = message;
    l->last = message;
}

static inline uint32_t nic_take(struct nic_run *r, struct nic_list *l)
{
    uint32_t first = l->first;
    if (first != NIC_NONE) {
        l->first = r->messages[first].next;
        l->last = l->first == NIC_NONE ? NIC_NONE : l->last;
    }
    return first;
}

/* nic_place() is a node's index in `met` and `next`. */
static inline size_t nic_place(const struct nic_run *r, const struct goal_node *n)
{
    return (size_t)((const uint8_t *)n - r->in->goal->base) / sizeof(*n);
}

#endif
