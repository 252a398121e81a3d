/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.17: deferred communication. The NIC starts each operation of a bundle at
 * once, and only counts the bundles. */
#include "portals/api.h"

int PtlStartBundle(ptl_handle_ni_t ni_handle)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    ni->bundles++;
    return api_unlock(ni, PTL_OK);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (ni->bundles != 0) {
        ni->bundles--;
    } else {
        rc = api_refuse_call("PtlEndBundle is refused: ni_handle 0x%x has no bundle that is open; "
                             "each PtlStartBundle allows one PtlEndBundle",
                             ni_handle);
    }
    return api_unlock(ni, rc);
}
