/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, sections 3.6, 3.8 and 3.9: network interfaces and identity. */
#include "portals/api.h"

#include "base/cancel.h"
#include "base/log.h"

static bool one_of(unsigned options, unsigned a, unsigned b)
{
    return ((options & a) != 0) != ((options & b) != 0);
}

/* What is wrong with these, or NULL. */
static const char *find_fault(unsigned options, ptl_pid_t pid)
{
    bool known = (options & ~(unsigned)PTL_NI_INIT_OPTIONS_MASK) == 0;
    if (!known || !one_of(options, PTL_NI_MATCHING, PTL_NI_NO_MATCHING) ||
        !one_of(options, PTL_NI_LOGICAL, PTL_NI_PHYSICAL)) {
        return "options are one of PTL_NI_MATCHING and PTL_NI_NO_MATCHING and one of "
               "PTL_NI_LOGICAL and PTL_NI_PHYSICAL";
    }
    return pid != 0 && (pid == PTL_PID_ANY || pid <= PTL_PID_MAX)
               ? NULL
               : "a PID is PTL_PID_ANY or 1 to 65534";
}

static int refuse(unsigned index, unsigned options, ptl_pid_t pid, const char *why)
{
    log_line(LOG_WARN,
             "PtlNIInit of PTL_IFACE_DEFAULT + %u with options 0x%x and pid %u is refused: %s",
             index, options, pid, why);
    return PTL_ARG_INVALID;
}

static unsigned kind_of(unsigned options)
{
    return ((options & PTL_NI_NO_MATCHING) != 0 ? 1u : 0) |
           ((options & PTL_NI_PHYSICAL) != 0 ? 2u : 0);
}

/* Opens the NI, and the NIC under it if this is its first; process lock held. */
static int open_ni(struct process *p, unsigned index, unsigned options, ptl_pid_t pid,
                   const ptl_ni_limits_t *desired, struct ni **ni)
{
    struct nic *nic = p->nics[index];
    bool fresh = nic == NULL;
    if (!fresh && nic->ni[kind_of(options)] != NULL) {
        *ni = nic->ni[kind_of(options)];
        (*ni)->users++;
        return PTL_OK;
    }
    const char *fault = find_fault(options, pid);
    if (fault == NULL && !fresh && pid != PTL_PID_ANY && pid != nic->pid) {
        fault = "the interface has another PID already: PTL_PID_ANY takes that";
    }
    if (fault != NULL) {
        return refuse(index, options, pid, fault);
    }
    int rc;
    if (fresh) {
        rc = nic_open(p, index, pid, &nic);
        if (rc != PTL_OK) {
            return rc;
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
    const char *fault = ni_handle == NULL   ? "ni_handle is NULL"
                        : index >= NICS_MAX ? "there is no such interface"
                                            : find_fault(options, PTL_PID_ANY);
    if (fault != NULL) {
        return refuse(index, options, pid, fault);
    }
    struct ni *ni;
    ERRNO_KEPT;
    int cancel = cancel_off();
    mutex_take(&p->lock);
    /* The last PtlFini() may have been under way. */
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
    int rc = api_ni_only(ni_handle, &ni);
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
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (status == NULL || (unsigned)status_register >= PTL_SR_LAST) {
        return PTL_ARG_INVALID;
    }
    nic_poll(ni->nic);
    if (!api_lock(ni, ni_handle)) {
        return PTL_ARG_INVALID;
    }
    *status = (ptl_sr_value_t)ni->registers[status_register];
    nic_unlock(ni->nic);
    return PTL_OK;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
    struct ni *ni;
    int rc = api_lock_ni(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (uid == NULL) {
        rc = PTL_ARG_INVALID;
    } else {
        *uid = ni->nic->uid;
    }
    nic_unlock(ni->nic);
    return rc;
}

/* The id of an NI, or the physical one of any. */
static int get_id(ptl_handle_ni_t ni_handle, ptl_process_t *id, bool physical)
{
    struct ni *ni;
    int rc = api_lock_ni(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (id == NULL) {
        rc = PTL_ARG_INVALID;
    } else if (physical || !ni_is_logical(ni)) {
        id->phys.nid = ni->nic->nid;
        id->phys.pid = ni->nic->pid;
    } else {
        id->phys.pid = 0;
        id->rank = ni->rank;
    }
    nic_unlock(ni->nic);
    return rc;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
    return get_id(ni_handle, id, true);
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
    return get_id(ni_handle, id, false);
}
