/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a GOAL schedule as a program: each rank puts what it sends, and takes what comes as
 * src/sim/nic/nic.h says; `pinwheel goal run --nic` takes the same time.
 *
 *      $ pinwheel sim -n RANKS simnic_schedule FILE [free|host|nic]
 *
 * Each rank prints "rank R ends N ps", counted from the fence at which all begin.
 */
#include "schedule_deeds.h"

#include "pinwheel.h"
#include "pinwheel_sim.h"
#include "portals4.h"
#include "sim/goal/goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 3, ENTRIES = 4, BITS = 1, EAGER = 4096 };

/* Who copies what comes: --matching free, host, nic. */
enum copies { NOTHING, ALL, LATE };

/* A message that came before its recv was posted. */
struct early {
    uint32_t from, tag;
    uint64_t bytes;
    bool taken;
};

/* A counter of the schedule. */
struct counter {
    uint32_t number;
    ptl_handle_ct_t handle;
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
    void *buffer;
    uint64_t size;
    struct counter *counter;
    uint32_t counters;
    /* What PtlCTPoll() looks at: messages that have come, and counters that are tested. */
    ptl_handle_ct_t *polled;
    ptl_size_t *tests, taken;
    uint32_t *tested, test_count; /* tested: the operations */
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

/* ---- Portals ---- */

static void *room(size_t count, size_t size)
{
    void *at = calloc(count + 1, size + 1);
    if (at == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return at;
}

static ptl_handle_ct_t counter(struct program *p, uint32_t number)
{
    for (uint32_t i = 0; i < p->counters; i++) {
        if (p->counter[i].number == number) {
            return p->counter[i].handle;
        }
    }
    struct counter *c = &p->counter[p->counters++];
    c->number = number;
    check(PtlCTAlloc(p->ni, &c->handle), "PtlCTAlloc");
    return c->handle;
}

/* A part of an operation; NULL: it has none of that type. */
static const struct goal_node *part(const struct program *p, uint32_t node, enum goal_type type)
{
    const struct goal_node *n = &p->my.nodes[node];
    for (uint32_t i = goal_part_count(&p->my, node); i > 0; i--) {
        if (n[i].type == type) {
            return &n[i];
        }
    }
    return NULL;
}

/* An MD for one operation, whose answer a counter counts. */
static ptl_handle_md_t memory(struct program *p, uint32_t node)
{
    const struct goal_node *counts = part(p, node, GOAL_COUNTS);
    ptl_handle_md_t handle;
    ptl_md_t md = {p->buffer, p->size, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE};
    if (counts != NULL) {
        md.ct_handle = counter(p, counts->tag);
        md.options |= PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    }
    check(PtlMDBind(p->ni, &md, &handle), "PtlMDBind");
    return handle;
}

/* The counter that handlers of an entry count in. */
static ptl_handle_ct_t counter_for(void *program, uint32_t number)
{
    return counter(program, number);
}

static void append(struct program *p, uint32_t node)
{
    const struct goal_node *n = &p->my.nodes[node], *counts = part(p, node, GOAL_COUNTS);
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = room(n->size, 1),
                   .length = n->size,
                   .ct_handle = counts != NULL ? counter(p, counts->tag) : PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.rank = n->peer == GOAL_ANY ? PTL_RANK_ANY : n->peer,
                   .match_bits = n->tag == GOAL_ANY ? 0 : n->tag,
                   .ignore_bits = n->tag == GOAL_ANY ? UINT64_MAX : 0};
    me.options |= counts != NULL ? PTL_ME_EVENT_CT_COMM : 0;
    me.options |= part(p, node, GOAL_USE_ONCE) != NULL ? PTL_ME_USE_ONCE : 0;
    struct deeds d = {.count = {0}};
    ptl_handlers_t h = {
        .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_state = &d, .hpu_initial_length = sizeof(d)};
    if (deeds_of(&p->my, node, &h, &d, counter_for, p)) {
        check(PtlMEAppendHandlers(p->ni, ENTRIES, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    } else {
        check(PtlMEAppend(p->ni, ENTRIES, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    }
}

static ptl_datatype_t type_of(uint64_t size)
{
    return size == 8   ? PTL_UINT64_T
           : size == 4 ? PTL_UINT32_T
           : size == 2 ? PTL_UINT16_T
                       : PTL_UINT8_T;
}

/* A request, by the program now. */
static int request(struct program *p, uint32_t node, ptl_process_t to)
{
    const struct goal_node *n = &p->my.nodes[node];
    static const uint64_t operand;
    ptl_ack_req_t ack = part(p, node, GOAL_COUNTS) != NULL ? PTL_CT_ACK_REQ : PTL_NO_ACK_REQ;
    ptl_handle_md_t md = memory(p, node);
    ptl_datatype_t type = type_of(n->size);
    switch (n->type) {
    case GOAL_PUT:
        return PtlPut(md, 0, n->size, ack, to, ENTRIES, n->tag, 0, NULL, 0);
    case GOAL_GET:
        return PtlGet(md, 0, n->size, to, ENTRIES, n->tag, 0, NULL);
    case GOAL_ATOMIC:
        return PtlAtomic(md, 0, n->size, ack, to, ENTRIES, n->tag, 0, NULL, 0, PTL_SUM,
                         PTL_UINT8_T);
    case GOAL_FETCH:
        return PtlFetchAtomic(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0, PTL_SUM,
                              PTL_UINT8_T);
    case GOAL_SWAP:
        return PtlSwap(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0, NULL, PTL_SWAP,
                       PTL_UINT8_T);
    default:
        return PtlSwap(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0, &operand,
                       PTL_CSWAP, type);
    }
}

/* The same when a counter comes to a threshold. */
static int trigger(struct program *p, uint32_t node, ptl_process_t to, const struct goal_node *when)
{
    const struct goal_node *n = &p->my.nodes[node];
    static const uint64_t operand;
    ptl_handle_ct_t ct = counter(p, when->tag);
    if (n->type == GOAL_COUNT) {
        return PtlTriggeredCTInc(counter(p, n->tag), (ptl_ct_event_t){n->size, 0}, ct, when->size);
    }
    ptl_ack_req_t ack = part(p, node, GOAL_COUNTS) != NULL ? PTL_CT_ACK_REQ : PTL_NO_ACK_REQ;
    ptl_handle_md_t md = memory(p, node);
    ptl_datatype_t type = type_of(n->size);
    switch (n->type) {
    case GOAL_PUT:
        return PtlTriggeredPut(md, 0, n->size, ack, to, ENTRIES, n->tag, 0, NULL, 0, ct,
                               when->size);
    case GOAL_GET:
        return PtlTriggeredGet(md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, ct, when->size);
    case GOAL_ATOMIC:
        return PtlTriggeredAtomic(md, 0, n->size, ack, to, ENTRIES, n->tag, 0, NULL, 0, PTL_SUM,
                                  PTL_UINT8_T, ct, when->size);
    case GOAL_FETCH:
        return PtlTriggeredFetchAtomic(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0,
                                       PTL_SUM, PTL_UINT8_T, ct, when->size);
    case GOAL_SWAP:
        return PtlTriggeredSwap(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0, NULL,
                                PTL_SWAP, PTL_UINT8_T, ct, when->size);
    default:
        return PtlTriggeredSwap(md, 0, p->md, 0, n->size, to, ENTRIES, n->tag, 0, NULL, 0, &operand,
                                PTL_CSWAP, type, ct, when->size);
    }
}

/* Begins an operation of Portals, which ends at once but for a test. */
static void begin(struct program *p, uint32_t node)
{
    const struct goal_node *n = &p->my.nodes[node], *when = part(p, node, GOAL_WHEN);
    const ptl_process_t to = {.rank = n->peer};
    if (n->type == GOAL_TEST) {
        p->tested[p->test_count++] = node;
        p->polled[p->test_count] = counter(p, n->tag);
        p->tests[p->test_count] = n->size;
        return;
    }
    if (when != NULL) {
        check(trigger(p, node, to, when), "a triggered operation");
    } else if (n->type == GOAL_APPEND) {
        append(p, node);
    } else if (n->type == GOAL_COUNT) {
        check(PtlCTInc(counter(p, n->tag), (ptl_ct_event_t){n->size, 0}), "PtlCTInc");
    } else {
        check(request(p, node, to), "a request");
    }
    complete(p, node);
}

/* Waits for a message, too; false: a test is over, and there may be none. */
static bool poll(struct program *p)
{
    ptl_ct_event_t value;
    unsigned which;
    p->tests[0] = p->taken + 1;
    check(PtlCTPoll(p->polled, p->tests, p->test_count + 1, PTL_TIME_FOREVER, &value, &which),
          "PtlCTPoll");
    if (which == 0) {
        return true;
    }
    uint32_t node = p->tested[which - 1];
    p->test_count--;
    for (uint32_t i = which; i <= p->test_count; i++) {
        p->tested[i - 1] = p->tested[i];
        p->polled[i] = p->polled[i + 1];
        p->tests[i] = p->tests[i + 1];
    }
    complete(p, node);
    return false;
}

static void take(struct program *p)
{
    ptl_event_t e;
    if (p->test_count != 0 && !poll(p)) {
        return;
    }
    p->taken++;
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
    if (n->type > GOAL_CALC) {
        begin(p, node);
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
            bool moves = r.nodes[i].type != GOAL_CALC && r.nodes[i].type < GOAL_APPEND;
            most = moves && r.nodes[i].size > most ? r.nodes[i].size : most;
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
    uint32_t nodes = p->my.node_count;
    p->size = longest(&p->goal);
    p->met = room(nodes, sizeof(*p->met));
    p->queue = room(nodes, sizeof(*p->queue));
    p->posted = room(nodes, sizeof(*p->posted));
    p->early = room(p->goal.sends, sizeof(*p->early));
    p->counter = room(nodes, sizeof(*p->counter));
    p->polled = room(nodes + 1, sizeof(*p->polled));
    p->tests = room(nodes + 1, sizeof(*p->tests));
    p->tested = room(nodes, sizeof(*p->tested));
    p->buffer = room(p->size, 1);
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &p->ni),
          "PtlNIInit");
    check(pinwheel_job_set_map(p->job, p->ni), "pinwheel_job_set_map");
    check(PtlEQAlloc(p->ni, (ptl_size_t)p->goal.sends + 16, &p->eq), "PtlEQAlloc");
    check(PtlPTAlloc(p->ni, 0, p->eq, INDEX, &index), "PtlPTAlloc");
    check(PtlPTAlloc(p->ni, 0, PTL_EQ_NONE, ENTRIES, &index), "PtlPTAlloc");
    check(PtlCTAlloc(p->ni, &p->polled[0]), "PtlCTAlloc");
    const ptl_md_t md = {p->buffer, p->size, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE};
    check(PtlMDBind(p->ni, &md, &p->md), "PtlMDBind");
    const ptl_me_t me = {.start = p->buffer,
                         .length = p->size,
                         .ct_handle = p->polled[0],
                         .uid = PTL_UID_ANY,
                         .options =
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM,
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
    uint32_t operations = 0;
    for (uint32_t i = 0; i < p.my.node_count; i++) {
        operations += !goal_is_part(&p.my.nodes[i]);
    }
    while (p.done != operations) {
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
