/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.7: the portal table. */
#include "nic/pt.h"
#include "nic/nic.h"
#include "nic/wait.h"
#include "portals/api.h"

static int find_index(struct ni *ni, ptl_pt_index_t wanted, ptl_pt_index_t *index)
{
    unsigned last = (unsigned)ni->limits.max_pt_index;
    if (wanted != PTL_PT_ANY) {
        *index = wanted;
        if (wanted > last) {
            return api_refuse_call("PtlPTAlloc is refused: pt_index_req %u is beyond max_pt_index, "
                                   "%u",
                                   wanted, last);
        }
        return !ni->pts[wanted].allocated
                   ? PTL_OK
                   : api_refuse_state(PTL_PT_IN_USE,
                                      "PtlPTAlloc is refused: pt_index_req %u is allocated; "
                                      "PTL_PT_ANY takes a free one",
                                      wanted);
    }
    for (*index = 0; *index <= last; (*index)++) {
        if (!ni->pts[*index].allocated) {
            return PTL_OK;
        }
    }
    return api_refuse_state(PTL_PT_FULL,
                            "PtlPTAlloc is refused: all pt_indices, 0 to %u (max_pt_index), are "
                            "allocated; free one, or ask PtlNIInit for more",
                            last);
}

/* Makes room in the event queue for the events that flow control lets through: PT_DISABLED of each
 * index, and AUTO_UNLINK and AUTO_FREE of each message in progress (one a peer). */
static int make_room(struct ni *ni, const struct eq_ref *eq)
{
    if (eq->eq == NULL) {
        return api_refuse_state(PTL_PT_EQ_NEEDED,
                                "PtlPTAlloc is refused: options has PTL_PT_FLOWCTRL, and eq_handle "
                                "is PTL_EQ_NONE, 0x%x: it needs an event queue",
                                PTL_EQ_NONE);
    }
    uint64_t more = (uint64_t)ni->limits.max_pt_index + 1 + 2 * (uint64_t)nic_peers_most(ni->nic);
    return eq_extend(eq->eq, more) == 0
               ? PTL_OK
               : api_refuse_space("PtlPTAlloc", "max_eqs", ni->limits.max_eqs);
}

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
               ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct eq_ref eq;
    ptl_pt_index_t index;
    if (pt_index == NULL || (options & ~(unsigned)PTL_PT_ALLOC_OPTIONS_MASK) != 0) {
        rc = api_refuse_null(__func__, "pt_index", pt_index)
                 ?: api_refuse_call("PtlPTAlloc is refused: options 0x%x has one beyond "
                                    "PTL_PT_ALLOC_OPTIONS_MASK, 0x%x",
                                    options, PTL_PT_ALLOC_OPTIONS_MASK);
    } else {
        rc = api_eq_ref(__func__, ni, eq_handle, &eq);
    }
    if (rc == PTL_OK && (options & PTL_PT_FLOWCTRL) != 0) {
        rc = make_room(ni, &eq);
    }
    rc = rc ?: find_index(ni, pt_index_req, &index);
    if (rc == PTL_OK) {
        ni->pts[index] = (struct pt){
            .allocated = true,
            .enabled = (options & PTL_PT_ALLOC_DISABLED) == 0,
            .options = options,
            .eq = eq,
        };
        *pt_index = index;
    }
    return api_unlock(ni, rc);
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
    struct ni *ni;
    struct pt *pt;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = api_find_pt(__func__, ni, pt_index, &pt);
    if (rc == PTL_OK &&
        (pt->priority.entries != 0 || pt->overflow.entries != 0 || pt->users != 0)) {
        rc = api_refuse_state(PTL_PT_IN_USE,
                              "PtlPTFree is refused: pt_index %u has entries, or a message in "
                              "hand; unlink them first",
                              pt_index);
    }
    if (rc == PTL_OK) {
        pt_clear(pt);
        pt->allocated = pt->refusing = false;
    }
    return api_unlock(ni, rc);
}

/* Enables or disables a portal table entry, for the program. */
static int set_enabled(const char *call, ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                       bool enabled, struct ni **ni)
{
    struct pt *pt;
    int rc = api_lock_ni(call, ni_handle, ni);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = api_find_pt(call, *ni, pt_index, &pt);
    if (rc == PTL_OK) {
        pt->enabled = enabled;
        (*ni)->epoch++;
        pt->refusing = false;
        /* If the program enables the entry again while the last messages end, PT_DISABLED is not
         * posted any more. */
        pt->refusal_due = pt->refusal_due && !enabled;
    }
    return api_unlock(*ni, rc);
}

/* The condition of PtlPTDisable(): no message uses the portal table entry. */
struct idle_wait {
    struct ni *ni;
    ptl_handle_ni_t handle;
    ptl_pt_index_t index;
};

static bool is_idle(void *arg)
{
    const struct idle_wait *w = arg;
    return w->ni->handle != w->handle || w->ni->pts[w->index].users == 0;
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
    struct ni *ni;
    int rc = set_enabled(__func__, ni_handle, pt_index, false, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct idle_wait w = {ni, ni_handle, pt_index};
    PAUSE_POINT("disabled");
    do {
        rc = ni_wait_abort(ni, is_idle, &w, -1, PTL_FAIL);
    } while (rc == PTL_ABORTED);
    return rc;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
    struct ni *ni;
    return set_enabled(__func__, ni_handle, pt_index, true, &ni);
}
