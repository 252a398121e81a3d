/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault-tolerant broadcast among the benches of eight ranks, with all of them alive:
 * work->size bytes from rank 0 over a binomial graph, each rank passes the first copy on to all
 * of its neighbours; all but rank 0 compute for a while, and only then look.
 *
 *   handlers      handlers/ftbcast: chunk by chunk, later copies are dropped unseen
 *   cpu           the ranks' programs: whole messages, each neighbour's copy in a place of its own
 *
 * What is left of the redundancy when the last rank has the data is not timed.
 */
#include "ranks.h"

#include "broadcast.h"
#include "ftbcast.h"

#include <string.h>

static struct {
    struct ftbcast_state state; /* the neighbours of the rank */
    ptl_handlers_t handlers;
    ptl_handle_hpu_mem_t memory;
    uint64_t bits; /* a broadcast's own, so that late copies of the one before do not match */
} ft = {.memory = PTL_HPU_MEM_NONE, .bits = BITS_OVER};

static uint8_t *held(void)
{
    return turn_rank() == 0 ? crew.from : crew.to;
}

/* The graph, which is the same for both ways, and the handlers of the next broadcast. */
static int make_handlers(uint64_t size)
{
    if (!link_ok(PtlHPUAllocMem(self.ni, ftbcast_memory(size, self.packet), &ft.memory),
                 "PtlHPUAllocMem")) {
        return -1;
    }
    ft.bits++;
    return link_ok(ftbcast_handlers(&crew.group, 0, size, ft.bits, self.packet, ft.memory,
                                    &ft.state, &ft.handlers),
                   "ftbcast_handlers")
               ? 0
               : -1;
}

static int free_memory(void)
{
    int code = ft.memory != PTL_HPU_MEM_NONE ? PtlHPUFreeMem(ft.memory) : PTL_OK;
    ft.memory = PTL_HPU_MEM_NONE;
    return link_ok(code, "PtlHPUFreeMem") ? 0 : -1;
}

static int begin(const struct turn_work *work)
{
    turn_fill(crew.from, work->size, work->size);
    memset(crew.to, 0, work->size);
    crew.time.total = 0;
    if (crew.by_cpu && (make_handlers(work->size) != 0 || free_memory() != 0 ||
                        crew_append(LINK_EVENTS, BITS_DATA, crew.aside, TURN_RANKS * work->size,
                                    &crew.arrived, NULL) != 0)) {
        return -1;
    }
    return turn_gather(NULL, 0, NULL);
}

/* ---- By handlers: an entry and HPU memory for each broadcast ---- */

static int by_handlers(uint64_t size)
{
    if (turn_rank() != 0) {
        crew_compute();
    } else if (!link_ok(broadcast_start(crew.md, self.me, LINK_COUNTED, ft.bits, size, self.packet),
                        "broadcast_start")) {
        return -1;
    }
    return link_wait(&crew.arrived, broadcast_messages(size, self.packet));
}

static int append(uint64_t size)
{
    return make_handlers(size) != 0
               ? -1
               : crew_append(LINK_COUNTED, ft.bits, held(), size, &crew.arrived, &ft.handlers);
}

static int take_out(void)
{
    return spin_take_out(&crew.entries[--crew.entry_count]) != 0 ? -1 : free_memory();
}

/* ---- By the CPU ---- */

static int next_copy(ptl_event_t *event)
{
    int code = PtlEQWait(self.eq, event);
    return code == PTL_OK && event->ni_fail_type == PTL_NI_OK
               ? 0
               : turn_fail("PtlEQWait: %d, failure %d", code, (int)event->ni_fail_type);
}

static int by_cpu(uint64_t size)
{
    uint64_t place = (uint64_t)turn_rank() * size;
    int rc = 0;
    if (turn_rank() != 0) {
        ptl_event_t first;
        crew_compute();
        rc = next_copy(&first);
        if (rc == 0) {
            memcpy(crew.to, first.start, size);
        }
    }
    for (uint32_t i = 0; i < ft.state.neighbours && rc == 0; i++) {
        rc = crew_put(turn_rank() == 0 ? crew.md : crew.to_md, size, ft.state.neighbour[i],
                      LINK_EVENTS, BITS_DATA, place, 0);
    }
    return rc;
}

/* The copies of all other neighbours. */
static int late_copies(void)
{
    uint32_t copies = ft.state.neighbours - (turn_rank() != 0);
    ptl_event_t event;
    int rc = 0;
    for (; copies != 0 && rc == 0; copies--) {
        rc = next_copy(&event);
    }
    return rc;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    int rc = 0;
    crew.time.total = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        rc = crew.by_cpu ? 0 : append(work->size);
        rc = rc == 0 ? crew_begin(&crew.time) : rc;
        rc = rc != 0 ? rc : crew.by_cpu ? by_cpu(work->size) : by_handlers(work->size);
        rc = rc == 0 ? crew_end(&crew.time) : rc;
        rc = rc != 0 ? rc : crew.by_cpu ? late_copies() : take_out();
    }
    return rc;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    int rc = turn_rank() != 0 && work->check ? turn_check(crew.to, work->size, work->size) : 0;
    return crew_finish(work, result) != 0 ? -1 : rc;
}

const struct turn_duty redundant_duties[] = {{BENCH_SPIN_FTBCAST, crew_fits, begin, run, end}};
const int redundant_duty_count = 1;
