/* SPDX-License-Identifier: BSD-3-Clause */
/* What lanes are set up on: interfaces, sites, memory; see lists.h. */
#include "lists.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int me;
unsigned processes = 2, threads = 1, lanes;
uint64_t seed;
struct lane lane[LANES_MAX];
struct registers registers[PROCESSES_MAX][KINDS];
ptl_handle_ni_t ni[KINDS];
ptl_ni_limits_t limits[KINDS];
ptl_process_t ids[PROCESSES_MAX];
uint8_t *here, *source;

static struct site *sites; /* of every process, lane and kind */

struct site *site_of(const struct lane *l)
{
    return &sites[((unsigned)l->target * LANES_MAX + l->number) * KINDS + l->kind];
}

static void *memory(size_t n)
{
    void *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    if (p == NULL) {
        fail("no memory for %zu bytes", n);
    }
    return memset(p, 0, n);
}

static void open_interfaces(struct meeting *m)
{
    static const unsigned options[KINDS] = {
        PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
        PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};
    OK(PtlInit());
    for (unsigned k = 0; k < KINDS; k++) {
        OK(PtlNIInit(PTL_IFACE_DEFAULT, options[k], PTL_PID_ANY, NULL, &limits[k], &ni[k]));
    }
    OK(PtlGetPhysId(ni[0], &m->ids[me]));
    pthread_barrier_wait(&m->meet);
    memcpy(ids, m->ids, sizeof(ids));
    for (unsigned k = 0; k < KINDS; k += 2) {
        OK(PtlSetMap(ni[k], processes, ids));
    }
}

/* Where the last message of a round goes. */
static void open_last(unsigned kind)
{
    ptl_me_t me_all = {.ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT,
                       .ignore_bits = ~0ull};
    ptl_handle_me_t handle;
    ptl_pt_index_t pt;
    if (is_logical(kind)) {
        me_all.match_id.rank = PTL_RANK_ANY;
    } else {
        me_all.match_id.phys.nid = PTL_NID_ANY;
        me_all.match_id.phys.pid = PTL_PID_ANY;
    }
    OK(PtlPTAlloc(ni[kind], 0, PTL_EQ_NONE, LAST_PT, &pt));
    OK(is_matching(kind) ? PtlMEAppend(ni[kind], pt, &me_all, PTL_PRIORITY_LIST, NULL, &handle)
                         : PtlLEAppend(ni[kind], pt, (const ptl_le_t *)&me_all, PTL_PRIORITY_LIST,
                                       NULL, &handle));
}

static void open_site(struct lane *l)
{
    enum { EVENTS = 4000 }; /* more than a round has */
    struct site *s = site_of(l);
    s->flow_control = percent(&l->random, hushed ? 5 : 35);
    s->has_eq = s->flow_control || percent(&l->random, hushed ? 25 : 85);
    s->enabled = percent(&l->random, 90);
    if (l->target != me) {
        return;
    }
    ptl_pt_index_t pt;
    s->eq = PTL_EQ_NONE;
    if (s->has_eq) {
        OK(PtlEQAlloc(ni[l->kind], EVENTS, &s->eq));
    }
    for (unsigned i = 0; i < SITE_CTS; i++) {
        OK(PtlCTAlloc(ni[l->kind], &s->ct[i]));
    }
    OK(PtlCTAlloc(ni[l->kind], &s->trigger));
    OK(PtlPTAlloc(ni[l->kind],
                  (s->flow_control ? PTL_PT_FLOWCTRL : 0u) |
                      (s->enabled ? 0u : PTL_PT_ALLOC_DISABLED),
                  s->eq, l->number, &pt));
}

static void open_lane(struct lane *l, unsigned number)
{
    enum { EVENTS = 200 };
    l->number = number;
    l->process = (int)(number / threads);
    l->triggers = 15;
    l->random = seed * 0x9e3779b97f4a7c15u + number;
    l->names = (uint64_t)(number + 1) << 24;
    l->fetched_model = memory(FETCHED_BYTES);
    l->fetched_open = memory(FETCHED_BYTES);
    for (l->target = 0; l->target < (int)processes; l->target++) {
        l->memory[l->target] = memory(SITE_BYTES);
        l->open[l->target] = memory(SITE_BYTES);
        for (l->kind = 0; l->kind < KINDS; l->kind++) {
            open_site(l);
        }
    }
    if (l->process != me) {
        return;
    }
    l->fetched = memory(FETCHED_BYTES);
    for (unsigned k = 0; k < KINDS; k++) {
        OK(PtlEQAlloc(ni[k], EVENTS, &l->eq[k]));
        OK(PtlCTAlloc(ni[k], &l->ct[k]));
        OK(PtlCTAlloc(ni[k], &l->trigger[k]));
        OK(PtlCTAlloc(ni[k], &l->last_ct[k]));
        ptl_md_t md = {
            .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = l->last_ct[k]};
        OK(PtlMDBind(ni[k], &md, &l->last_md[k]));
    }
}

void open_all(struct meeting *m)
{
    open_interfaces(m);
    sites = memory((size_t)processes * LANES_MAX * KINDS * sizeof(*sites));
    here = memory((size_t)lanes * SITE_BYTES);
    source = memory(SOURCE_BYTES);
    uint64_t random = seed;
    for (size_t i = 0; i < SOURCE_BYTES; i++) {
        source[i] = (uint8_t)splitmix(&random);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        open_last(k);
    }
    for (unsigned i = 0; i < lanes; i++) {
        open_lane(&lane[i], i);
    }
    pthread_barrier_wait(&m->meet);
}
