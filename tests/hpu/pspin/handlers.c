/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of golden/pspin_handlers.csv, written anew for PsPIN's conventions, and some
 * that misuse them. A packet is an IPv4 header, a UDP header, a word, and the payload.
 */
#include "pspin.h"

struct ip_header {
    uint8_t version_length; /* the lower half: words of the header */
    uint8_t others[11];
    uint32_t from, to;
};

struct udp_header {
    uint16_t from, to, length, checksum; /* the most significant byte first */
};

static struct udp_header *udp_of(struct ip_header *ip)
{
    return (struct udp_header *)((uint8_t *)ip + (ip->version_length & 15u) * 4);
}

__handler__ void empty_ph(const handler_args_t *args);
__handler__ void pingpong_ph(const handler_args_t *args);
__handler__ void copy_to_host_ph(const handler_args_t *args);
__handler__ void copy_from_host_ph(const handler_args_t *args);
__handler__ void fetch_ph(const handler_args_t *args);
__handler__ void write_to_host_ph(const handler_args_t *args);
__handler__ void histogram_l1_ph(const handler_args_t *args);
__handler__ void send_too_much_ph(const handler_args_t *args);
__handler__ void many_commands_ph(const handler_args_t *args);
__handler__ void byte_of_window_ph(const handler_args_t *args);
__handler__ void wrong_register_ph(const handler_args_t *args);
__handler__ void atomic_register_ph(const handler_args_t *args);

static uint64_t host_address(const volatile task_t *task)
{
    return (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
}

void empty_ph(const handler_args_t *args)
{
    (void)args;
}

/* Sends the packet's headers back to where they came from. */
static inline void swap_headers(struct ip_header *ip)
{
    struct udp_header *udp = udp_of(ip);
    uint32_t from = ip->from;
    uint16_t from_port = udp->from;
    ip->from = ip->to;
    ip->to = from;
    udp->from = udp->to;
    udp->to = from_port;
}

void pingpong_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    struct ip_header *ip = (struct ip_header *)(uintptr_t)task->pkt_mem;
    spin_cmd_t command;
    swap_headers(ip);
    spin_send_packet(ip, task->pkt_mem_size, &command);
}

void copy_to_host_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    spin_cmd_t command;
    spin_dma_to_host(host_address(task), task->pkt_mem, task->pkt_mem_size, 1, &command);
}

/* As PsPIN's example of that name: swaps headers, fills the packet from the host, sends it. */
void copy_from_host_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    struct ip_header *ip = (struct ip_header *)(uintptr_t)task->pkt_mem;
    uint32_t size = task->pkt_mem_size;
    spin_cmd_t command;
    swap_headers(ip);
    spin_dma_from_host(host_address(task), (uint32_t)(uintptr_t)ip, size, 1, &command);
    spin_cmd_wait(command);
    spin_send_packet(ip, size, &command);
}

void fetch_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    spin_cmd_t command;
    spin_dma_from_host(host_address(task), task->pkt_mem, task->pkt_mem_size, 0, &command);
    spin_cmd_wait(command);
}

void write_to_host_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    spin_cmd_t command;
    spin_write_to_host(host_address(task), 0x0123456789abcdefu, &command);
}

/* Counts the payload's words by their bits 2 to 9. Where it lies, the headers say; no further
 * than the packet goes. */
void histogram_l1_ph(const handler_args_t *args)
{
    enum { BINS_MASK = 0x3fc, BEFORE = sizeof(struct udp_header) + 4 };
    const volatile task_t *task = args->task;
    struct ip_header *ip = (struct ip_header *)(uintptr_t)task->pkt_mem;
    struct udp_header *udp = udp_of(ip);
    uint32_t length = (udp->length & 0xffu) << 8 | udp->length >> 8;
    uint32_t end_of_all = (uint32_t)((uintptr_t)udp - (uintptr_t)ip) + length;
    uintptr_t bins = task->scratchpad[0];
    if (length < BEFORE || end_of_all > task->pkt_mem_size) {
        return;
    }
    const uint32_t *word = (const uint32_t *)(void *)((uint8_t *)udp + BEFORE);
    const uint32_t *end = word + (length - BEFORE) / 4;
    while (word != end) {
        uint32_t value = *word++;
        amo_add((uint32_t *)(bins + (value & BINS_MASK)), 1);
    }
}

/* ---- What is refused, or has to wait ---- */

void send_too_much_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    spin_cmd_t command;
    spin_send_packet((const void *)(uintptr_t)task->pkt_mem, task->pkt_mem_size + 1, &command);
}

/* Four commands may be on their way at once; the fifth waits for the first. */
void many_commands_ph(const handler_args_t *args)
{
    const volatile task_t *task = args->task;
    spin_cmd_t command;
    for (int i = 0; i < 6; i++) {
        spin_dma_to_host(host_address(task) + 64 * i, task->pkt_mem, 64, 1, &command);
    }
}

void byte_of_window_ph(const handler_args_t *args)
{
    (void)*(const volatile uint8_t *)&args->task->pkt_mem;
}

void wrong_register_ph(const handler_args_t *args)
{
    (void)args;
    *spin_register(0x58) = 1;
}

void atomic_register_ph(const handler_args_t *args)
{
    (void)args;
    amo_add(spin_register(0x90), 1);
}
