/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a GOAL schedule as a program: each rank puts what it sends, and takes what comes as
 * src/sim/nic/nic.h says; `pinwheel goal run --nic` takes the same time.
 *
 *      $ pinwheel sim -n RANKS simnic_schedule FILE [free|host|nic]
 *
 * Each rank prints "rank R ends N ps", counted from the fence at which all begin.
 */
#include "pinwheel.h"
#include "pinwheel_sim.h"
#include "portals4.h"
#include "sim/goal/goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 3, BITS = 1, EAGER = 4096 };

/* Who copies what comes: --matching free, host, nic. */
enum copies { NOTHING, ALL, LATE };

/* A message that came before its recv was posted. */
struct early {
    uint32_t from, tag;
    uint64_t bytes;
    bool taken;
};

struct program {
    struct pinwheel_job *job;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_md_t md;
    uint32_t rank;
    struct goal goal;
    struct goal_rank my;
    uint32_t *met, *queue; /* by operation; those that may begin, in order */
    uint32_t first, last, done;
    uint32_t *posted, posted_count; /* recvs, GOAL_ANY: over */
    struct early *early;
    uint32_t early_count;
    uint64_t begin, end;
    enum copies copies;
};

static void check(int rc, const char *call)
{
    if (rc != PTL_OK) {
        fprintf(stderr, "%s gave %d\n", call, rc);
        exit(1);
    }
}

static void release(struct program *p, const goal_u32 *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (++p->met[list[i]] == p->my.nodes[list[i]].depends) {
            p->queue[p->last++] = list[i];
        }
    }
}

static void complete(struct program *p, uint32_t node)
{
    const struct goal_node *n = &p->my.nodes[node];
    p->done++;
    p->end = PtlSimNow();
    release(p, goal_done(&p->my, n), n->done_count);
}

/* A recv has got its message, which came before it (late) or not. */
static void receive(struct program *p, uint32_t node, uint64_t bytes, bool late)
{
    if (bytes <= EAGER && (p->copies == ALL || (p->copies == LATE && late))) {
        PtlSimTouch(bytes, 0);
    }
    complete(p, node);
}

static bool fits(const struct goal_node *recv, uint32_t from, uint32_t tag)
{
    return (recv->peer == GOAL_ANY || recv->peer == from) &&
           (recv->tag == GOAL_ANY || tag == GOAL_ANY || recv->tag == tag);
}

static void post(struct program *p, uint32_t node)
{
    for (uint32_t i = 0; i < p->early_count; i++) {
        struct early *e = &p->early[i];
        if (!e->taken && fits(&p->my.nodes[node], e->from, e->tag)) {
            e->taken = true;
            receive(p, node, e->bytes, true);
            return;
        }
    }
    p->posted[p->posted_count++] = node;
}

static void take(struct program *p)
{
    ptl_event_t e;
    check(PtlEQWait(p->eq, &e), "PtlEQWait");
    uint32_t from = e.initiator.rank, tag = (uint32_t)e.hdr_data;
    for (uint32_t i = 0; i < p->posted_count; i++) {
        uint32_t node = p->posted[i];
        if (node != GOAL_ANY && fits(&p->my.nodes[node], from, tag)) {
            p->posted[i] = GOAL_ANY;
            receive(p, node, e.rlength, false);
            return;
        }
    }
    p->early[p->early_count++] = (struct early){from, tag, e.rlength, false};
}

static void start(struct program *p, uint32_t node)
{
    const struct goal_node *n = &p->my.nodes[node];
    release(p, goal_start(&p->my, n), n->start_count);
    if (n->type == GOAL_RECV) {
        post(p, node);
        return;
    }
    if (n->type == GOAL_CALC && n->size != 0) {
        PtlSimCompute(n->size);
    } else if (n->type == GOAL_SEND) {
        check(PtlPut(p->md, 0, n->size, PTL_NO_ACK_REQ, (ptl_process_t){.rank = n->peer}, INDEX,
                     BITS, 0, NULL, n->tag),
              "PtlPut");
    }
    complete(p, node);
}

static uint64_t longest(const struct goal *g)
{
    uint64_t most = 1;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        for (uint32_t i = 0; i < r.node_count; i++) {
            most = r.nodes[i].type == GOAL_SEND && r.nodes[i].size > most ? r.nodes[i].size : most;
        }
    }
    return most;
}

static void open_all(struct program *p, const char *file)
{
    struct goal_error error;
    ptl_pt_index_t index;
    ptl_handle_me_t handle;
    if (pinwheel_job_init(&p->job) != 0 || goal_open(&p->goal, file, 0, &error) != 0) {
        fprintf(stderr, "no job, or no schedule %s\n", file);
        exit(1);
    }
    p->rank = (uint32_t)pinwheel_job_rank(p->job);
    p->my = goal_rank(&p->goal, p->rank);
    uint32_t nodes = p->my.node_count + 1;
    uint64_t size = longest(&p->goal);
    p->met = calloc(nodes, sizeof(*p->met));
    p->queue = calloc(nodes, sizeof(*p->queue));
    p->posted = calloc(nodes, sizeof(*p->posted));
    p->early = calloc(p->goal.sends + 1, sizeof(*p->early));
    void *buffer = malloc(size);
    if (p->met == NULL || p->queue == NULL || p->posted == NULL || p->early == NULL ||
        buffer == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    memset(buffer, 0, size);
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &p->ni),
          "PtlNIInit");
    check(pinwheel_job_set_map(p->job, p->ni), "pinwheel_job_set_map");
    check(PtlEQAlloc(p->ni, (ptl_size_t)p->goal.sends + 16, &p->eq), "PtlEQAlloc");
    check(PtlPTAlloc(p->ni, 0, p->eq, INDEX, &index), "PtlPTAlloc");
    const ptl_md_t md = {buffer, size, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE};
    check(PtlMDBind(p->ni, &md, &p->md), "PtlMDBind");
    const ptl_me_t me = {.start = buffer,
                         .length = size,
                         .ct_handle = PTL_CT_NONE,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                         .match_id.rank = PTL_RANK_ANY,
                         .match_bits = BITS};
    check(PtlMEAppend(p->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
}

int main(int argc, char **argv)
{
    struct program p = {.rank = 0};
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: simnic_schedule FILE [free|host|nic]\n");
        return 2;
    }
    if (argc == 3) {
        p.copies = strcmp(argv[2], "host") == 0  ? ALL
                   : strcmp(argv[2], "nic") == 0 ? LATE
                                                 : NOTHING;
    }
    open_all(&p, argv[1]);
    check(pinwheel_job_barrier(p.job), "pinwheel_job_barrier");
    p.begin = p.end = PtlSimNow();
    for (uint32_t i = 0; i < p.my.root_count; i++) {
        p.queue[p.last++] = p.my.roots[i];
    }
    while (p.done != p.my.node_count) {
        if (p.first != p.last) {
            start(&p, p.queue[p.first++]);
        } else {
            take(&p);
        }
    }
    printf("rank %u ends %llu ps\n", p.rank, (unsigned long long)(p.end - p.begin));
    fflush(stdout);
    check(pinwheel_job_barrier(p.job), "pinwheel_job_barrier");
    PtlNIFini(p.ni);
    PtlFini();
    pinwheel_job_finalize(p.job);
    return 0;
}
