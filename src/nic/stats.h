/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats page of a NIC: figures that it shows to other processes while it works. `pinwheel nic`
 * reads it.
 *
 * The NIC writes under its lock, into plain memory that the fabric shares. A reader takes no lock,
 * so that the figures it sees may belong to different moments. All of them grow from the opening of
 * the NIC on, but for those marked.
 */
#ifndef NIC_STATS_H
#define NIC_STATS_H

#include "fabric/fabric.h"
#include "hpu/output.h"
#include "portals4.h"
#include "spin_handler.h"

#include <stdint.h>

#define STATS_VERSION 4u /* changes with the layout */
#define STATS_KINDS 4    /* kinds of interfaces, as in struct ni */
#define STATS_CONTEXTS 64

/* Data movements: puts, gets, atomics, fetches (PtlFetchAtomic and PtlSwap). */
enum stats_movement { STATS_PUT, STATS_GET, STATS_ATOMIC, STATS_FETCH, STATS_MOVEMENTS };

/* Handler calls that have ended, by kind: header, payload, completion. */
enum stats_call { STATS_HEADER, STATS_PAYLOAD, STATS_COMPLETION, STATS_CALLS };

struct stats_work {
    uint64_t calls[STATS_CALLS];
    /* processor cycles (time stamp counter) of handlers' code and their calls */
    uint64_t cycles;
    /* cycles of the RV32 cores, without contention; native handlers have none */
    uint64_t core_cycles;
    uint64_t faults; /* calls that ended with SEGV or TIMEOUT */
    uint64_t failed; /* calls that ended with FAIL */
};

/* An execution context: what the handlers of one entry share. */
struct stats_context {
    /* number of the entry among all that had handlers, from 1; 0: the place is free */
    uint64_t number;
    uint32_t handle; /* of the entry */
    uint32_t pt_index;
    uint32_t kind; /* kind of its NI */
    uint32_t inactive;
    uint64_t match_bits, ignore_bits;
    uint64_t hpu_mask;
    uint64_t memory, memory_length; /* HPU memory; its address in the process that has it */
    uint64_t messages;              /* messages that have ended */
    uint64_t dropped_bytes;         /* payload bytes that were not kept */
    /* messages that found no room for their handlers for too long */
    uint64_t refused;
    uint64_t unsent; /* messages of its handlers that found no place at their peer */
    struct stats_work work;
};

struct nic_stats {
    uint32_t version; /* written last: 0 until the page is complete */
    uint32_t index;   /* number of the interface, 0 for PTL_IFACE_DEFAULT */
    int64_t opened;   /* seconds since 1970 */
    char program[32];
    uint32_t open; /* now: bit k is set if the NI of kind k is open */
    uint32_t unused;

    /* requests that this process has sent, those of handlers included */
    uint64_t sent[STATS_MOVEMENTS], sent_bytes;
    /* bytes as the requests ask for; refused ones included */
    uint64_t received[STATS_MOVEMENTS], received_bytes;
    /* as PtlNIStatus() gives them; 0 when the NI is opened */
    uint64_t registers[STATS_KINDS][PTL_SR_LAST];
    uint64_t malformed; /* messages that were not sound */
    /* messages that flow control has kept waiting */
    uint64_t waited;
    /* times that flow control has disabled a portal table entry */
    uint64_t closed;
    /* overwritten in event queues that were full */
    uint64_t events_lost;
    struct fabric_report net; /* brought up to date now and then; zeros without a network */

    /* Number of HPUs that are threads. If it is 0, the HPUs below stand for the handlers that may
     * be active at once. */
    uint32_t hpus;
    /* clock of the RV32 cores that run handlers; 0: handlers are native */
    uint32_t core_mhz;
    /* name of the timing table of these cores, and how far it can be trusted */
    char core[96];
    uint64_t contexts; /* execution contexts since the NIC was opened */
    /* sums over the contexts that have ended, or that found no place below */
    struct stats_context rest;
    struct stats_context context[STATS_CONTEXTS];
    struct stats_work hpu[PTL_NUM_HPUS];
    struct hpu_output outputs[PTL_NUM_HPUS];
};

_Static_assert(sizeof(struct nic_stats) <= FABRIC_STATS, "the stats page fits");

static inline void stats_count(uint64_t movements[STATS_MOVEMENTS], uint64_t *bytes,
                               enum stats_movement movement, uint64_t length)
{
    movements[movement]++;
    *bytes += length;
}

#endif
