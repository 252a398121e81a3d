/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network interfaces: the four kinds of a NIC, their limits and maps.
 *
 * PtlNIFini lets the operations in flight end for a while. Then it halts the handlers of the NI:
 * none begins or goes on, and it ends those that run and waits for them. When no thread is inside
 * any more it cuts off the rest: operations lose their NI and end without an event, messages in
 * progress are discarded. The NI's tables are empty then, and the next NI of this number gets its
 * memory. A thread that has found the NI before learns under the lock that it is closed (invariant
 * set 7).
 */
#include "nic/ni.h"

#include "base/log.h"
#include "base/sys.h"
#include "nic/answer.h"
#include "nic/entry.h"
#include "nic/nic.h"
#include "nic/process.h"
#include "nic/progress.h"
#include "nic/pt.h"
#include "nic/rungs.h"
#include "nic/spin_calls.h"
#include "nic/wait.h"

#include <stdlib.h>
#include <string.h>

/* The largest limits that this NIC offers. Those of atomics are smaller where a packet is: an
 * atomic travels in one packet. */
static const ptl_ni_limits_t most = {
    .max_entries = 131072,
    .max_unexpected_headers = 131072,
    .max_mds = 131072,
    .max_cts = 131072,
    .max_eqs = 16384,
    .max_pt_index = 255,
    .max_iovecs = 65536,
    .max_list_size = 131072,
    .max_triggered_ops = 131072,
    .max_msg_size = 1ull << 32,
    .max_waw_ordered_size = 1ull << 32,
    .max_war_ordered_size = 1ull << 32,
    .max_volatile_size = 4096,
    .features = PTL_TARGET_BIND_INACCESSIBLE | PTL_TOTAL_DATA_ORDERING | PTL_COHERENT_ATOMICS,
};

/* The least that the specification allows. */
#define MIN_PT_INDEX 63
#define MIN_WAW 64
#define MIN_WAR 8
#define MIN_ATOMIC 32 /* one element of every type */
#define MAX_ATOMIC 4096

/* seconds in which a thread that is to leave its wait, or that copies, should have done so */
#define LEAVE_S 10

/* Sets a limit to the value that the program wishes, or the nearest one that the NIC offers. */
#define SET_LIMIT(l, d, name, lowest)                                                              \
    ((l)->name = (d)->name < (lowest) ? (lowest) : (d)->name < (l)->name ? (d)->name : (l)->name)

static void set_limits(ptl_ni_limits_t *l, const ptl_ni_limits_t *d, size_t packet_size)
{
    *l = most;
    l->max_atomic_size = packet_size < MAX_ATOMIC ? packet_size : MAX_ATOMIC;
    l->max_fetch_atomic_size = l->max_atomic_size;
    if (d == NULL) {
        return;
    }
    SET_LIMIT(l, d, max_atomic_size, MIN_ATOMIC);
    SET_LIMIT(l, d, max_fetch_atomic_size, MIN_ATOMIC);
    SET_LIMIT(l, d, max_entries, 1);
    SET_LIMIT(l, d, max_unexpected_headers, 0);
    SET_LIMIT(l, d, max_iovecs, 0);
    SET_LIMIT(l, d, max_mds, 1);
    SET_LIMIT(l, d, max_cts, 1);
    SET_LIMIT(l, d, max_eqs, 1);
    SET_LIMIT(l, d, max_pt_index, MIN_PT_INDEX);
    SET_LIMIT(l, d, max_list_size, 1);
    SET_LIMIT(l, d, max_triggered_ops, 1);
    SET_LIMIT(l, d, max_msg_size, 1);
    l->max_waw_ordered_size = l->max_msg_size > MIN_WAW ? l->max_msg_size : MIN_WAW;
    SET_LIMIT(l, d, max_waw_ordered_size, MIN_WAW);
    SET_LIMIT(l, d, max_war_ordered_size, MIN_WAR);
    l->max_volatile_size = d->max_volatile_size < most.max_volatile_size ? d->max_volatile_size
                                                                         : most.max_volatile_size;
    if ((d->features & PTL_TOTAL_DATA_ORDERING) == 0) {
        /* the program does without total ordering, so the data of a message need not wait for
         * others (turn.c) */
        l->features &= ~PTL_TOTAL_DATA_ORDERING;
    }
}

/* Returns the memory of all NIs of a number, one after the other; makes it for the first one. */
static struct ni *find_memory(struct nic *nic, unsigned kind)
{
    static const size_t objects[NI_TABLES] = {sizeof(struct eq),         sizeof(struct ct),
                                              sizeof(struct md),         sizeof(struct le),
                                              sizeof(struct hpu_memory), sizeof(struct timer)};
    unsigned number = nic->index * NI_KINDS + kind;
    struct ni *ni = nic->process->ni_memory[number];
    if (ni == NULL && (ni = calloc(1, sizeof(*ni))) != NULL) {
        ni->nic = nic;
        ni->kind = kind;
        for (unsigned i = 0; i < NI_TABLES; i++) {
            table_init(&ni->tables[i], HANDLE_EQ + i, number, 0, objects[i]);
        }
        nic->process->ni_memory[number] = ni;
    }
    return ni;
}

/* Empties the tables that stay when the NI is closed; lock held. */
static void clear_tables(struct ni *ni)
{
    const ptl_ni_limits_t *l = &ni->limits;
    const int limits[NI_TABLES] = {l->max_eqs,     l->max_cts,     l->max_mds,
                                   l->max_entries, l->max_entries, PTL_SPIN_TIMERS};
    for (unsigned i = 0; i < NI_TABLES; i++) {
        table_clear(&ni->tables[i], (uint32_t)limits[i]);
    }
}

void ni_free_memory(struct ni *ni)
{
    for (unsigned i = 0; ni != NULL && i < NI_TABLES; i++) {
        table_free(&ni->tables[i]);
    }
    free(ni);
}

/* Makes a fresh NI in its memory; lock held. */
static void begin_ni(struct ni *ni, unsigned options, const ptl_ni_limits_t *desired)
{
    unsigned number = ni->nic->index * NI_KINDS + ni->kind;
    ni->options = options;
    __atomic_store_n(&ni->rank, PTL_RANK_ANY, __ATOMIC_RELAXED);
    /* differs from the epoch of anything that was found in an earlier NI of this memory */
    ni->epoch++;
    ni->in_flight = ni->bundles = ni->waiting = 0;
    ni->closing = ni->halted = false;
    for (unsigned i = 0; i < PTL_SPIN_COUNTERS; i++) {
        atomic_store_explicit(&ni->counters[i].sum, 0, memory_order_relaxed);
        atomic_store_explicit(&ni->counters[i].count, 0, memory_order_relaxed);
    }
    set_limits(&ni->limits, desired, ni->nic->packet_size);
    clear_tables(ni);
    table_init(&ni->unexpected, HANDLE_NONE, number, (uint32_t)ni->limits.max_unexpected_headers,
               sizeof(struct unexpected));
    table_init(&ni->triggered, HANDLE_NONE, number, (uint32_t)ni->limits.max_triggered_ops,
               sizeof(struct triggered));
}

int ni_open(struct nic *nic, unsigned options, const ptl_ni_limits_t *desired, struct ni **result)
{
    unsigned kind = ni_kind_of(options);
    struct process *p = nic->process;
    unsigned number = nic->index * NI_KINDS + kind;
    struct ni *ni = find_memory(nic, kind);
    struct pt *pts = calloc((size_t)most.max_pt_index + 1, sizeof(*pts));
    if (ni == NULL || pts == NULL) {
        free(pts);
        return nic_no_memory();
    }
    nic_lock(nic);
    begin_ni(ni, options, desired);
    ni->pts = pts;
    ni->registers = nic->stats->registers[kind];
    memset(ni->registers, 0, sizeof(nic->stats->registers[kind]));
    p->generations[number] = p->generations[number] % ((1u << HANDLE_GENERATION_BITS) - 1) + 1;
    ni->handle = handle_make(HANDLE_NI, number, p->generations[number], 0);
    nic->ni[kind] = ni;
    nic->stats->open |= 1u << kind;
    nic_unlock(nic);
    __atomic_store_n(&p->nis[number], ni, __ATOMIC_RELEASE);
    *result = ni;
    return PTL_OK;
}

/* Closes an NI: no thread finds anything of it any more. The next NI of its number gets its memory,
 * unless a thread has stayed inside (`haunted`). Lock held. */
static void end_ni(struct ni *ni, bool haunted)
{
    ni->handle = 0;
    clear_tables(ni);
    if (haunted) {
        ni->nic->haunted = true;
        ni->nic->process->ni_memory[ni->nic->index * NI_KINDS + ni->kind] = NULL;
        return;
    }
    table_free(&ni->unexpected);
    table_free(&ni->triggered);
    ni->spare_triggered = NULL;
    free(ni->pts);
    free(ni->map);
    free(ni->map_peers);
    ni->pts = NULL;
    ni->map = NULL;
    ni->map_peers = NULL;
    ni->map_size = 0;
}

static bool quiet(void *arg)
{
    struct ni *ni = arg;
    return ni->in_flight == 0;
}

static void cut_message(struct rx *rx, const struct ni *ni)
{
    if (rx->at.ni == ni) {
        rx_abandon(rx);
    } else if (rx_op(rx) != NULL && rx_op(rx)->ni == NULL) {
        rx->f.sink = RX_DISCARD;
    }
}

/* Takes the NI away from the operations and messages that still refer to it. */
static void cut_off(struct ni *ni)
{
    struct nic *nic = ni->nic;
    TABLE_EACH(struct op, op, &nic->operations) {
        if (op->ni == ni) {
            op->ni = NULL;
            op->request.md = op->request.get_md = NULL;
            if (op->tx.vector != NULL) {
                op->tx.fault = FABRIC_SEGV; /* the vector is freed with its MD */
            }
        }
    }
    LIST_EACH(struct nic_peer, p, &nic->all_peers, all) {
        for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
            for (struct rx *rx = p->rx[c]; rx != NULL; rx = rx->beside) {
                cut_message(rx, ni);
            }
        }
    }
    invoke_cut(ni);
    for (struct list *l = nic->fired.next, *next; l != &nic->fired; l = next) {
        next = l->next;
        if (container_of(l, struct triggered, link)->ni == ni) {
            list_remove(l);
        }
    }
}

/* Calls ask() for each message of the NI; returns whether any call returned true. */
static bool any_message(struct ni *ni, bool (*ask)(struct rx *rx))
{
    struct nic *nic = ni->nic;
    bool any = invoke_any(ni, ask);
    LIST_EACH(struct nic_peer, p, &nic->all_peers, all) {
        for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
            for (struct rx *rx = p->rx[c]; rx != NULL; rx = rx->beside) {
                any |= rx->at.ni == ni && ask(rx);
            }
        }
    }
    return any;
}

/* Whether no program thread waits for anything of the NI or works on it without the lock. A thread
 * that copies without the lock does not note for which NI, so a copy for any NI of the NIC
 * counts. */
static bool is_left_alone(struct ni *ni)
{
    return ni->waiting == 0 && ni->nic->unlocked == ni->nic->handling;
}

static bool nobody_inside(void *arg)
{
    return is_left_alone(arg) && !any_message(arg, handlers_run);
}

/* Sees to it that from now on no handler of the NI begins or is resumed. */
static void halt(struct ni *ni)
{
    nic_lock(ni->nic);
    ni->halted = true;
    if (ni->nic->sched != NULL) {
        hpu_sched_pause(ni->nic->sched);
    }
    nic_unlock(ni->nic);
}

/* Ends the handlers that still run, and waits for them: they may write to memory that belongs to
 * the program once PtlNIFini returns. It returns with the lock held, so that no thread comes in
 * again. False: a program thread did not leave, as if its call had ended by longjmp(). */
static bool end_who_is_inside(struct ni *ni)
{
    struct nic *nic = ni->nic;
    int64_t end = clock_ns() + LEAVE_S * 1000000000ll;
    for (bool told = false;;) {
        nic_lock(nic);
        bool runs = any_message(ni, handlers_end);
        bool late = clock_ns() >= end;
        if (!runs && (late || is_left_alone(ni))) {
            return is_left_alone(ni);
        }
        nic_unlock(nic);
        if (late && !told) {
            log_line(LOG_WARN, "PtlNIFini waits for a handler that was ended and goes on: its "
                               "thread gets no processor, or blocks SIGURG");
            told = true;
        }
        nic_wait(nic, nobody_inside, ni, 1000000);
    }
}

void ni_close(struct ni *ni)
{
    struct nic *nic = ni->nic;
    struct process *p = nic->process;
    __atomic_store_n(&p->nis[nic->index * NI_KINDS + ni->kind], NULL, __ATOMIC_RELEASE);
    process_renew();
    nic->linger_end = 0;
    ni_end_waits(ni);
    nic_lock(nic);
    timers_end(ni); /* no new timer begins: the NI is closing */
    nic_unlock(nic);
    nic_linger(nic, quiet, ni);
    halt(ni);
    nic_linger(nic, nobody_inside, ni);
    bool free_to_go = end_who_is_inside(ni);
    cut_off(ni);
    nic->ni[ni->kind] = NULL;
    nic->stats->open &= ~(1u << ni->kind);
    for (int i = 0; i <= ni->limits.max_pt_index; i++) {
        pt_clear(&ni->pts[i]);
    }
    TABLE_EACH(struct le, le, &ni->les) {
        if (le->handlers == NULL || !le->handlers->orphaned) {
            free((void *)le->vector.parts);
        }
        handlers_release(le->handlers); /* of an entry that still had users */
    }
    TABLE_EACH(struct md, md, &ni->mds) {
        free((void *)md->vector.parts);
    }
    TABLE_EACH(struct ct, ct, &ni->cts) {
        rungs_forget(ct);
    }
    TABLE_EACH(struct hpu_memory, m, &ni->hpu_memories) {
        hpu_memory_free(m);
    }
    TABLE_EACH(struct eq, eq, &ni->eqs) {
        free(eq->ring);
    }
    if (nic->sched != NULL) {
        hpu_sched_resume(nic->sched);
    }
    end_ni(ni, !free_to_go);
    nic_unlock(nic);
    if (!free_to_go) {
        log_line(LOG_ERROR,
                 "a thread did not leave its wait, or a copy did not end, within %d s; "
                 "the memory of their interface is kept",
                 LEAVE_S);
    }
}

int ni_set_map(struct ni *ni, ptl_handle_ni_t handle, uint64_t size, const ptl_process_t *map)
{
    ptl_process_t *copy = calloc(size, sizeof(*copy));
    struct nic_peer **peers = calloc(size, sizeof(struct nic_peer *));
    nic_lock(ni->nic);
    int rc = ni->handle != handle            ? PTL_ARG_INVALID
             : ni->map != NULL               ? PTL_IGNORED
             : copy == NULL || peers == NULL ? PTL_NO_SPACE
                                             : PTL_OK;
    if (rc != PTL_OK) {
        nic_unlock(ni->nic);
        free(copy);
        free(peers);
        return rc;
    }
    memcpy(copy, map, size * sizeof(*copy));
    ni->map = copy;
    ni->map_peers = peers;
    ni->map_size = size;
    ptl_rank_t own = PTL_RANK_ANY;
    for (uint64_t r = 0; r < size && own == PTL_RANK_ANY; r++) {
        if (map[r].phys.nid == ni->nic->nid && map[r].phys.pid == ni->nic->pid) {
            own = (ptl_rank_t)r;
        }
    }
    /* target_is_own() reads it without the lock */
    __atomic_store_n(&ni->rank, own, __ATOMIC_RELAXED);
    nic_unlock(ni->nic);
    return PTL_OK;
}
