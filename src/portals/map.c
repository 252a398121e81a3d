/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.6.6: the map of a logical interface. */
#include "nic/ni.h"
#include "portals/api.h"

#include <inttypes.h>
#include <string.h>

/* Checks the map of an NI: PTL_OK, or the code with which it is refused. */
static int check_map(struct ni *ni, ptl_size_t size, const ptl_process_t *map)
{
    bool found = false;
    for (ptl_size_t i = 0; i < size; i++) {
        if (map[i].phys.nid == PTL_NID_ANY || map[i].phys.pid == 0 ||
            map[i].phys.pid > PTL_PID_MAX) {
            return api_refuse_call("PtlSetMap is refused: mapping[%" PRIu64 "], nid 0x%08x pid %u, "
                                   "is no process: PIDs are 1 to %d",
                                   (uint64_t)i, map[i].phys.nid, map[i].phys.pid, PTL_PID_MAX);
        }
        found |= map[i].phys.nid == ni->nic->nid && map[i].phys.pid == ni->nic->pid;
    }
    return found ? PTL_OK
                 : api_refuse_call("PtlSetMap is refused: the mapping lacks this process, nid "
                                   "0x%08x pid %u (PtlGetPhysId)",
                                   ni->nic->nid, ni->nic->pid);
}

static int refuse_kind(const char *call, ptl_handle_ni_t ni_handle)
{
    return api_refuse_call(
        "%s is refused: ni_handle 0x%x is of an interface that is not logical, it "
        "has no map",
        call, ni_handle);
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping)
{
    struct ni *ni;
    int rc = api_find_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (!ni_is_logical(ni)) {
        return refuse_kind(__func__, ni_handle);
    }
    if (mapping == NULL || map_size == 0 || map_size >= PTL_RANK_ANY) {
        return api_refuse_null(__func__, "mapping", mapping)
                   ?: api_refuse_call("PtlSetMap is refused: map_size %" PRIu64 " is not 1 to %u",
                                      (uint64_t)map_size, PTL_RANK_ANY - 1);
    }
    rc = check_map(ni, map_size, mapping);
    if (rc == PTL_OK) {
        rc = ni_set_map(ni, ni_handle, map_size, mapping);
        if (rc == PTL_NO_SPACE) {
            rc = api_refuse_state(rc, "PtlSetMap is refused: no memory for map_size %" PRIu64,
                                  (uint64_t)map_size);
        }
    }
    return rc;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
              ptl_size_t *actual_map_size)
{
    struct ni *ni;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (!ni_is_logical(ni)) {
        rc = refuse_kind(__func__, ni_handle);
    } else if ((mapping == NULL && map_size != 0) || actual_map_size == NULL) {
        rc = api_refuse_null(__func__, "actual_map_size mapping", actual_map_size, mapping);
    } else if (ni->map == NULL) {
        rc = api_refuse_state(PTL_NO_SPACE,
                              "PtlGetMap is refused: ni_handle 0x%x has no map; "
                              "PtlSetMap gives it one",
                              ni_handle);
    } else {
        ptl_size_t n = map_size < ni->map_size ? map_size : ni->map_size;
        if (n != 0) {
            memcpy(mapping, ni->map, n * sizeof(*mapping));
        }
        *actual_map_size = ni->map_size;
    }
    return api_unlock(ni, rc);
}
