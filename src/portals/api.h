/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From handles to objects, with the codes that a bad one gives. Each function
 * of the interface begins with one of these.
 */
#ifndef PORTALS_API_H
#define PORTALS_API_H

#include "nic/nic.h"

/* api_ni() finds the NI that a handle of any kind names: PTL_OK, PTL_NO_INIT or
 * PTL_ARG_INVALID. */
static inline int api_ni(ptl_handle_any_t handle, struct ni **ni)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    *ni = __atomic_load_n(&p->nis[handle_ni(handle)], __ATOMIC_ACQUIRE);
    if (*ni == NULL || (handle_kind(handle) == HANDLE_NI && (*ni)->handle != handle)) {
        return PTL_ARG_INVALID;
    }
    return PTL_OK;
}

/* api_ni_only() is api_ni() for a handle that must be an NI's own. */
static inline int api_ni_only(ptl_handle_ni_t handle, struct ni **ni)
{
    int rc = api_ni(handle, ni);
    return rc == PTL_OK && handle_kind(handle) != HANDLE_NI ? PTL_ARG_INVALID : rc;
}

static inline struct table *api_table(struct ni *ni, ptl_handle_any_t handle)
{
    switch (handle_kind(handle)) {
    case HANDLE_EQ:
        return &ni->eqs;
    case HANDLE_CT:
        return &ni->cts;
    case HANDLE_MD:
        return &ni->mds;
    case HANDLE_LE:
        return &ni->les;
    case HANDLE_HPU:
        return &ni->hpu_memories;
    default:
        return NULL;
    }
}

/* api_object() finds the object of a kind that a handle names, and its NI. */
static inline int api_object(ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni,
                             void *object)
{
    int rc = api_ni(handle, ni);
    if (rc != PTL_OK) {
        return rc;
    }
    void *found = handle_kind(handle) == kind ? table_get(api_table(*ni, handle), handle) : NULL;
    *(void **)object = found;
    return found != NULL ? PTL_OK : PTL_ARG_INVALID;
}

/* api_eq_ref() and api_ct_ref() turn a handle, which may be ..._NONE, into a
 * reference of an object of `ni`. */
int api_eq_ref(struct ni *ni, ptl_handle_eq_t handle, struct eq_ref *ref);
int api_ct_ref(struct ni *ni, ptl_handle_ct_t handle, struct ct_ref *ref);

/* api_pt() checks an index; the entry must be allocated. */
int api_pt(struct ni *ni, ptl_pt_index_t index, struct pt **pt);

/* api_request() checks the arguments of a data movement from or to an MD. */
int api_request(struct ni *ni, struct request *r, ptl_handle_md_t md, ptl_size_t local_offset);

#endif
