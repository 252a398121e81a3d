/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.17: deferred communication. Operations start at once, so that a
 * bundle is but a count. */
#include "portals/api.h"

static int change(ptl_handle_ni_t ni_handle, bool start)
{
    struct ni *ni;
    int rc = api_lock_ni(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (start) {
        ni->bundles++;
    } else if (ni->bundles != 0) {
        ni->bundles--;
    } else {
        rc = PTL_ARG_INVALID;
    }
    nic_unlock(ni->nic);
    return rc;
}

int PtlStartBundle(ptl_handle_ni_t ni_handle)
{
    return change(ni_handle, true);
}

int PtlEndBundle(ptl_handle_ni_t ni_handle)
{
    return change(ni_handle, false);
}
