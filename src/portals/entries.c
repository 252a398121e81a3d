/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals 4, sections 3.11 and 3.12: list entries and match list entries; and
 * their forms with handlers (sPIN, appendix B).
 */
#include "nic/entry.h"
#include "portals/api.h"

#include <stdlib.h>
#include <string.h>

#define LE_COUNTS (PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_CT_OVERFLOW)

/* Logs that an LE was given to a matching NI, or an ME to one without matching. */
static int refuse_matching(const char *call, const struct ni *ni)
{
    bool matching = ni_is_matching(ni);
    return api_refuse_call(
        "%s is refused: the interface of its handle has %s: call PtlLE..., for a "
        "PTL_NI_NO_MATCHING interface, or PtlME...",
        call, matching ? "PTL_NI_MATCHING" : "PTL_NI_NO_MATCHING");
}

int api_check_entry(const char *call, struct ni *ni, ptl_pt_index_t pt_index, struct le_setup *s)
{
    const ptl_me_t *me = s->me;
    struct pt *pt;
    unsigned known = s->matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
    if (s->matching != ni_is_matching(ni)) {
        return refuse_matching(call, ni);
    }
    if (s->list > PTL_OVERFLOW_LIST || (me->options & ~known) != 0) {
        return api_refuse_call("%s is refused: ptl_list %u is not PTL_PRIORITY_LIST or "
                               "PTL_OVERFLOW_LIST, or options 0x%x has one beyond 0x%x, "
                               "PTL_%s_APPEND_OPTIONS_MASK",
                               call, s->list, me->options, known, s->matching ? "ME" : "LE");
    }
    int rc = api_find_pt(call, ni, pt_index, &pt);
    rc = rc ?: api_ct_ref(call, ni, me->ct_handle, (me->options & LE_COUNTS) != 0, &s->ct);
    if (rc != PTL_OK) {
        return rc;
    }
    s->length = me->length;
    return (me->options & PTL_IOVEC) != 0
               ? api_vector(call, ni, me->start, me->length, &s->vector, &s->length)
               : PTL_OK;
}

/* Whether an entry passes api_check_entry(), which would find nothing that is not in `me`, and
 * there is a place for it. */
static inline bool is_plain(struct ni *ni, ptl_pt_index_t pt_index, const ptl_me_t *me,
                            ptl_list_t list)
{
    struct pt *pt;
    unsigned known = (LE_FAST_OPTIONS & ~LE_COUNTS) | PTL_ME_ACK_DISABLE | PTL_ME_MANAGE_LOCAL;
    return likely((me->options & ~known) == 0) && likely(list <= PTL_OVERFLOW_LIST) &&
           likely(ni_is_matching(ni)) && likely(api_pt(ni, pt_index, &pt) == PTL_OK) &&
           likely(list_has_place(ni, pt_list(pt, list))) && table_ready(&ni->les);
}

int api_refuse_entry(const char *call, const struct le_setup *setup, const void *handle)
{
    const char *entry = setup->matching ? "me" : "le";
    return api_refuse_call("%s is refused: %s%s is NULL", call, entry,
                           setup->me != NULL && handle == NULL ? "_handle" : "");
}

static int append(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, struct le_setup *setup,
                  const ptl_handlers_t *handlers, ptl_handle_le_t *le_handle)
{
    static const char *const calls[2][2] = {{"PtlLEAppend", "PtlLEAppendHandlers"},
                                            {"PtlMEAppend", "PtlMEAppendHandlers"}};
    const char *call = calls[setup->matching][handlers != NULL];
    struct ni *ni;
    int rc = api_lock_ni(call, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (setup->me == NULL || le_handle == NULL) {
        return api_unlock(ni, api_refuse_entry(call, setup, le_handle));
    }
    rc = api_check_entry(call, ni, pt_index, setup);
    /* Handlers run for messages that match in the priority list. */
    if (rc == PTL_OK && handlers != NULL && setup->list != PTL_PRIORITY_LIST) {
        rc = api_refuse_call("%s is refused: ptl_list %u must be PTL_PRIORITY_LIST", call,
                             setup->list);
    }
    if (rc == PTL_OK && handlers != NULL) {
        rc = api_make_handlers(call, ni, handlers, &setup->handlers);
    }
    if (rc == PTL_OK) {
        rc = le_append(ni, pt_index, setup, le_handle);
        if (rc == PTL_NO_SPACE) {
            api_refuse_space(call, "max_entries", ni->limits.max_entries);
        } else if (rc == PTL_LIST_TOO_LONG) {
            api_refuse_space(call, "max_list_size", ni->limits.max_list_size);
        }
    }
    if (rc != PTL_OK) {
        handlers_release(setup->handlers);
        free((void *)setup->vector.parts);
    } else {
        trigger_run(ni->nic); /* the entry may have claimed headers, and counted them */
    }
    api_unlock(ni, rc);
    PAUSE_POINT("appended");
    nic_foresee(ni->nic);
    return rc;
}

static int search(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, struct le_setup *setup,
                  ptl_search_op_t op)
{
    const char *call = setup->matching ? "PtlMESearch" : "PtlLESearch";
    struct ni *ni;
    int rc = api_find_ni(call, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (setup->me == NULL || op > PTL_SEARCH_DELETE) {
        return api_refuse_null(call, setup->matching ? "me" : "le", setup->me)
                   ?: api_refuse_call("%s is refused: ptl_search_op %u is not PTL_SEARCH_ONLY or "
                                      "PTL_SEARCH_DELETE",
                                      call, op);
    }
    struct nic *nic = ni->nic;
    nic_poll_all(nic); /* so that the search finds messages that have arrived */
    if (!api_lock(call, ni, ni_handle)) {
        return PTL_ARG_INVALID;
    }
    rc = api_check_entry(call, ni, pt_index, setup);
    if (rc == PTL_OK) {
        le_search(ni, pt_index, setup, op);
        trigger_run(nic);
        free((void *)setup->vector.parts);
    }
    return api_unlock(ni, rc);
}

static int unlink_entry(ptl_handle_le_t handle, bool matching)
{
    struct ni *ni;
    struct le *le;
    const char *call = matching ? "PtlMEUnlink" : "PtlLEUnlink";
    int rc = api_lock_object(call, handle, HANDLE_LE, &ni, &le);
    if (rc != PTL_OK) {
        return rc;
    }
    if (matching != ni_is_matching(ni)) {
        rc = refuse_matching(call, ni);
    } else if ((rc = le_unlink(le)) == PTL_ARG_INVALID) {
        api_refuse_object(call, handle, HANDLE_LE);
    }
    api_unlock(ni, rc);
    if (rc == PTL_IN_USE) {
        /* a program that retries in a loop makes the progress by which the message ends */
        nic_poll(ni->nic);
    }
    return rc;
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle)
{
    return PtlLEAppendHandlers(ni_handle, pt_index, le, NULL, ptl_list, user_ptr, le_handle);
}

__attribute__((noinline)) static int append_any(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                                const ptl_me_t *me, ptl_list_t ptl_list,
                                                void *user_ptr, ptl_handle_me_t *me_handle)
{
    return PtlMEAppendHandlers(ni_handle, pt_index, me, NULL, ptl_list, user_ptr, me_handle);
}

/* A library such as Open MPI appends an entry for each message that it expects. For a thread that
 * has the lock's bias this function does all of the work. */
int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle)
{
    struct ni *ni;
    uint32_t slot = lock_slot;
    if (unlikely(api_ni_only(ni_handle, &ni) != PTL_OK) ||
        unlikely(me == NULL || me_handle == NULL) || unlikely(!nic_enter_slot(ni->nic, slot))) {
        return append_any(ni_handle, pt_index, me, ptl_list, user_ptr, me_handle);
    }
    struct nic *nic = ni->nic;
    if (unlikely(ni->handle != ni_handle) || unlikely(!is_plain(ni, pt_index, me, ptl_list))) {
        nic_leave_slot(nic, slot);
        return append_any(ni_handle, pt_index, me, ptl_list, user_ptr, me_handle);
    }
    le_append_plain(ni, pt_index, me, ptl_list, user_ptr, me_handle);
    trigger_run(nic);
    nic_leave_slot(nic, slot);
    PAUSE_POINT("appended");
    nic_foresee(nic);
    return PTL_OK;
}

int PtlLEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                        const ptl_handlers_t *handlers, ptl_list_t ptl_list, void *user_ptr,
                        ptl_handle_le_t *le_handle)
{
    /* An LE is the first part of an ME; for such an NI the rest is never read. */
    struct le_setup setup = {.me = (const ptl_me_t *)le, .list = ptl_list, .user_ptr = user_ptr};
    return append(ni_handle, pt_index, &setup, handlers, le_handle);
}

int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        const ptl_handlers_t *handlers, ptl_list_t ptl_list, void *user_ptr,
                        ptl_handle_me_t *me_handle)
{
    struct le_setup setup = {.me = me, .matching = true, .list = ptl_list, .user_ptr = user_ptr};
    return append(ni_handle, pt_index, &setup, handlers, me_handle);
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                ptl_search_op_t ptl_search_op, void *user_ptr)
{
    struct le_setup setup = {.me = (const ptl_me_t *)le, .user_ptr = user_ptr};
    return search(ni_handle, pt_index, &setup, ptl_search_op);
}

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                ptl_search_op_t ptl_search_op, void *user_ptr)
{
    struct le_setup setup = {.me = me, .matching = true, .user_ptr = user_ptr};
    return search(ni_handle, pt_index, &setup, ptl_search_op);
}

int PtlLEUnlink(ptl_handle_le_t le_handle)
{
    return unlink_entry(le_handle, false);
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
    return unlink_entry(me_handle, true);
}
