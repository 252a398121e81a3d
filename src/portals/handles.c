/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.18: handles; and the checks that other files share. */
#include "base/nic_copy.h"
#include "portals/api.h"

#include <inttypes.h>

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2)
{
    return handle1 == handle2;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
    struct ni *ni;
    int rc = api_ni(handle, &ni);
    if (rc == PTL_OK && ni_handle != NULL) {
        const struct table *t = api_table(ni, handle);
        nic_lock(ni->nic);
        bool known = t != NULL ? table_get(t, handle) != NULL : ni->handle == handle;
        if (known) {
            *ni_handle = ni->handle;
        }
        rc = api_unlock(ni, known ? PTL_OK : PTL_ARG_INVALID);
    } else if (rc == PTL_OK) {
        rc = PTL_ARG_INVALID;
    }
    if (rc == PTL_ARG_INVALID) {
        api_refuse_call("PtlNIHandle is refused: handle 0x%" PRIx32 " must be of an object that is "
                        "there, ni_handle %p not NULL",
                        handle, (void *)ni_handle);
    }
    return rc;
}

int api_find(const char *call, ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni,
             void *object)
{
    int rc = api_object(handle, kind, ni, object);
    return rc == PTL_OK ? rc : api_refuse_object(call, handle, kind);
}

int api_find_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni)
{
    int rc = api_ni_only(handle, ni);
    return rc == PTL_OK ? rc : api_refuse_object(call, handle, HANDLE_NI);
}

int api_find_all(const char *call, const ptl_handle_any_t *handles, unsigned size,
                 enum handle_kind kind, struct ni **ni)
{
    void *object;
    int rc = api_find(call, handles[0], kind, ni, &object);
    for (unsigned i = 1; rc == PTL_OK && i < size; i++) {
        struct ni *of = NULL;
        rc = api_find(call, handles[i], kind, &of, &object);
        if (rc == PTL_OK && of != *ni) {
            rc = api_refuse_object(call, handles[i], kind);
        }
    }
    return rc;
}

bool api_lock(const char *call, struct ni *ni, ptl_handle_ni_t handle)
{
    nic_lock(ni->nic);
    if (likely(ni->handle == handle)) {
        return true;
    }
    api_unlock(ni, api_refuse_object(call, handle, HANDLE_NI));
    return false;
}

int api_lock_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni)
{
    int rc = api_find_ni(call, handle, ni);
    return rc != PTL_OK ? rc : api_lock(call, *ni, handle) ? PTL_OK : PTL_ARG_INVALID;
}

int api_lock_ni_for(const char *call, ptl_handle_ni_t handle, struct ni **ni, const char *name,
                    const void *to)
{
    int rc = api_lock_ni(call, handle, ni);
    return rc == PTL_OK && to == NULL ? api_unlock(*ni, api_refuse_null(call, name, to)) : rc;
}

int api_lock_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind,
                    struct ni **ni, void *object)
{
    if (api_ni(handle, ni) != PTL_OK || handle_kind(handle) != kind) {
        return api_refuse_object(call, handle, kind);
    }
    nic_lock((*ni)->nic);
    void *found = table_get(api_table(*ni, handle), handle);
    *(void **)object = found;
    return likely(found != NULL) ? PTL_OK : api_unlock(*ni, api_refuse_object(call, handle, kind));
}

int api_unlock(struct ni *ni, int rc)
{
    nic_unlock(ni->nic);
    return rc;
}

int api_eq_ref(const char *call, struct ni *ni, ptl_handle_eq_t handle, struct eq_ref *ref)
{
    *ref = (struct eq_ref){NULL, 0};
    if (handle == PTL_EQ_NONE) {
        return PTL_OK;
    }
    ref->eq = handle_kind(handle) == HANDLE_EQ ? table_get(&ni->eqs, handle) : NULL;
    ref->handle = handle;
    return ref->eq != NULL ? PTL_OK : api_refuse_object(call, handle, HANDLE_EQ);
}

int api_ct_ref(const char *call, struct ni *ni, ptl_handle_ct_t handle, bool needed,
               struct ct_ref *ref)
{
    struct ct *ct = handle_kind(handle) == HANDLE_CT ? table_get(&ni->cts, handle) : NULL;
    *ref = (struct ct_ref){ct, ct != NULL ? handle : 0};
    return ct != NULL || handle == PTL_CT_NONE || !needed
               ? PTL_OK
               : api_refuse_object(call, handle, HANDLE_CT);
}

int api_find_pt(const char *call, struct ni *ni, ptl_pt_index_t index, struct pt **pt)
{
    return api_pt(ni, index, pt) == PTL_OK
               ? PTL_OK
               : api_refuse_call("%s is refused: pt_index %u is not allocated; PtlPTAlloc gives "
                                 "one, 0 to %d",
                                 call, index, ni->limits.max_pt_index);
}

int api_vector(const char *call, struct ni *ni, const void *parts, ptl_size_t count,
               struct vector *vector, uint64_t *length)
{
    _Static_assert(sizeof(ptl_iovec_t) == sizeof(struct iovec), "one layout");
    if (count > (unsigned)ni->limits.max_iovecs) {
        return api_refuse_call("%s is refused: an iovec of %" PRIu64 " parts has more than "
                               "max_iovecs, %d",
                               call, (uint64_t)count, ni->limits.max_iovecs);
    }
    /* One part more than needed: a vector without parts would be a range. */
    struct iovec *copy = malloc((count + 1) * sizeof(*copy));
    if (copy == NULL) {
        return api_refuse_space(call, "max_iovecs", ni->limits.max_iovecs);
    }
    *vector = (struct vector){copy, count};
    if (nic_copy(copy, parts, count * sizeof(*copy)) != 0 || vector_length(vector, length) != 0) {
        free(copy);
        vector->parts = NULL;
        return api_refuse_call("%s is refused: the iovec of %" PRIu64 " parts at %p cannot be "
                               "read, or its lengths overflow",
                               call, (uint64_t)count, parts);
    }
    return PTL_OK;
}
