/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What PsPIN gives its handlers, on the RV32 side: the task that they serve, and commands,
 * both registers of the HPU driver at 1b205000.
 *
 *   +00  handler function; reading it waits for a task     +80  ISSUE: a read starts the command,
 *   +08  the task, as task_t has it                             and gives its number
 *   +50  doorbell: a read says that the handler is done    +84  WAIT: a write of the number stalls
 *   +8c  INFO, what the command is; its WORD0..6 follow         until that command is done
 *
 * Names and layout are PsPIN's, so that its handlers' sources can be used as they are.
 */
#ifndef TESTS_HPU_PSPIN_H
#define TESTS_HPU_PSPIN_H

#include <stdint.h>

#define __handler__ __attribute__((used))
#define HPU_DRIVER 0x1b205000u

enum { SPIN_OK, SPIN_FAIL };

/* The window from HPU_DRIVER + 8 on. */
typedef struct {
    uint32_t handler_mem, handler_mem_size;
    uint32_t pkt_mem, pkt_mem_size; /* in L1 */
    uint32_t scratchpad[4], scratchpad_size[4];
    uint32_t host_mem_high, host_mem_low, host_mem_size;
    uint32_t l2_pkt_mem;
    uint32_t home_cluster_id, flow_id;
} task_t;

_Static_assert(sizeof(task_t) == 0x48, "the doorbell follows");

typedef struct {
    volatile task_t *task;
    uint32_t hpu_gid, cluster_id, hpu_id;
} handler_args_t;

typedef uint32_t spin_cmd_t;

/* ---- Commands ---- */

enum spin_command_info {
    SPIN_EVENT = 1,
    SPIN_HOST_DMA = 0 << 1,
    SPIN_NIC_SEND = 1 << 1,
    SPIN_HOST_DIRECT = 2 << 1,
};

static inline volatile uint32_t *spin_register(uint32_t offset)
{
    return (volatile uint32_t *)(HPU_DRIVER + offset);
}

static inline uint32_t spin_issue(uint32_t info, uint32_t word0, uint32_t word1, uint32_t word2,
                                  uint32_t word3, uint32_t word4)
{
    volatile uint32_t *words = spin_register(0x90);
    *spin_register(0x8c) = info;
    words[0] = word0;
    words[1] = word1;
    words[2] = word2;
    words[3] = word3;
    words[4] = word4;
    return *spin_register(0x80);
}

/* A packet of its own to the network, as it stands in memory. */
static inline int spin_send_packet(const void *data, uint32_t size, spin_cmd_t *command)
{
    *command = spin_issue(SPIN_NIC_SEND, 0, 0, (uint32_t)(uintptr_t)data, 0, size);
    return SPIN_OK;
}

static inline int spin_host_dma(uint64_t host, uint32_t nic, uint32_t size, uint32_t to_host,
                                uint32_t event, spin_cmd_t *command)
{
    *command = spin_issue(SPIN_HOST_DMA | event, (uint32_t)host, (uint32_t)(host >> 32), nic, size,
                          to_host);
    return SPIN_OK;
}

static inline int spin_dma_to_host(uint64_t host, uint32_t nic, uint32_t size, uint32_t event,
                                   spin_cmd_t *command)
{
    return spin_host_dma(host, nic, size, 1, event, command);
}

static inline int spin_dma_from_host(uint64_t host, uint32_t nic, uint32_t size, uint32_t event,
                                     spin_cmd_t *command)
{
    return spin_host_dma(host, nic, size, 0, event, command);
}

static inline int spin_write_to_host(uint64_t host, uint64_t value, spin_cmd_t *command)
{
    *command = spin_issue(SPIN_HOST_DIRECT, (uint32_t)host, (uint32_t)(host >> 32), 1 | 8 << 1,
                          (uint32_t)value, (uint32_t)(value >> 32));
    return SPIN_OK;
}

static inline int spin_cmd_wait(spin_cmd_t command)
{
    *spin_register(0x84) = command;
    return SPIN_OK;
}

static inline void amo_add(volatile uint32_t *word, uint32_t value)
{
    __asm__ volatile("amoadd.w zero, %1, %0" : "+A"(*word) : "r"(value) : "memory");
}

#endif
