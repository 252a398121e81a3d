/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * That nothing is left: every table of an interface takes as much as its limit says. What a
 * round forgets to give back would make it refuse earlier.
 */
#include "full.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX = 20 };

/* Makes objects until it is refused, which must be at the limit; then frees them. */
static void fill(unsigned f, int limit, const char *what,
                 int (*make)(unsigned f, ptl_handle_any_t *handle), int (*end)(ptl_handle_any_t))
{
    ptl_handle_any_t *handles = memory(((size_t)limit + 1) * sizeof(*handles));
    int made = 0, code;
    while (made <= limit && (code = make(f, &handles[made])) == PTL_OK) {
        made++;
    }
    MUST(made == limit && code == PTL_NO_SPACE, "face %u: %d of %d %s are free", f, made, limit,
         what);
    for (int i = 0; i < made; i++) {
        OK(end(handles[i]));
    }
    free(handles);
}

static int bind(unsigned f, ptl_handle_any_t *handle)
{
    ptl_md_t d = {NULL, 1, 0, PTL_EQ_NONE, PTL_CT_NONE};
    return PtlMDBind(face[f].ni, &d, handle);
}

static int count(unsigned f, ptl_handle_any_t *handle)
{
    return PtlCTAlloc(face[f].ni, handle);
}

static int queue(unsigned f, ptl_handle_any_t *handle)
{
    return PtlEQAlloc(face[f].ni, 1, handle);
}

static int append(unsigned f, ptl_handle_any_t *handle)
{
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.uid = PTL_UID_ANY;
    if (is_matching(f)) {
        return PtlMEAppend(face[f].ni, INDEX, &e, PTL_PRIORITY_LIST, NULL, handle);
    }
    ptl_le_t le = {NULL, 0, PTL_CT_NONE, PTL_UID_ANY, 0};
    return PtlLEAppend(face[f].ni, INDEX, &le, PTL_PRIORITY_LIST, NULL, handle);
}

static ptl_handle_ct_t never;

static int trigger(unsigned f, ptl_handle_any_t *handle)
{
    *handle = PTL_INVALID_HANDLE;
    return PtlTriggeredCTInc(never, (ptl_ct_event_t){1, 0}, never, 1);
}

static int nothing(ptl_handle_any_t handle)
{
    return handle == PTL_INVALID_HANDLE ? PTL_OK : PTL_FAIL;
}

/* One put to oneself leaves one header each, until the next one is refused. */
static void fill_headers(unsigned f)
{
    ptl_handle_eq_t eq;
    ptl_handle_md_t d;
    ptl_pt_index_t pt;
    ptl_handle_le_t handle;
    ptl_ct_event_t acks = {0, 0};
    ptl_handle_ct_t ct;
    uint64_t limit = (uint64_t)face[f].limits.max_unexpected_headers;
    OK(PtlEQAlloc(face[f].ni, limit + 16, &eq));
    OK(PtlCTAlloc(face[f].ni, &ct));
    OK(PtlPTAlloc(face[f].ni, PTL_PT_FLOWCTRL, eq, INDEX, &pt));
    ptl_md_t md = {NULL, 1, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct};
    OK(PtlMDBind(face[f].ni, &md, &d));
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.uid = PTL_UID_ANY;
    e.options = PTL_ME_OP_PUT;
    e.match_id = face[f].id[me];
    ptl_le_t le = {NULL, 0, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    OK(is_matching(f) ? PtlMEAppend(face[f].ni, INDEX, &e, PTL_OVERFLOW_LIST, NULL, &handle)
                      : PtlLEAppend(face[f].ni, INDEX, &le, PTL_OVERFLOW_LIST, NULL, &handle));
    for (uint64_t i = 0; i <= limit; i++) {
        OK(PtlPut(d, 0, 0, PTL_CT_ACK_REQ, face[f].id[me], INDEX, 0, 0, NULL, 0));
    }
    while (acks.success + acks.failure < limit + 1) {
        OK(PtlCTGet(ct, &acks));
    }
    MUST(acks.success == limit, "face %u: %llu of %llu unexpected headers are free", f,
         (unsigned long long)acks.success, (unsigned long long)limit);
    ptl_me_t all = e;
    le.options |= PTL_LE_EVENT_LINK_DISABLE;
    int code = is_matching(f) ? PtlMESearch(face[f].ni, INDEX, &all, PTL_SEARCH_DELETE, NULL)
                              : PtlLESearch(face[f].ni, INDEX, &le, PTL_SEARCH_DELETE, NULL);
    MUST(code == PTL_OK, "a search for all headers gives %d", code);
    OK(is_matching(f) ? PtlMEUnlink(handle) : PtlLEUnlink(handle));
    OK(PtlPTFree(face[f].ni, pt));
    while ((code = PtlMDRelease(d)) == PTL_IN_USE) {
        pump(false);
    }
    OK(code);
    OK(PtlCTFree(ct));
    OK(PtlEQFree(eq));
}

void limits_check(void)
{
    for (unsigned f = 0; f < FACES; f++) {
        const ptl_ni_limits_t *l = &face[f].limits;
        ptl_pt_index_t pt;
        fill_headers(f);
        OK(PtlPTAlloc(face[f].ni, 0, PTL_EQ_NONE, INDEX, &pt));
        fill(f, l->max_mds, "MDs", bind, PtlMDRelease);
        fill(f, l->max_cts, "counters", count, PtlCTFree);
        fill(f, l->max_eqs - 2, "event queues", queue, PtlEQFree);
        fill(f, l->max_entries, "entries", append, is_matching(f) ? PtlMEUnlink : PtlLEUnlink);
        OK(PtlCTAlloc(face[f].ni, &never));
        fill(f, l->max_triggered_ops, "triggered operations", trigger, nothing);
        OK(PtlCTFree(never));
        OK(PtlPTFree(face[f].ni, INDEX));
    }
}
