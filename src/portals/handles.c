/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.18: handles; and the checks that other files share. */
#include "portals/api.h"

#include "base/nic_copy.h"

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2)
{
    return handle1 == handle2;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
    struct ni *ni;
    int rc = api_ni(handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct table *t = api_table(ni, handle);
    nic_lock(ni->nic);
    bool known = t != NULL ? table_get(t, handle) != NULL : ni->handle == handle;
    if (ni_handle == NULL || !known) {
        rc = PTL_ARG_INVALID;
    } else {
        *ni_handle = ni->handle;
    }
    nic_unlock(ni->nic);
    return rc;
}

bool api_lock(struct ni *ni, ptl_handle_ni_t handle)
{
    nic_lock(ni->nic);
    if (usual(ni->handle == handle)) {
        return true;
    }
    nic_unlock(ni->nic);
    return false;
}

int api_lock_ni(ptl_handle_ni_t handle, struct ni **ni)
{
    int rc = api_ni_only(handle, ni);
    return rc != PTL_OK ? rc : api_lock(*ni, handle) ? PTL_OK : PTL_ARG_INVALID;
}

int api_lock_object(ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni, void *object)
{
    int rc = api_ni(handle, ni);
    if (rc != PTL_OK || handle_kind(handle) != kind) {
        return rc != PTL_OK ? rc : PTL_ARG_INVALID;
    }
    nic_lock((*ni)->nic);
    void *found = table_get(api_table(*ni, handle), handle);
    *(void **)object = found;
    if (usual(found != NULL)) {
        return PTL_OK;
    }
    nic_unlock((*ni)->nic);
    return PTL_ARG_INVALID;
}

int api_eq_ref(struct ni *ni, ptl_handle_eq_t handle, struct eq_ref *ref)
{
    *ref = (struct eq_ref){NULL, 0};
    if (handle == PTL_EQ_NONE) {
        return PTL_OK;
    }
    if (handle_kind(handle) != HANDLE_EQ) {
        return PTL_ARG_INVALID;
    }
    ref->eq = table_get(&ni->eqs, handle);
    ref->handle = handle;
    return ref->eq != NULL ? PTL_OK : PTL_ARG_INVALID;
}

int api_ct_ref(struct ni *ni, ptl_handle_ct_t handle, struct ct_ref *ref)
{
    *ref = (struct ct_ref){NULL, 0};
    if (handle == PTL_CT_NONE) {
        return PTL_OK;
    }
    if (handle_kind(handle) != HANDLE_CT) {
        return PTL_ARG_INVALID;
    }
    ref->ct = table_get(&ni->cts, handle);
    ref->handle = handle;
    return ref->ct != NULL ? PTL_OK : PTL_ARG_INVALID;
}

int api_vector(struct ni *ni, const void *parts, ptl_size_t count, struct vector *vector,
               uint64_t *length)
{
    _Static_assert(sizeof(ptl_iovec_t) == sizeof(struct iovec), "one layout");
    if (count > (unsigned)ni->limits.max_iovecs) {
        return PTL_ARG_INVALID;
    }
    /* One more than needed: a vector without parts would be a range. */
    struct iovec *copy = malloc((count + 1) * sizeof(*copy));
    if (copy == NULL) {
        return PTL_NO_SPACE;
    }
    *vector = (struct vector){copy, count};
    if (nic_copy(copy, parts, count * sizeof(*copy)) != 0 || vector_length(vector, length) != 0) {
        free(copy);
        vector->parts = NULL;
        return PTL_ARG_INVALID;
    }
    return PTL_OK;
}
