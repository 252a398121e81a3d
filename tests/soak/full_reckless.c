/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How not to end: operations of every kind are started at everybody, and while they are under
 * way their queues, counters, entries and descriptors are freed, indices closed, and then
 * the interfaces. Nothing is asked of the operations; what is asked is that calls return
 * codes that they may, that a freed handle is none, and that nobody crashes, hangs or reads
 * memory that was given back (for the sanitizers to see).
 */
#include "full.h"

#include <stdlib.h>

enum { INDEX = 21, STARTS = 60, LENGTH = 1 << 17 };

static struct reckless {
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_handle_le_t entry, overflow;
    bool eq_freed, ct_freed, md_freed;
} of[FACES];
static unsigned char *buffer, *target;

static ptl_handle_le_t append(unsigned f, ptl_list_t list, unsigned options)
{
    ptl_handle_le_t handle;
    ptl_me_t e = {.start = target,
                  .length = LENGTH,
                  .ct_handle = of[f].ct,
                  .uid = PTL_UID_ANY,
                  .options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                  .ignore_bits = ~0ull};
    e.match_id.rank = PTL_RANK_ANY;
    if (!is_logical(f)) {
        e.match_id.phys.nid = PTL_NID_ANY;
        e.match_id.phys.pid = PTL_PID_ANY;
    }
    if (is_matching(f)) {
        OK(PtlMEAppend(face[f].ni, INDEX, &e, list, NULL, &handle));
    } else {
        ptl_le_t le = {e.start, e.length, e.ct_handle, e.uid, e.options};
        OK(PtlLEAppend(face[f].ni, INDEX, &le, list, NULL, &handle));
    }
    return handle;
}

static void open_face(unsigned f)
{
    ptl_pt_index_t pt;
    of[f] = (struct reckless){.eq_freed = false};
    OK(PtlEQAlloc(face[f].ni, 32, &of[f].eq));
    OK(PtlCTAlloc(face[f].ni, &of[f].ct));
    OK(PtlPTAlloc(face[f].ni, f % 2 == 0 ? PTL_PT_FLOWCTRL : 0, of[f].eq, INDEX, &pt));
    of[f].entry = append(f, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
    of[f].overflow = append(f, PTL_OVERFLOW_LIST, 0);
    ptl_md_t d = {buffer, 2 * LENGTH,
                  PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, of[f].eq,
                  of[f].ct};
    OK(PtlMDBind(face[f].ni, &d, &of[f].md));
}

/* Any operation to anybody; PTL_ARG_INVALID once its MD, or what it asks to hear by, is gone. */
static void start(unsigned f, uint64_t *r)
{
    ptl_handle_md_t d = of[f].md;
    ptl_process_t to = face[f].id[splitmix_below(r, PROCESSES)];
    ptl_size_t n = splitmix_below(r, 2) == 0 ? splitmix_below(r, 64) * 8
                                             : splitmix_below(r, LENGTH),
               at = splitmix_below(r, 4096);
    int code = PTL_OK;
    switch (splitmix_below(r, 7)) {
    case 0:
        code = PtlPut(d, 0, n, PTL_ACK_REQ, to, INDEX, 0, at, NULL, 0);
        break;
    case 1:
        code = PtlPut(d, 0, n, PTL_NO_ACK_REQ, to, INDEX, 0, at, NULL, 0);
        break;
    case 2:
        code = PtlGet(d, LENGTH, n, to, INDEX, 0, at, NULL);
        break;
    case 3:
        code = PtlAtomic(d, 0, n % ATOMIC_MAX & ~7ull, PTL_CT_ACK_REQ, to, INDEX, 0, at, NULL, 0,
                         PTL_BXOR, PTL_UINT64_T);
        break;
    case 4:
        code = PtlFetchAtomic(d, LENGTH, d, 0, n % ATOMIC_MAX & ~7ull, to, INDEX, 0, at, NULL, 0,
                              PTL_MAX, PTL_INT64_T);
        break;
    case 5:
        code =
            PtlTriggeredGet(d, LENGTH, n, to, INDEX, 0, at, NULL, of[f].ct, splitmix_below(r, 40));
        break;
    default:
        code = PtlTriggeredPut(d, 0, n, PTL_NO_ACK_REQ, to, INDEX, 0, at, NULL, 0, of[f].ct,
                               splitmix_below(r, 40));
    }
    bool stale = of[f].md_freed || of[f].ct_freed || of[f].eq_freed;
    MUST(code == PTL_OK || (code == PTL_ARG_INVALID && stale), "an operation gives %d", code);
}

static int unlink_entry(unsigned f, ptl_handle_le_t entry)
{
    return is_matching(f) ? PtlMEUnlink(entry) : PtlLEUnlink(entry);
}

/* Frees something, whatever it is in use for. */
static void free_something(unsigned f, uint64_t *r)
{
    struct reckless *o = &of[f];
    int code;
    switch (splitmix_below(r, 8)) {
    case 0:
        code = PtlEQFree(o->eq);
        MUST(code == (o->eq_freed ? PTL_ARG_INVALID : PTL_OK), "PtlEQFree gives %d", code);
        o->eq_freed = true;
        break;
    case 1:
        code = PtlCTFree(o->ct);
        MUST(code == (o->ct_freed ? PTL_ARG_INVALID : PTL_OK), "PtlCTFree gives %d", code);
        o->ct_freed = true;
        break;
    case 2:
    case 3:
        code = PtlMDRelease(o->md);
        MUST(o->md_freed ? code == PTL_ARG_INVALID : code == PTL_OK || code == PTL_IN_USE,
             "PtlMDRelease gives %d", code);
        o->md_freed = o->md_freed || code == PTL_OK;
        break;
    case 4:
        code = unlink_entry(f, splitmix_below(r, 2) == 0 ? o->entry : o->overflow);
        MUST(code == PTL_OK || code == PTL_IN_USE || code == PTL_ARG_INVALID, "unlinking gives %d",
             code);
        break;
    case 5:
        code = PtlPTFree(face[f].ni, INDEX);
        MUST(code == PTL_OK || code == PTL_PT_IN_USE || code == PTL_ARG_INVALID,
             "PtlPTFree gives %d", code);
        break;
    case 6:
        code = PtlPTEnable(face[f].ni, INDEX);
        MUST(code == PTL_OK || code == PTL_ARG_INVALID, "PtlPTEnable gives %d", code);
        break;
    default:
        code = PtlCTInc(o->ct, (ptl_ct_event_t){1, 0});
        MUST(code == (o->ct_freed ? PTL_ARG_INVALID : PTL_OK), "PtlCTInc gives %d", code);
    }
}

void reckless_run(void)
{
    uint64_t r = seed ^ (round_number << 8) ^ me;
    buffer = memory(2 * LENGTH);
    target = memory(2 * LENGTH);
    for (unsigned f = 0; f < FACES; f++) {
        open_face(f);
    }
    barrier();
    for (unsigned k = 0; k < STARTS; k++) {
        start((unsigned)splitmix_below(&r, FACES), &r);
        if (k > STARTS / 4 && splitmix_below(&r, 3) == 0) {
            free_something((unsigned)splitmix_below(&r, FACES), &r);
        }
    }
}

void reckless_free(void)
{
    free(buffer);
    free(target);
}
