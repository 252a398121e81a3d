/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, sections 3.6, 3.8 and 3.9: network interfaces and identity. */
#include "nic/ni.h"
#include "base/cancel.h"
#include "nic/nic.h"
#include "portals/api.h"

static bool one_of(unsigned options, unsigned a, unsigned b)
{
    return ((options & a) != 0) != ((options & b) != 0);
}

static int check_options(unsigned options)
{
    bool known = (options & ~(unsigned)PTL_NI_INIT_OPTIONS_MASK) == 0;
    return known && one_of(options, PTL_NI_MATCHING, PTL_NI_NO_MATCHING) &&
                   one_of(options, PTL_NI_LOGICAL, PTL_NI_PHYSICAL)
               ? PTL_OK
               : api_refuse_call("PtlNIInit is refused: options 0x%x must be PTL_NI_MATCHING or "
                                 "PTL_NI_NO_MATCHING, PTL_NI_LOGICAL or PTL_NI_PHYSICAL, and "
                                 "nothing else",
                                 options);
}

/* Checks the PID that PtlNIInit() asks for against that of an open NIC. */
static int check_pid(const struct nic *nic, ptl_pid_t pid)
{
    bool there = pid != 0 && (pid == PTL_PID_ANY || pid <= PTL_PID_MAX);
    if (there && (nic == NULL || pid == PTL_PID_ANY || pid == nic->pid)) {
        return PTL_OK;
    }
    return there
               ? api_refuse_call("PtlNIInit is refused: pid %u, but what is open of the interface "
                                 "has pid %u; ask for that or PTL_PID_ANY",
                                 pid, nic->pid)
               : api_refuse_call("PtlNIInit is refused: pid %u is none: PIDs are 1 to %d, or "
                                 "PTL_PID_ANY",
                                 pid, PTL_PID_MAX);
}

/* Opens the NI, and its NIC if this is the NIC's first one; the caller holds the process's lock. */
static int open_ni(struct process *p, unsigned index, unsigned options, ptl_pid_t pid,
                   const ptl_ni_limits_t *desired, struct ni **ni)
{
    struct nic *nic = p->nics[index];
    bool fresh = nic == NULL;
    if (!fresh && nic->ni[ni_kind_of(options)] != NULL) {
        *ni = nic->ni[ni_kind_of(options)];
        (*ni)->users++;
        return PTL_OK;
    }
    int rc = check_pid(nic, pid);
    if (rc != PTL_OK) {
        return rc;
    }
    if (fresh) {
        rc = nic_open(p, index, pid, &nic);
        if (rc != PTL_OK) {
            return rc; /* nic_open() has logged why */
        }
    }
    rc = ni_open(nic, options, desired, ni);
    if (rc != PTL_OK) {
        if (fresh) {
            nic_close(nic);
        }
        return rc;
    }
    (*ni)->users = 1;
    return PTL_OK;
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
              const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    unsigned index = iface - PTL_IFACE_DEFAULT;
    if (ni_handle == NULL || index >= NICS_MAX) {
        return api_refuse_null(__func__, "ni_handle", ni_handle)
                   ?: api_refuse_call(
                          "PtlNIInit is refused: iface, PTL_IFACE_DEFAULT + %u, is more "
                          "than + %u",
                          index, NICS_MAX - 1);
    }
    if (check_options(options) != PTL_OK) {
        return PTL_ARG_INVALID;
    }
    struct ni *ni;
    ERRNO_KEPT;
    int cancel = cancel_off();
    mutex_take(&p->lock);
    /* another thread may have called the last PtlFini() before this one got the lock */
    int rc = p->users != 0 ? open_ni(p, index, options, pid, desired, &ni) : PTL_NO_INIT;
    if (rc == PTL_OK) {
        *ni_handle = ni->handle;
        if (actual != NULL) {
            *actual = ni->limits;
        }
    }
    mutex_give(&p->lock);
    cancel_back(cancel);
    return rc;
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    struct ni *ni;
    ERRNO_KEPT;
    int cancel = cancel_off();
    mutex_take(&p->lock);
    int rc = api_find_ni(__func__, ni_handle, &ni);
    if (rc == PTL_OK && --ni->users == 0) {
        struct nic *nic = ni->nic;
        bool last = true;
        for (unsigned k = 0; k < NI_KINDS; k++) {
            last = last && (nic->ni[k] == NULL || nic->ni[k] == ni);
        }
        ni_close(ni);
        if (last) {
            nic_close(nic);
        }
    }
    mutex_give(&p->lock);
    cancel_back(cancel);
    return rc;
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status)
{
    struct ni *ni;
    int rc = api_find_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (status == NULL || (unsigned)status_register >= PTL_SR_LAST) {
        return api_refuse_null(__func__, "status", status)
                   ?: api_refuse_call("PtlNIStatus is refused: status_register %d is not 0 to %d",
                                      (int)status_register, PTL_SR_LAST - 1);
    }
    nic_poll(ni->nic);
    if (!api_lock(__func__, ni, ni_handle)) {
        return PTL_ARG_INVALID;
    }
    *status = (ptl_sr_value_t)ni->registers[status_register];
    return api_unlock(ni, PTL_OK);
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
    struct ni *ni;
    int rc = api_lock_ni_for(__func__, ni_handle, &ni, "uid", uid);
    if (rc != PTL_OK) {
        return rc;
    }
    *uid = ni->nic->uid;
    return api_unlock(ni, PTL_OK);
}

/* Gets the id of an NI as it has it, rank or address; or, with `physical`, the address. */
static int get_id(const char *call, ptl_handle_ni_t ni_handle, ptl_process_t *id, bool physical)
{
    struct ni *ni;
    int rc = api_lock_ni_for(call, ni_handle, &ni, "id", id);
    if (rc != PTL_OK) {
        return rc;
    }
    if (physical || !ni_is_logical(ni)) {
        id->phys.nid = ni->nic->nid;
        id->phys.pid = ni->nic->pid;
    } else {
        id->phys.pid = 0;
        id->rank = ni->rank;
    }
    return api_unlock(ni, rc);
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
    return get_id(__func__, ni_handle, id, true);
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
    return get_id(__func__, ni_handle, id, false);
}
