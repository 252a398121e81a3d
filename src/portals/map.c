/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.6.6: the map of a logical interface. */
#include "portals/api.h"

#include <string.h>

static bool map_sound(struct ni *ni, ptl_size_t size, const ptl_process_t *map)
{
    bool found = false;
    for (ptl_size_t i = 0; i < size; i++) {
        if (map[i].phys.nid == PTL_NID_ANY || map[i].phys.pid == 0 ||
            map[i].phys.pid > PTL_PID_MAX) {
            return false;
        }
        found |= map[i].phys.nid == ni->nic->nid && map[i].phys.pid == ni->nic->pid;
    }
    return found;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping)
{
    struct ni *ni;
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (!ni_is_logical(ni) || mapping == NULL || map_size == 0 || map_size >= PTL_RANK_ANY ||
        !map_sound(ni, map_size, mapping)) {
        return PTL_ARG_INVALID;
    }
    return ni_set_map(ni, ni_handle, map_size, mapping);
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
              ptl_size_t *actual_map_size)
{
    struct ni *ni;
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (!ni_is_logical(ni) || (mapping == NULL && map_size != 0) || actual_map_size == NULL) {
        return PTL_ARG_INVALID;
    }
    if (!api_lock(ni, ni_handle)) {
        return PTL_ARG_INVALID;
    }
    rc = ni->map == NULL ? PTL_NO_SPACE : PTL_OK;
    if (rc == PTL_OK) {
        ptl_size_t n = map_size < ni->map_size ? map_size : ni->map_size;
        if (n != 0) {
            memcpy(mapping, ni->map, n * sizeof(*mapping));
        }
        *actual_map_size = ni->map_size;
    }
    nic_unlock(ni->nic);
    return rc;
}
