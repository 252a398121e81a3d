/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.14: counting events. */
#include "portals/api.h"

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
    struct ni *ni;
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (ct_handle == NULL) {
        return PTL_ARG_INVALID;
    }
    nic_lock(ni->nic);
    struct ct *ct = table_add(&ni->cts);
    if (ct != NULL) {
        ct->ni = ni;
        list_init(&ct->triggers);
        *ct_handle = ct->slot.handle;
    }
    nic_unlock(ni->nic);
    return ct != NULL ? PTL_OK : PTL_NO_SPACE;
}

/* What frees a counter, or what waits for it; what has fired is no longer the counter's. */
static int forget(ptl_handle_ct_t ct_handle, void (*how)(struct ct *ct))
{
    struct ni *ni;
    int rc = api_ni(ct_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct ct *ct;
    struct nic *nic = ni->nic;
    nic_lock(nic);
    rc = api_object(ct_handle, HANDLE_CT, &ni, &ct);
    if (rc == PTL_OK) {
        trigger_run(nic);
        how(ct);
    }
    nic_unlock(nic);
    return rc;
}

int PtlCTFree(ptl_handle_ct_t ct_handle)
{
    return forget(ct_handle, ct_drop);
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle)
{
    return forget(ct_handle, ct_cancel);
}

static ptl_ct_event_t read_counter(struct ct *ct)
{
    return (ptl_ct_event_t){
        .success = atomic_load_explicit(&ct->success, memory_order_acquire),
        .failure = atomic_load_explicit(&ct->failure, memory_order_acquire),
    };
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
    struct ni *ni;
    struct ct *ct;
    int rc = api_object(ct_handle, HANDLE_CT, &ni, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    if (event == NULL) {
        return PTL_ARG_INVALID;
    }
    nic_poll(ni->nic);
    *event = read_counter(ct);
    return PTL_OK;
}

/* What a thread waits for: one of some counters at its mark, or a failure. */
struct ct_wait {
    const ptl_handle_ct_t *handles;
    const ptl_size_t *tests;
    unsigned size;
    unsigned which;
    ptl_ct_event_t value;
    int rc;
};

static bool reached(void *arg)
{
    struct ct_wait *w = arg;
    for (unsigned i = 0; i < w->size; i++) {
        struct ni *ni;
        struct ct *ct;
        w->rc = api_object(w->handles[i], HANDLE_CT, &ni, &ct);
        if (w->rc == PTL_OK) {
            w->value = read_counter(ct);
        }
        if (w->rc != PTL_OK || w->value.success >= w->tests[i] || w->value.failure != 0) {
            w->which = i;
            return true;
        }
    }
    return false;
}

/* The usual case of it: one counter. */
struct one_wait {
    struct ct *ct;
    ptl_handle_ct_t handle;
    ptl_size_t test;
    ptl_ct_event_t value;
    int rc;
};

static bool one_reached(void *arg)
{
    struct one_wait *w = arg;
    w->value = read_counter(w->ct); /* its memory stays, even if it was freed meanwhile */
    w->rc = w->ct->slot.handle == w->handle ? PTL_OK : PTL_ARG_INVALID;
    return w->value.success >= w->test || w->value.failure != 0 || w->rc != PTL_OK;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
    struct ni *ni;
    struct ct *ct;
    int rc = api_object(ct_handle, HANDLE_CT, &ni, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    if (event == NULL) {
        return PTL_ARG_INVALID;
    }
    struct one_wait w = {.ct = ct, .handle = ct_handle, .test = test};
    struct ct_mark mark = {.ct = ct, .success = test};
    rc = ni_wait_mark(ni, one_reached, &w, &mark);
    if (rc == PTL_OK) {
        *event = w.value;
        rc = w.rc;
    }
    return rc;
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
              ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    if (ct_handles == NULL || tests == NULL || size == 0 || event == NULL || which == NULL) {
        return PTL_ARG_INVALID;
    }
    struct ni *ni = NULL;
    for (unsigned i = 0; i < size; i++) {
        struct ni *of;
        struct ct *ct;
        int rc = api_object(ct_handles[i], HANDLE_CT, &of, &ct);
        if (rc != PTL_OK) {
            return rc;
        }
        if (i > 0 && of != ni) {
            return PTL_ARG_INVALID;
        }
        ni = of;
    }
    struct ct_wait w = {.handles = ct_handles, .tests = tests, .size = size};
    int64_t ns = timeout == PTL_TIME_FOREVER ? -1 : (int64_t)timeout * 1000000;
    int rc = ni_wait_abort(ni, reached, &w, ns, PTL_CT_NONE_REACHED);
    if (rc != PTL_OK) {
        return rc;
    }
    *event = w.value;
    *which = w.which;
    return w.rc;
}

/* PtlCTSet and PtlCTInc: what they trigger happens before they return. */
static int change(ptl_handle_ct_t ct_handle, ptl_ct_event_t value, bool set)
{
    struct ni *ni;
    int rc = api_ni(ct_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct ct *ct;
    nic_lock(ni->nic);
    rc = api_object(ct_handle, HANDLE_CT, &ni, &ct);
    if (rc == PTL_OK && set) {
        ct_set(ct, value);
    } else if (rc == PTL_OK) {
        ct_add((struct ct_ref){ct, ct_handle}, value.success, value.failure);
    }
    trigger_run(ni->nic);
    nic_unlock(ni->nic);
    return rc;
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
    return change(ct_handle, new_ct, true);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
    struct ni *ni;
    int rc = api_ni(ct_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (increment.success != 0 && increment.failure != 0) {
        return PTL_ARG_INVALID;
    }
    return change(ct_handle, increment, false);
}
