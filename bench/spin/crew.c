/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of the benches of eight ranks, and its collectives.
 *
 *   broadcast     work->size bytes from rank 0; all others compute for a while, and only then
 *                 look                                  handlers/broadcast, a binomial tree
 *   allreduce     a vector of doubles of that size, added up            handlers/allreduce
 *
 *   handlers      by handlers
 *   cpu           by the ranks' programs: whole messages along the same trees
 *
 * `extra` of rank 0 is seconds of an iteration, until the last rank has its result (crew.h).
 */
#include "ranks.h"

#include "allreduce.h"
#include "broadcast.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct ranks crew;

/* ---- Entries ---- */

int crew_append(unsigned index, ptl_match_bits_t bits, void *start, ptl_size_t length,
                const struct link_count *count, const ptl_handlers_t *handlers)
{
    if (spin_entry(index, 0, bits, 0, start, length, count, handlers,
                   &crew.entries[crew.entry_count]) != 0) {
        return -1;
    }
    crew.entry_count++;
    return 0;
}

int crew_finish(const struct turn_work *work, struct turn_result *result)
{
    result->extra = crew.time.total / (double)work->count;
    for (; crew.entry_count > 0; crew.entry_count--) {
        if (spin_take_out(&crew.entries[crew.entry_count - 1]) != 0) {
            return -1;
        }
    }
    return spin_settle(&crew.arrived) != 0 || spin_settle(&crew.result) != 0 ? -1 : 0;
}

int crew_put(ptl_handle_md_t md, uint64_t length, ptl_process_t to, unsigned index,
             ptl_match_bits_t bits, uint64_t offset, uint64_t hdr_data)
{
    int code = PtlPut(md, 0, length, PTL_NO_ACK_REQ, to, index, bits, offset, NULL, hdr_data);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

/* ---- broadcast ---- */

static int begin_broadcast(const struct turn_work *work)
{
    static struct broadcast_state state;
    ptl_handlers_t h;
    bool root = turn_rank() == 0;
    turn_fill(crew.from, work->size, work->size);
    memset(crew.to, 0, work->size);
    int code = broadcast_handlers(&crew.group, TREE_BINOMIAL, 0, work->size, BITS_DATA, self.packet,
                                  &state, &h);
    crew.time.total = 0;
    return !link_ok(code, "broadcast_handlers") ||
                   crew_append(LINK_COUNTED, BITS_DATA, root ? crew.from : crew.to, work->size,
                               &crew.arrived, crew.by_cpu ? NULL : &h) != 0
               ? -1
               : turn_gather(NULL, 0, NULL);
}

static int pass_on(uint64_t length)
{
    ptl_process_t child[TREE_CHILDREN];
    uint32_t children = tree_children(&crew.group, TREE_BINOMIAL, 0, child);
    int rc = 0;
    for (uint32_t i = 0; i < children && rc == 0; i++) {
        rc = crew_put(turn_rank() == 0 ? crew.md : crew.to_md, length, child[i], LINK_COUNTED,
                      BITS_DATA, 0, 0);
    }
    return rc;
}

static int broadcast_by_cpu(uint64_t length)
{
    if (turn_rank() != 0) {
        crew_compute();
        if (link_wait(&crew.arrived, 1) != 0) {
            return -1;
        }
    }
    return pass_on(length);
}

static int broadcast_by_handlers(uint64_t length)
{
    if (turn_rank() != 0) {
        crew_compute();
    } else if (!link_ok(
                   broadcast_start(crew.md, self.me, LINK_COUNTED, BITS_DATA, length, self.packet),
                   "broadcast_start")) {
        return -1;
    }
    return link_wait(&crew.arrived, broadcast_messages(length, self.packet));
}

static int run_broadcast(const struct turn_work *work, uint64_t iterations)
{
    crew.time.total = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        if (crew_begin(&crew.time) != 0 ||
            (crew.by_cpu ? broadcast_by_cpu(work->size) : broadcast_by_handlers(work->size)) != 0 ||
            crew_end(&crew.time) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_broadcast(const struct turn_work *work, struct turn_result *result)
{
    int rc = turn_rank() != 0 && work->check ? turn_check(crew.to, work->size, work->size) : 0;
    return crew_finish(work, result) != 0 ? -1 : rc;
}

/* ---- allreduce ---- */

static struct allreduce reduction;
static ptl_handle_hpu_mem_t reduction_memory = PTL_HPU_MEM_NONE;

static int append_allreduce(uint64_t size)
{
    static struct allreduce_state up, down;
    ptl_handlers_t h_up, h_down;
    int code = PtlHPUAllocMem(self.ni, allreduce_memory(&reduction), &reduction_memory);
    code = code == PTL_OK ? allreduce_up(&reduction, reduction_memory, &up, &h_up) : code;
    code = code == PTL_OK ? allreduce_down(&reduction, &down, &h_down) : code;
    return link_ok(code, "making the handlers of an allreduce") &&
                   crew_append(LINK_COUNTED, BITS_DATA, crew.from, size, &crew.arrived, &h_up) ==
                       0 &&
                   crew_append(LINK_COUNTED, BITS_RESULT, crew.to, size, &crew.result, &h_down) == 0
               ? 0
               : -1;
}

/* Each rank's contribution has its own place at the parent, so that none waits for another. */
static int append_for_cpu(uint64_t size)
{
    return crew_append(LINK_COUNTED, BITS_DATA, crew.aside, TURN_RANKS * size, &crew.arrived,
                       NULL) != 0 ||
                   crew_append(LINK_COUNTED, BITS_RESULT, crew.to, size, &crew.result, NULL) != 0
               ? -1
               : 0;
}

static int begin_allreduce(const struct turn_work *work)
{
    double *mine = (double *)crew.from;
    for (uint64_t i = 0; i < work->size / sizeof(*mine); i++) {
        mine[i] = (double)(i % 100) + turn_rank();
    }
    reduction = (struct allreduce){.group = crew.group,
                                   .op = PTL_SUM,
                                   .type = PTL_DOUBLE,
                                   .count = work->size / sizeof(*mine),
                                   .up = BITS_DATA,
                                   .down = BITS_RESULT,
                                   .packet = self.packet};
    int rc = crew.by_cpu ? append_for_cpu(work->size) : append_allreduce(work->size);
    return rc != 0 ? rc : turn_gather(NULL, 0, NULL);
}

static int allreduce_by_handlers(void)
{
    return link_ok(allreduce_start(&reduction, crew.md, LINK_COUNTED), "allreduce_start")
               ? link_wait(&crew.result, allreduce_messages(&reduction))
               : -1;
}

static int allreduce_by_cpu(uint64_t size)
{
    ptl_process_t child[TREE_CHILDREN];
    uint32_t children = tree_children(&crew.group, TREE_BINOMIAL, 0, child);
    double *sum = (double *)crew.to;
    memcpy(sum, crew.from, size);
    if (children != 0 && link_wait(&crew.arrived, children) != 0) {
        return -1;
    }
    for (uint32_t r = 0; r < TURN_RANKS; r++) {
        struct tree_group g = {.rank = r, .size = TURN_RANKS};
        const double *theirs = (const double *)(crew.aside + r * size);
        if (r != 0 && tree_parent(&g, TREE_BINOMIAL, 0) == crew.group.rank) {
            for (uint64_t i = 0; i < size / sizeof(*sum); i++) {
                sum[i] += theirs[i];
            }
        }
    }
    int rc = 0;
    if (turn_rank() != 0) {
        uint32_t parent = tree_parent(&crew.group, TREE_BINOMIAL, 0);
        rc = crew_put(crew.to_md, size, crew.id[parent], LINK_COUNTED, BITS_DATA,
                      (uint64_t)turn_rank() * size, 0) != 0 ||
             link_wait(&crew.result, 1) != 0;
    }
    for (uint32_t i = 0; i < children && rc == 0; i++) {
        rc = crew_put(crew.to_md, size, child[i], LINK_COUNTED, BITS_RESULT, 0, 0);
    }
    return rc == 0 ? 0 : -1;
}

static int run_allreduce(const struct turn_work *work, uint64_t iterations)
{
    crew.time.total = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        if (crew_begin(&crew.time) != 0 ||
            (crew.by_cpu ? allreduce_by_cpu(work->size) : allreduce_by_handlers()) != 0 ||
            crew_end(&crew.time) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_allreduce(const struct turn_work *work, struct turn_result *result)
{
    const double *sum = (const double *)crew.to;
    int rc = 0;
    for (uint64_t i = 0; work->check && i < work->size / sizeof(*sum) && rc == 0; i++) {
        double wanted = TURN_RANKS * (double)(i % 100) + TURN_RANKS * (TURN_RANKS - 1) / 2.0;
        rc = sum[i] == wanted ? 0 : turn_fail("element %lu of the sum is wrong", (unsigned long)i);
    }
    if (crew_finish(work, result) != 0 ||
        (reduction_memory != PTL_HPU_MEM_NONE &&
         !link_ok(PtlHPUFreeMem(reduction_memory), "PtlHPUFreeMem"))) {
        return -1;
    }
    reduction_memory = PTL_HPU_MEM_NONE;
    return rc;
}

/* ---- The program ---- */

static int bind(void *start, ptl_handle_md_t *md)
{
    ptl_md_t wanted = {
        .start = start, .length = RANKS_MOST, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    return link_ok(PtlMDBind(self.ni, &wanted, md), "PtlMDBind") ? 0 : -1;
}

static int open_crew(void)
{
    ptl_spin_limits_t limits;
    crew.from = spin_pages(RANKS_MOST);
    crew.to = spin_pages(RANKS_MOST);
    crew.aside = spin_pages((size_t)TURN_RANKS * RANKS_MOST);
    if (crew.from == NULL || crew.to == NULL || crew.aside == NULL) {
        return turn_fail("no memory for messages");
    }
    if (!link_ok(PtlInit(), "PtlInit") ||
        !link_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
                           NULL, &self.ni),
                 "PtlNIInit") ||
        !link_ok(PtlGetPhysId(self.ni, &self.me), "PtlGetPhysId") ||
        !link_ok(PtlSpinLimits(self.ni, &limits), "PtlSpinLimits") ||
        !link_ok(PtlEQAlloc(self.ni, 4096, &self.eq), "PtlEQAlloc") ||
        link_index(LINK_COUNTED, PTL_EQ_NONE) != 0 || link_index(LINK_EVENTS, self.eq) != 0 ||
        link_counter(&crew.arrived) != 0 || link_counter(&crew.result) != 0 ||
        bind(crew.from, &crew.md) != 0 || bind(crew.to, &crew.to_md) != 0) {
        return -1;
    }
    self.packet = limits.max_payload_size;
    crew.group = (struct tree_group){
        .rank = (uint32_t)turn_rank(), .size = (uint32_t)turn_ranks(), .ids = crew.id};
    return turn_gather(&self.me, sizeof(self.me), crew.id);
}

bool crew_fits(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && turn_ranks() == TURN_RANKS && work->size > 0 &&
           work->size <= RANKS_MOST && work->size % sizeof(double) == 0;
}

static const struct turn_duty own_duties[] = {
    {BENCH_SPIN_BROADCAST, crew_fits, begin_broadcast, run_broadcast, end_broadcast},
    {BENCH_SPIN_ALLREDUCE, crew_fits, begin_allreduce, run_allreduce, end_allreduce},
};

static int serve_all(void)
{
    enum { OWN = sizeof(own_duties) / sizeof(own_duties[0]) };
    struct turn_duty duties[BENCH_COUNT];
    memcpy(duties, own_duties, sizeof(own_duties));
    memcpy(duties + OWN, storage_duties, (size_t)storage_duty_count * sizeof(duties[0]));
    memcpy(duties + OWN + storage_duty_count, redundant_duties,
           (size_t)redundant_duty_count * sizeof(duties[0]));
    return turn_serve(duties, OWN + storage_duty_count + redundant_duty_count);
}

int main(int argc, char **argv)
{
    crew.by_cpu = argc == 2 && strcmp(argv[1], "cpu") == 0;
    if (argc != 2 || (!crew.by_cpu && strcmp(argv[1], "handlers") != 0)) {
        fprintf(stderr, "usage: %s handlers | cpu\n", program_invocation_short_name);
        return 2;
    }
    if (turn_join(-1) < 0 || open_crew() != 0 || serve_all() != 0) {
        return 1;
    }
    PtlNIFini(self.ni);
    PtlFini();
    return 0;
}
