/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine of machine.h: memory, the driver's registers, commands and when they are done. */
#include "machine.h"

#include <stdio.h>
#include <string.h>

/* Registers of the driver (pspin.h). */
enum {
    FUNCTION = 0x00,
    TASK_HANDLER_MEMORY = 0x08,
    TASK_HANDLER_BYTES = 0x0c,
    TASK_PACKET = 0x10,
    TASK_PACKET_BYTES = 0x14,
    TASK_SCRATCHPAD = 0x18,
    TASK_SCRATCHPAD_BYTES = 0x28,
    TASK_HOST_HIGH = 0x38,
    TASK_HOST_LOW = 0x3c,
    TASK_HOST_BYTES = 0x40,
    WINDOW_END = 0x50,
    DOORBELL = 0x50,
    ISSUE = 0x80,
    WAIT = 0x84,
    INFO = 0x8c,
    WORDS = 0x90,
    WORDS_END = 0xac,
    DRIVER_BYTES = 0x100,
};

/* Measured stages, each besides a cycle for each beat of data. */
enum {
    ARRIVAL = 4,        /* to the request, and a beat */
    SCHEDULING = 16,    /* to the handler, and a beat */
    AROUND_HANDLER = 3, /* from reading the function to the doorbell, without the handler */
    /* From the doorbell to the feedback, with a command that was issued last. */
    SEND_FEEDBACK = 2,
    TO_HOST_FEEDBACK = 16,
    DIRECT_FEEDBACK = 4,
    FEEDBACK = 1, /* from the end of the last command, or the doorbell */
};

/* What commands take, from their issue to their end. Between the issue of the last one and the
 * doorbell are the load of ISSUE, the return, which leads to the end of a fetch line, and a nop.
 * Both ways to and from the host take the same: PsPIN's copy_from_host confirms it (test.c). */
enum {
    ISSUE_TO_DOORBELL = 1 + 3 + 1,
    SEND = ISSUE_TO_DOORBELL + SEND_FEEDBACK - FEEDBACK,
    HOST_DMA = ISSUE_TO_DOORBELL + TO_HOST_FEEDBACK - FEEDBACK,
    DIRECT = ISSUE_TO_DOORBELL + DIRECT_FEEDBACK - FEEDBACK,
};

enum { COMMAND_HOST_DMA, COMMAND_NIC_SEND, COMMAND_HOST_DIRECT };

static uint32_t beats(uint32_t bytes)
{
    return (bytes + 63) / 64;
}

/* ---- Commands ---- */

static uint8_t *host_at(struct pspin *m, uint32_t low, uint32_t high, uint32_t bytes)
{
    uint64_t offset = ((uint64_t)high << 32 | low) - PSPIN_HOST;
    return bytes <= sizeof(m->host) && offset <= sizeof(m->host) - bytes ? m->host + offset : NULL;
}

/* Each gives how long the command takes, or -1 if it is not one that may be done. */
static int64_t send_packet(struct pspin *m)
{
    const uint32_t *w = m->words;
    const void *from = rv32_core_reach(&m->core, w[2], w[4], RV32_READ);
    if (from == NULL || w[3] != 0 || w[4] == 0 || w[4] > sizeof(m->sent)) {
        return -1;
    }
    memcpy(m->sent, from, w[4]);
    m->sent_size = w[4];
    m->sent_count++;
    return SEND + beats(w[4]);
}

static int64_t host_dma(struct pspin *m)
{
    const uint32_t *w = m->words;
    bool to_host = (w[4] & 1) != 0;
    uint8_t *host = host_at(m, w[0], w[1], w[3]);
    void *nic = rv32_core_reach(&m->core, w[2], w[3], to_host ? RV32_READ : RV32_WRITE);
    if (host == NULL || nic == NULL || w[3] == 0) {
        return -1;
    }
    memcpy(to_host ? host : nic, to_host ? nic : host, w[3]);
    return HOST_DMA + beats(w[3]);
}

static int64_t host_direct(struct pspin *m)
{
    const uint32_t *w = m->words;
    uint8_t *host = host_at(m, w[0], w[1], 8);
    if (host == NULL || w[2] != (1 | 8 << 1)) {
        return -1;
    }
    memcpy(host, &w[3], 8);
    return DIRECT;
}

/* Starts the command that stands in the registers, as soon as one of the four is free. */
static int64_t issue(struct pspin *m, uint64_t cycle, uint32_t *number)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < PSPIN_COMMANDS; i++) {
        first = m->done[i] < m->done[first] ? i : first;
    }
    int64_t takes = -1;
    switch (m->info >> 1) {
    case COMMAND_HOST_DMA:
        takes = host_dma(m);
        break;
    case COMMAND_NIC_SEND:
        takes = send_packet(m);
        break;
    case COMMAND_HOST_DIRECT:
        takes = host_direct(m);
        break;
    default:
        break;
    }
    if (takes < 0) {
        return -1;
    }
    uint64_t begins = m->done[first] > cycle ? m->done[first] : cycle;
    m->done[first] = begins + (uint64_t)takes;
    *number = first;
    return (int64_t)(begins - cycle);
}

/* ---- Registers ---- */

static int64_t read_register(struct pspin *m, uint32_t offset, uint64_t cycle, uint32_t *word)
{
    if (offset < WINDOW_END) {
        m->began = offset == FUNCTION ? cycle : m->began;
        *word = m->window[offset / 4];
        return 0;
    }
    switch (offset) {
    case DOORBELL:
        m->doorbell = cycle;
        *word = 0;
        return 0;
    case ISSUE:
        return issue(m, cycle, word);
    default:
        return -1;
    }
}

static int64_t write_register(struct pspin *m, uint32_t offset, uint64_t cycle, uint32_t word)
{
    if (offset >= WORDS && offset < WORDS_END) {
        m->words[(offset - WORDS) / 4] = word;
        return 0;
    }
    if (offset == INFO) {
        m->info = word;
        return 0;
    }
    if (offset != WAIT || word >= PSPIN_COMMANDS) {
        return -1;
    }
    /* The store itself takes a cycle: it ends with the command. */
    return m->done[word] > cycle + 1 ? (int64_t)(m->done[word] - cycle - 1) : 0;
}

static int64_t access_driver(void *context, enum rv32_access access, uint32_t offset,
                             uint64_t cycle, uint32_t *word)
{
    return access == RV32_READ ? read_register(context, offset, cycle, word)
                               : write_register(context, offset, cycle, *word);
}

/* ---- The machine ---- */

static int map(struct pspin *m, struct rv32_error *error)
{
    const struct {
        const char *name;
        uint32_t base, size;
        void *host;
        enum rv32_area area;
    } regions[] = {
        {"stack", PSPIN_STACK, sizeof(m->stack), m->stack, RV32_AREA_L1},
        {"packet", PSPIN_PACKET, m->packet_size, m->packet, RV32_AREA_L1},
        {"scratchpad", PSPIN_SCRATCHPAD, sizeof(m->scratchpad), m->scratchpad, RV32_AREA_L1},
        {"handler memory", PSPIN_HANDLER_MEMORY, sizeof(m->handler_memory), m->handler_memory,
         RV32_AREA_HANDLER},
    };
    int rc = rv32_core_map_image(&m->core, &m->image, error);
    for (size_t i = 0; rc == 0 && i < sizeof(regions) / sizeof(regions[0]); i++) {
        rc = rv32_core_map(&m->core, regions[i].name, regions[i].base, regions[i].size,
                           regions[i].host, RV32_READ | RV32_WRITE, regions[i].area, error);
    }
    m->driver = (struct rv32_device){.access = access_driver, .context = m};
    return rc != 0 ? rc
                   : rv32_core_map_device(&m->core, "HPU driver", PSPIN_DRIVER, DRIVER_BYTES,
                                          &m->driver, error);
}

bool pspin_open(struct pspin *m, const char *image, enum rv32_program_kind kind)
{
    struct rv32_error error = {""};
    *m = (struct pspin){.packet_size = 64};
    if (rv32_image_open(&m->image, image, &error) == 0 &&
        rv32_program_make(&m->program, &m->image, &rv32_timings[0], kind, &error) == 0) {
        return true;
    }
    fprintf(stderr, "%s\n", error.text);
    pspin_close(m);
    return false;
}

void pspin_close(struct pspin *m)
{
    rv32_program_free(&m->program);
    rv32_image_close(&m->image);
}

static void set_task(struct pspin *m, uint32_t function)
{
    memset(m->window, 0, sizeof(m->window));
    m->window[FUNCTION / 4] = function;
    m->window[TASK_HANDLER_MEMORY / 4] = PSPIN_HANDLER_MEMORY;
    m->window[TASK_HANDLER_BYTES / 4] = sizeof(m->handler_memory);
    m->window[TASK_PACKET / 4] = PSPIN_PACKET;
    m->window[TASK_PACKET_BYTES / 4] = m->packet_size;
    m->window[TASK_SCRATCHPAD / 4] = PSPIN_SCRATCHPAD;
    m->window[TASK_SCRATCHPAD_BYTES / 4] = sizeof(m->scratchpad);
    m->window[TASK_HOST_HIGH / 4] = (uint32_t)(PSPIN_HOST >> 32);
    m->window[TASK_HOST_LOW / 4] = (uint32_t)PSPIN_HOST;
    m->window[TASK_HOST_BYTES / 4] = sizeof(m->host);
}

struct pspin_outcome pspin_serve(struct pspin *m, const char *handler)
{
    static const struct rv32_result absent = {.end = RV32_FAULT_JUMP};
    struct pspin_outcome outcome = {.result = &absent};
    struct rv32_error error = {""};
    const struct rv32_symbol *run = rv32_image_find(&m->image, "hpu_run");
    const struct rv32_symbol *function = rv32_image_find(&m->image, handler);
    rv32_core_init(&m->core, &m->program);
    if (run == NULL || function == NULL || map(m, &error) != 0) {
        fprintf(stderr, "%s: %s\n", handler, error.text[0] != '\0' ? error.text : "not there");
        return outcome;
    }
    set_task(m, function->address);
    memset(m->done, 0, sizeof(m->done));
    m->doorbell = 0;
    struct rv32_call call = {
        .pc = run->address, .stack = PSPIN_STACK + PSPIN_STACK_BYTES, .budget = 1000000};
    outcome.result = rv32_core_call(&m->core, &call);
    if (outcome.result->end != RV32_RETURNED) {
        return outcome;
    }
    uint64_t last = m->doorbell;
    for (int i = 0; i < PSPIN_COMMANDS; i++) {
        last = m->done[i] > last ? m->done[i] : last;
    }
    uint64_t feedback = last + FEEDBACK;
    uint64_t before = ARRIVAL + SCHEDULING + 2 * beats(m->packet_size);
    outcome.handler = m->doorbell - m->began - AROUND_HANDLER;
    outcome.latency = before + feedback - m->began;
    return outcome;
}
