/* SPDX-License-Identifier: BSD-3-Clause */
/* The scene of closing.c, and the ways to close what is in it. */
#include "closing.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint64_t source, target;

ptl_me_t scene_entry(const struct scene *s)
{
    return (ptl_me_t){
        .start = &target,
        .length = sizeof(target),
        .ct_handle = s->counted,
        .uid = PTL_UID_ANY,
        .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM |
                   PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE |
                   PTL_ME_EVENT_UNLINK_DISABLE,
        .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
    };
}

static void make_ct(struct scene *s)
{
    OK(PtlCTAlloc(s->ni, &s->ct));
}

static void make_eq(struct scene *s)
{
    OK(PtlEQAlloc(s->ni, 8, &s->eq));
}

static void make_md(struct scene *s)
{
    ptl_md_t md = {.start = &source,
                   .length = sizeof(source),
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(s->ni, &md, &s->md));
}

static void make_me(struct scene *s)
{
    ptl_me_t me = scene_entry(s);
    OK(PtlMEAppend(s->ni, 0, &me, PTL_PRIORITY_LIST, NULL, &s->me));
}

static void open_ni(struct scene *s)
{
    ptl_pt_index_t pt;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &s->ni));
    OK(PtlGetPhysId(s->ni, &s->self));
    make_eq(s);
    make_ct(s);
    OK(PtlCTAlloc(s->ni, &s->counted));
    OK(PtlPTAlloc(s->ni, 0, s->eq, 0, &pt));
    make_me(s);
    make_md(s);
    OK(PtlHPUAllocMem(s->ni, 64, &s->memory));
}

void scene_open(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    OK(PtlInit());
    open_ni(s);
}

static int is(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        scene_fail(what, (int)got);
    }
    return 0;
}

void scene_check(const struct scene *s, const struct scene *old)
{
    ptl_ct_event_t v;
    ptl_event_t event;
    uint64_t memory = 0;
    is("the same handle of an interface", s->ni == old->ni, 0);
    OK(PtlCTGet(s->ct, &v));
    is("counts of a new counter", v.success + v.failure, 0);
    OK(PtlCTGet(s->counted, &v));
    is("puts that a new entry took", v.success + v.failure, 0);
    is("PtlEQGet of a new queue", (uint64_t)PtlEQGet(s->eq, &event), PTL_EQ_EMPTY);
    OK(PtlHPURead(s->memory, 0, &memory, sizeof(memory)));
    is("new HPU memory", memory, 0);
    source = 77;
    OK(PtlPut(s->md, 0, 8, PTL_NO_ACK_REQ, s->self, 0, 0, 0, NULL, 0));
    OK(PtlCTWait(s->counted, 1, &v));
    is("a put", target, 77);
    OK(PtlMEUnlink(s->me));
    /* Nothing was appended besides. */
    is("PtlPTFree", (uint64_t)PtlPTFree(s->ni, 0), PTL_OK);
}

/* ---- ways to close ---- */

static void close_ni(struct scene *s)
{
    OK(PtlNIFini(s->ni));
}

static void close_all(struct scene *s)
{
    OK(PtlNIFini(s->ni));
    PtlFini();
}

static void close_by_fini(struct scene *s)
{
    (void)s;
    PtlFini();
}

static void open_again(struct scene *s)
{
    close_ni(s);
    open_ni(s);
}

static void begin_anew(struct scene *s)
{
    close_all(s);
    scene_open(s);
}

static void end_waits(struct scene *s)
{
    (void)s;
    PtlAbort();
}

static void renew_ct(struct scene *s)
{
    OK(PtlCTFree(s->ct));
    make_ct(s);
}

/* The portal table entry posts nothing, so it may keep the old queue. */
static void renew_eq(struct scene *s)
{
    OK(PtlEQFree(s->eq));
    make_eq(s);
}

static void renew_md(struct scene *s)
{
    OK(PtlMDRelease(s->md));
    make_md(s);
}

static void renew_me(struct scene *s)
{
    OK(PtlMEUnlink(s->me));
    make_me(s);
}

static void renew_memory(struct scene *s)
{
    OK(PtlHPUFreeMem(s->memory));
    OK(PtlHPUAllocMem(s->ni, 64, &s->memory));
}

const struct way ways[] = {
    {"PtlNIFini", IS_NI, false, close_ni},
    {"PtlNIFini and PtlFini", IS_NI, false, close_all},
    {"PtlFini", IS_NI, false, close_by_fini},
    {"PtlNIFini and PtlNIInit", IS_NI, true, open_again},
    {"PtlNIFini, PtlFini and PtlInit", IS_NI, true, begin_anew},
    {"PtlCTFree and PtlCTAlloc", IS_CT, false, renew_ct},
    {"PtlEQFree and PtlEQAlloc", IS_EQ, false, renew_eq},
    {"PtlMDRelease and PtlMDBind", IS_MD, false, renew_md},
    {"PtlMEUnlink and PtlMEAppend", IS_ME, false, renew_me},
    {"PtlHPUFreeMem and PtlHPUAllocMem", IS_HPU, false, renew_memory},
    {"PtlAbort", IS_WAIT, false, end_waits},
    {NULL, 0, false, NULL},
};
