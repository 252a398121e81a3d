/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that each rank of a schedule is; see nic.h. */
#ifndef SIM_NIC_MACHINE_H
#define SIM_NIC_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Who copies what comes: nobody; the program all of it, from where the NIC puts it; or only what
 * came before its recv was posted, where the NIC matches. Messages above `eager` are not copied. */
enum nic_copies { NIC_COPIES_NONE, NIC_COPIES_ALL, NIC_COPIES_LATE };

/* What a machine of `pinwheel sim` (docs/sim-nic.md) is to a schedule: times in ps, of a byte in
 * 1e-6 ps. */
struct nic_machine {
    uint64_t o, o_receive;  /* of the host: to start an operation, for a message that has come */
    uint64_t g, byte;       /* of a NIC: between two packets, or messages; of a byte */
    uint64_t match, cam;    /* of a message's first packet, of others */
    uint64_t dma, dma_byte; /* of the DMA engine: latency, of a byte */
    uint64_t host_byte;     /* of a byte in host memory */
    uint64_t look;          /* of the program at nothing */
    uint64_t host;          /* latency of host memory, for the program */
    uint64_t handler;       /* a call of a handler */
    uint64_t eager;         /* bytes */
    uint32_t hpus, clock_mhz;
    uint32_t hpu_queue, egress_queue, entry_messages; /* docs/sim-nic.md */
    enum nic_copies copies;
    bool rendezvous; /* where anybody matches, messages above `eager` are announced */
    bool loggops;    /* g is between messages, on both sides */
};

enum { NIC_PACKET = 4096, NIC_ATOMIC_MOST = 4096 }; /* bytes of a packet, of an atomic operation */

#endif
