/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated NIC (sim.c): send.c is what leaves it, receive.c what comes.
 *
 *   send() ─► departures, by the time at which each is ready ─► egress port: a packet at a time
 *   packets ─► ready after matching ─► receive machine ─► DMA engine ─► memory, events, counters
 *
 * Invariants, under the NIC's lock:
 *   - A departure is in `departures` until its last packet has left; the egress port takes the
 * first one, at `egress_at`, for which an event is on its way. One that is ready before it makes
 * the port look sooner; the event for the later time then finds that it is not for `egress_at`.
 *   - Departures of one peer and class are in the order of send().
 *   - Of an arrival `moved` <= `deposited` <= `issued` <= `arrived` <= length, where its payload is
 *     deposited; its machine ends only after the last deposit, and after those before it.
 *   - These count bytes in the order of `part`: the first packet of the message, then the others as
 *     they have come. Nothing is done with a message before that first packet is there, nor before
 *     all messages of the channel that have a lower number have been begun with.
 */
#ifndef FABRIC_SIM_SIM_H
#define FABRIC_SIM_SIM_H

#include "fabric/rx_machine.h"
#include "fabric/sim/rank.h"

struct departure {
    struct list link;                /* of fabric->departures */
    uint64_t ready, message, number; /* as of a struct sim_packet */
    uint64_t lead;                   /* with which it was handed over */
    struct sim_peer *peer;
    enum fabric_class class;
    bool queued; /* it has a place of the egress queue, as long as nothing of it has left */
    struct fabric_tx *tx; /* NULL: the payload is `own` */
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint64_t length, moved;
    struct vector_cursor cursor;
    uint8_t own[];
};

/* A packet of an arrival: its place in the message; `end` bytes are it and those before it in the
 * order of parts. */
struct sim_part {
    uint64_t offset, bytes, end;
};

struct arrival {
    struct list link; /* of its channel */
    struct rx_machine m;
    struct sim_peer *peer;
    struct sim_channel *channel;
    uint64_t number, length; /* `number`: sim_packet.number */
    uint64_t arrived, issued, deposited;
    uint64_t here;                      /* bytes that have come, of whichever packets */
    uint64_t stop;                      /* with so many bytes it ends, by `stopped` */
    enum fabric_status stopped;         /* not FABRIC_OK: the sender could not read on */
    uint32_t come, counted, at, engine; /* parts that have come; of which `end` is known;
                                         * the one in which `moved` is; with which the
                                         * DMA engine begins next */
    bool headed, displaced;             /* the first packet is there; parts are not in
                                         * the order of the message */
    unsigned transfers;                 /* of the DMA engine that are under way */
    bool begun, over;
    bool overrun; /* parts from `lost` on found no buffer */
    uint32_t lost;
    uint64_t packets, freed; /* that have taken buffers; whose buffers are free again */
    bool deposits;           /* its header is done, and it writes to host memory at the end */
    bool combines;           /* with what is in host memory: an atomic operation */
    bool handled;  /* a handler has run for it, and the NIC has its end told (timed_told()) */
    bool told;     /* the DMA transfer that tells of its end was issued */
    bool tells;    /* its handlers have ended (rx->tells), and that was counted in channel->turns */
    bool in_order; /* when the NIC was asked last: the DMA engine has what those before it write */
    uint64_t asked; /* channel->turns then */
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint8_t *payload;
    uint32_t size, parts; /* sim_packet.size; of the whole message */
    struct sim_part part[];
};

struct sim_channel {
    struct fabric_rx *rx; /* the one that lasts */
    bool lent;
    bool torn; /* a message was cut: those behind it are, too */
    enum fabric_class class;
    struct list arrivals; /* in the order in which they were sent */
    uint64_t number;      /* of the next message that is begun with */
    uint64_t sent;        /* messages to the peer */
    uint64_t
        turns; /* messages that have ended, or whose handlers have: others may have their turn */
    uint64_t ready; /* when the last message to the peer is ready to leave */
};

struct sim_peer {
    struct list link;
    struct sim_fabric *fabric;
    uint32_t rank, life; /* its place, and the NIC there that it is */
    bool refused;        /* it has no NIC any more */
    struct rx_source source;
    struct sim_channel channel[FABRIC_CLASSES];
};

/* A message that the receiving side of a NIC takes, and since when, in the LogGOPS model; the bytes
 * of it that have come. */
struct sim_taking {
    struct sim_taking *next;
    uint64_t message, begin, came;
};

/* What a NIC remembers of a sender and class: when the last packet that has come is ready; messages
 * that are taken; of a peer that it has none of any more, which message is next. */
struct sim_flow {
    uint64_t ready, number;
    uint32_t life;
    struct sim_taking *taking;
};

/* When those who wait for a resource whose work is known in advance begin, in order. */
struct sim_starts {
    uint64_t *time;
    size_t first, count, capacity;
};

/* What a resource has done since a time. */
struct sim_work {
    uint64_t begin, work;
};

/* The resources of a NIC with one HPU more: when each HPU is free, what the others do (lead.h). */
struct sim_lead {
    uint64_t free[SIM_HPUS + 1];
    struct sim_work egress, dma, in;
    bool taken[SIM_HPUS + 1]; /* by a call that runs */
    uint8_t at[SIM_HPUS];     /* where the call of an HPU runs */
};

struct sim_fabric {
    struct sim_clock *clock;
    struct sim_lead lead;
    struct fabric_setup setup;
    struct fabric_upcalls up; /* the NIC's, but for the header */
    struct list peers;
    struct list departures;
    uint64_t egress_at;         /* when the port looks for what leaves; SIM_NEVER: it does not */
    uint64_t written;           /* when all that handlers have written is in host memory */
    uint64_t buffers_most;      /* packet buffers that were taken, at most */
    uint64_t messages, waiting; /* that were sent; of these that have not begun to leave */
    struct sim_flow *flow;      /* by rank and class */
    _Atomic uint32_t doorbell;
    struct sim_starts dma_starts;
    void *stats; /* FABRIC_STATS bytes */
};

/* sim_of() and sim_peer_of() are the NIC, and what it keeps of a peer, behind the names that all
 * fabrics have in common. */
static inline struct sim_fabric *sim_of(struct fabric *f)
{
    return (struct sim_fabric *)f;
}
static inline struct sim_peer *sim_peer_of(struct fabric_peer *p)
{
    return (struct sim_peer *)p;
}

/* sim_peer_known() is the peer of a place, or NULL; sim_peer_at() makes it if need be. NULL: the
 * NIC refuses it. */
struct sim_peer *sim_peer_known(struct sim_fabric *f, uint32_t rank, uint32_t life);
struct sim_peer *sim_peer_at(struct sim_fabric *f, uint32_t rank, uint32_t life);

#endif
