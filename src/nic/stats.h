/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stats page of a NIC: what it tells of itself to other processes, which look at it while
 * it works. `pinwheel nic` is who looks.
 *
 * The NIC writes under its lock, in plain memory that the fabric shares; a reader takes
 * what is there, so that figures of one look may belong to different moments. All of them
 * but those marked grow from the opening of the NIC on.
 */
#ifndef NIC_STATS_H
#define NIC_STATS_H

#include "fabric/fabric.h"
#include "hpu/output.h"
#include "portals4.h"
#include "spin_handler.h"

#include <stdint.h>

#define STATS_VERSION 4u /* another layout is another version */
#define STATS_KINDS 4    /* of interfaces, by struct ni's kind */
#define STATS_CONTEXTS 64

/* Data movements: puts, gets, atomics, fetches (PtlFetchAtomic and PtlSwap). */
enum stats_movement { STATS_PUT, STATS_GET, STATS_ATOMIC, STATS_FETCH, STATS_MOVEMENTS };

/* Handler calls that have ended, by kind: header, payload, completion. */
enum stats_call { STATS_HEADER, STATS_PAYLOAD, STATS_COMPLETION, STATS_CALLS };

struct stats_work {
    uint64_t calls[STATS_CALLS];
    uint64_t cycles;      /* of the time stamp counter, in their code and their calls */
    uint64_t core_cycles; /* of the RV32 cores, contention not counted; native ones have none */
    uint64_t faults;      /* calls that ended with SEGV or TIMEOUT */
    uint64_t failed;      /* calls that ended with FAIL */
};

/* An execution context: what the handlers of one entry have in common. */
struct stats_context {
    uint64_t number; /* of all that were ever appended, from 1; 0: the place is free */
    uint32_t handle; /* of the entry */
    uint32_t pt_index;
    uint32_t kind; /* of its interface */
    uint32_t inactive;
    uint64_t match_bits, ignore_bits;
    uint64_t hpu_mask;
    uint64_t memory, memory_length; /* HPU memory: its address in the process */
    uint64_t messages;              /* that came to their end */
    uint64_t dropped_bytes;         /* payload that nobody kept */
    uint64_t refused;               /* messages that found no room for too long */
    uint64_t unsent;                /* of its handlers: for which their peer had no place left */
    struct stats_work work;
};

struct nic_stats {
    uint32_t version; /* written last: 0 as long as the rest is not there */
    uint32_t index;   /* the interface's number, 0 for PTL_IFACE_DEFAULT */
    int64_t opened;   /* seconds since 1970 */
    char program[32];
    uint32_t open; /* now: bit k for an interface of kind k */
    uint32_t unused;

    uint64_t sent[STATS_MOVEMENTS], sent_bytes; /* requests of this process, handlers' too */
    uint64_t received[STATS_MOVEMENTS], received_bytes; /* as asked for, refused ones too */
    uint64_t registers[STATS_KINDS][PTL_SR_LAST];       /* of PtlNIStatus(); 0 when it is opened */
    uint64_t malformed;                                 /* messages that made no sense */
    uint64_t waited;                                    /* messages that waited for flow control */
    uint64_t closed;                                    /* entries that flow control closed */
    uint64_t events_lost;                               /* overwritten in full queues */
    struct fabric_report net; /* written now and then; zeros without a network */

    /* Handlers. An HPU is a thread, or with none of these (hpus 0) one of the handlers that may
     * be active at once. */
    uint32_t hpus;
    uint32_t core_mhz;         /* of the RV32 cores that run them; 0: they are native */
    char core[96];             /* the table of these, and how far to trust it */
    uint64_t contexts;         /* appended in all */
    struct stats_context rest; /* sums: of those that have ended, or found no place below */
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
