/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share: ranks, messages and packets of a run (nic.h). */
#ifndef SIM_NIC_STATE_H
#define SIM_NIC_STATE_H

#include "flows.h"
#include "nic.h"

#include "sim/models/match.h"
#include "sim/util/charges.h"
#include "sim/util/queue.h"

#define NIC_NONE UINT32_MAX
#define NIC_NEVER UINT64_MAX

/* Events; `ref` of sim_event is the kind, and a rank, packet or message. */
enum nic_event {
    NIC_LEAVE,  /* a rank's egress port takes a packet */
    NIC_ARRIVE, /* the last byte of a packet has come */
    NIC_READY,  /* it is matched */
    NIC_DONE,   /* all that the DMA engine does for a message is done */
    NIC_TELL,   /* the end of a message at handlers may be told; `ref` has its flow */
    NIC_LOOK,   /* an HPU looks for a call */
    NIC_GO,     /* the call of an HPU goes on */
    NIC_HOST,   /* a rank's program goes on */
};

/* Requests come in the order in which they were sent, and so do responses. */
enum nic_class { NIC_REQUEST, NIC_RESPONSE, NIC_CLASSES };

enum nic_kind {
    NIC_SEND,   /* a send: its receiver's program gets it */
    NIC_PUT,    /* for an entry, as the others are */
    NIC_ATOMIC, /* is added to what is there */
    NIC_GET,
    NIC_FETCH,    /* a fetch, swap or compare-and-swap: an atomic that is answered by a reply */
    NIC_ANNOUNCE, /* of a long send */
    NIC_PULL,     /* gets its data */
    NIC_ACK,
    NIC_REPLY,
    NIC_DATA, /* the reply to that */
};

struct nic_message {
    uint32_t from, to, node; /* node: the operation that it is, or answers */
    uint32_t tag, next;      /* of the rank's departures, its events, of free ones */
    uint32_t behind;         /* the next one of the flow */
    uint32_t first, last;    /* packets that are ready and wait, by their `next` */
    uint32_t flow;           /* in flows[class] */
    uint32_t entry;          /* that takes it; NIC_NONE: none does */
    uint32_t counts;        /* at its initiator: the counter of its answer; NIC_NONE: it has none */
    uint32_t recv;          /* of a long message: the recv that it has met, NIC_NONE: none yet */
    uint32_t answers;       /* of a reply: the request, which ends when it has left */
    uint64_t ready;         /* when its first byte can leave */
    uint64_t bytes;         /* that it carries */
    uint64_t left, arrived; /* of these */
    uint64_t asked;         /* of a get: bytes of its reply */
    uint64_t number;        /* among all messages */
    uint64_t begin, came; /* LogGOPS: since when it is taken (NIC_NEVER: it is not); of which bytes
                           * have come */
    uint64_t written;     /* when what the DMA engine has of it is written */
    uint8_t kind, class;
    bool headed;   /* its first packet is ready */
    bool whole;    /* all of it is, and was looked at */
    bool begun;    /* the NIC has begun with it: it writes what comes */
    bool done;     /* all that is to be written is */
    bool replying; /* its reply is on its way out, or has left */
    bool replied;  /* it has left */
    /* At handlers: */
    bool heading;   /* its header handler was called, or there is none */
    bool processed; /* and has ended */
    bool completed; /* its completion handler has */
    bool queued;    /* of a handler: it has a place of the egress queue */
    uint32_t calls; /* that have not ended */
    uint64_t told;  /* when its end may be told, at least 1; 0: its handlers have not ended */
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

/* An append: where messages go. */
struct nic_entry {
    uint64_t size;
    uint32_t counts; /* the counter of what it has taken; NIC_NONE: it has none */
    bool once;
    uint8_t handlers;         /* bits of header, payload, completion handler; 0: it has none */
    uint32_t rank, node;      /* its append */
    uint32_t first, last;     /* calls that wait for an HPU */
    uint32_t waiting, turn;   /* how many; the next entry of the rank that has some */
    int64_t credit, expected; /* ns */
};

/* A counter of a rank: what waits for it, by what it is to come to. */
struct nic_counter {
    uint32_t rank, number;
    uint64_t value;
    struct sim_queue waiting; /* ref: a node; of a test, with NIC_TESTS */
};

enum { NIC_QUANTUM = 20000 }; /* ns: the credit of an entry for a round of calls */

#define NIC_TESTS (UINT64_C(1) << 32)

/* Counters by rank and number. A zeroed struct has none. */
struct nic_counters {
    struct nic_counter *at;
    uint32_t *slots; /* index + 1; 0: free */
    size_t count, room, slot_room;
};

/* A call of a handler. */
struct nic_call {
    uint32_t message, entry;
    uint32_t next;   /* of those of its entry that wait, of free ones */
    uint32_t step;   /* the part of its append that is next */
    uint64_t bytes;  /* of its packet */
    uint64_t began;  /* when an HPU took it */
    int64_t charged; /* ns of its entry's credit */
    uint8_t handler; /* enum goal_type */
};

struct nic_hpu {
    uint32_t rank, call; /* call: that it runs; NIC_NONE */
    bool due;            /* it is about to look */
};

/* A triggered operation whose counter has come to its threshold. */
struct nic_fired {
    uint32_t rank, node;
};

struct nic_rank {
    struct goal_rank goal;
    uint64_t busy;                    /* the host is, until then */
    uint64_t egress, dma, memory;     /* when the port, the engine, host memory are free */
    uint64_t ingress;                 /* LogGOPS: when the receiving side is */
    uint64_t leaves;                  /* when the port is to look; NIC_NEVER: not */
    uint32_t ready_first, ready_last; /* operations that may begin, by nic_run.next */
    uint32_t running;                 /* the one that takes the host's time; NIC_NONE */
    uint32_t done;
    uint32_t tests;   /* that have begun and not ended */
    uint32_t leaving; /* the message of which a part has left; NIC_NONE */
    bool waits, looked;
    uint32_t hpus;                  /* the first of its HPUs; NIC_NONE: it has used none */
    uint32_t turn_first, turn_last; /* entries with calls that wait */
    uint32_t queued;                /* messages of handlers of which nothing has left */
    uint64_t written;               /* when all that handlers have written is in host memory */
    /* Messages that are to leave, in their order; `early` has those that are ready before one that
     * was handed over before them. */
    struct nic_list departures, events;
    struct sim_queue early;
    struct sim_queue passed; /* tests that are over, in the order in which they began */
    struct match_side posted, arrived, entries;
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
    uint32_t *outgoing; /* packets that left now, and are not in the network yet */
    size_t outgoing_count, outgoing_room;
    struct nic_flows flows[NIC_CLASSES];
    struct nic_entry *entries;
    size_t entry_count, entry_room;
    struct nic_counters counters;
    struct nic_fired *fired;
    size_t fired_first, fired_count, fired_room;
    struct nic_call *calls;
    size_t call_count, call_room;
    uint32_t free_call;
    struct nic_hpu *hpus;
    size_t hpu_count, hpu_room;
    /* a queue is full; a get or atomic at handlers; handlers of an entry that takes one message */
    bool crowded, misfit, misfit_once;
    struct match_pool pool;
    struct sim_queue queue;
    uint64_t serial, sent;
    uint64_t dropped;            /* messages that no entry has taken */
    bool memory_short, overflow; /* overflow: a time is beyond 2^63 - 1 ps */
};

/* nic_at() has something happen. */
void nic_at(struct nic_run *r, uint64_t time, enum nic_event kind, uint32_t of);

/* ---- what leaves (traffic.c) ---- */

/* nic_new() makes a message, NIC_NONE: no memory. nic_depart() hands it over to the NIC of its
 * sender; its first byte is at the egress port at `ready`. nic_leave() and nic_arrive() are what
 * happens to it. */
uint32_t nic_new(struct nic_run *r, const struct nic_message *m);
void nic_depart(struct nic_run *r, uint32_t message, uint64_t ready);
void nic_leave(struct nic_run *r, uint32_t rank);
void nic_arrive(struct nic_run *r, uint32_t packet);
/* nic_enter() puts what has left now into the network, in the order of ranks: ports of different
 * ranks know nothing of each other. */
void nic_enter(struct nic_run *r);
void nic_free(struct nic_run *r, uint32_t message);
extern const struct net_hooks nic_hooks;

/* ---- what comes (receive.c) ---- */

/* nic_ready() is what becomes of a packet that is ready; nic_done(), of a message when the DMA
 * engine has done all for it; nic_replied(), of a request when its reply has left. */
void nic_ready(struct nic_run *r, uint32_t packet);
void nic_done(struct nic_run *r, uint32_t message);
void nic_replied(struct nic_run *r, uint32_t message);

/* nic_transfer() takes the DMA engine and host memory, and returns when it is written. nic_go_on()
 * goes on with a message at handlers, and all of its flow; nic_tell() with a flow of which such a
 * message may end. */
uint64_t nic_transfer(struct nic_run *r, uint32_t rank, uint64_t bytes);
void nic_go_on(struct nic_run *r, uint32_t message);
void nic_tell(struct nic_run *r, uint32_t flow);

/* ---- handlers (hpus.c) ---- */

/* nic_handle_header() begins with a message at handlers; true: its payload may be handled.
 * nic_handle_packet() has a packet handled. nic_handle_end() is called when all of it has come;
 * true: its handlers have ended, and m->told is set. nic_look() and nic_go() are what HPUs do. */
bool nic_handle_header(struct nic_run *r, uint32_t message);
void nic_handle_packet(struct nic_run *r, uint32_t message, uint64_t bytes);
bool nic_handle_end(struct nic_run *r, uint32_t message);
void nic_look(struct nic_run *r, uint32_t hpu);
void nic_go(struct nic_run *r, uint32_t hpu);
/* ---- long messages (rendezvous.c) ---- */

/* nic_is_long() says whether an operation sends one. nic_announce() announces it, nic_pull() gets
 * the data for a recv; `ready` as above. nic_meet(): a send or announcement is next of its flow;
 * the NIC has it meet its recv, or leaves that to the program. */
bool nic_is_long(const struct nic_run *r, const struct goal_node *n);
void nic_announce(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ready);
void nic_pull(struct nic_run *r, const struct nic_message *announcement, uint32_t recv,
              uint64_t ready);
void nic_meet(struct nic_run *r, uint32_t message);

/* ---- Portals (portals.c, counters.c) ---- */

/* nic_request() starts what operation `node` asks for; `ready` as above. nic_append() appends an
 * entry. nic_portals() begins an operation of the program; false: it takes no time. */
bool nic_portals(struct nic_run *r, uint32_t rank, uint32_t node);

/* nic_counter() finds or makes a counter; NIC_NONE: no memory. nic_count() counts there. nic_wait()
 * has a node wait until it comes to `threshold`; with NIC_TESTS it is a test. nic_fire() carries
 * out what counters have triggered. */
uint32_t nic_counter(struct nic_run *r, uint32_t rank, uint32_t number);
void nic_count(struct nic_run *r, uint32_t counter, uint64_t more);
void nic_wait(struct nic_run *r, uint32_t counter, uint64_t threshold, uint64_t node);
void nic_fire(struct nic_run *r);
void nic_trigger(struct nic_run *r, uint32_t rank, uint32_t node);
void nic_counters_free(struct nic_counters *c);

/* ---- programs (host.c) ---- */

/* nic_begin() makes the operations of a rank ready that depend on nothing. nic_host() has its
 * program go on. nic_told() gives it the event of a message. nic_takes_host(): what has come takes
 * its time. nic_passed(): a test of it is over. nic_complete() ends an operation, nic_take_time()
 * has it take the host. */
void nic_begin(struct nic_run *r, uint32_t rank);
void nic_host(struct nic_run *r, uint32_t rank);
void nic_told(struct nic_run *r, uint32_t message);
void nic_takes_host(struct nic_run *r, uint32_t rank);
void nic_passed(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t began);
void nic_complete(struct nic_run *r, uint32_t rank, uint32_t node);
void nic_take_time(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ps);

static inline uint64_t nic_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* nic_push() adds a message to a list, nic_take() takes the first, NIC_NONE: there is none. */
static inline void nic_push(struct nic_run *r, struct nic_list *l, uint32_t message)
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

static inline struct nic_flow *nic_flow_of(struct nic_run *r, const struct nic_message *m)
{
    return &r->flows[m->class].at[m->flow];
}

/* nic_place() is a node's index in `met` and `next`. */
static inline size_t nic_place(const struct nic_run *r, const struct goal_node *n)
{
    return (size_t)((const uint8_t *)n - r->in->goal->base) / sizeof(*n);
}

/* nic_part() is a part of an operation, NULL: it has none of that type. */
static inline const struct goal_node *nic_part(const struct goal_rank *g, uint32_t node,
                                               enum goal_type type)
{
    for (uint32_t i = node + 1; i < g->node_count && goal_is_part(&g->nodes[i]); i++) {
        if (g->nodes[i].type == type) {
            return &g->nodes[i];
        }
    }
    return NULL;
}

#endif
