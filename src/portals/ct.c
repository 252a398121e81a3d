/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.14: counting events. */
#include "nic/counter.h"
#include "nic/wait.h"
#include "portals/api.h"

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
    struct ni *ni;
    int rc = api_lock_ni_for(__func__, ni_handle, &ni, "ct_handle", ct_handle);
    if (rc != PTL_OK) {
        return rc;
    }
    struct ct *ct = table_ready(&ni->cts) ? table_take(&ni->cts) : NULL;
    if (ct != NULL) {
        if (ct->ni == NULL) {
            /* the same for each counter in this place of the table: other threads may be reading
             * it */
            ct->ni = ni;
        }
        atomic_store_explicit(&ct->success, 0, memory_order_relaxed);
        atomic_store_explicit(&ct->failure, 0, memory_order_relaxed);
        ct->rungs = NULL;
        list_init(&ct->triggers);
        *ct_handle = ct->slot.handle;
    } else {
        rc = api_refuse_space(__func__, "max_cts", ni->limits.max_cts);
    }
    return api_unlock(ni, rc);
}

/* Frees a counter, or cancels the triggered operations that wait for it, by how(). Operations that
 * have fired are in the NIC's list, and not affected. */
static int forget(const char *call, ptl_handle_ct_t ct_handle, void (*how)(struct ct *ct))
{
    struct ni *ni;
    struct ct *ct;
    int rc = api_lock_object(call, ct_handle, HANDLE_CT, &ni, &ct);
    if (rc == PTL_OK) {
        trigger_run(ni->nic);
        how(ct);
        api_unlock(ni, rc);
    }
    return rc;
}

int PtlCTFree(ptl_handle_ct_t ct_handle)
{
    return forget(__func__, ct_handle, ct_drop);
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle)
{
    return forget(__func__, ct_handle, ct_cancel);
}

static ptl_ct_event_t read_counter(struct ct *ct)
{
    return (ptl_ct_event_t){
        .success = atomic_load_explicit(&ct->success, memory_order_acquire),
        .failure = atomic_load_explicit(&ct->failure, memory_order_acquire),
    };
}

/* The counter that this thread looked up last. */
struct known {
    struct api_when when;
    ptl_handle_ct_t handle;
    struct ct *ct;
};
static __thread struct known known_counter __attribute__((tls_model("initial-exec")));

__attribute__((noinline)) static int find_anew(const char *call, ptl_handle_ct_t handle,
                                               struct ct **ct)
{
    struct known *k = &known_counter;
    struct api_when now = api_now();
    struct ni *ni;
    k->when.epoch = 0;
    if (unlikely(api_object(handle, HANDLE_CT, &ni, ct) != PTL_OK)) {
        return api_refuse_object(call, handle, HANDLE_CT);
    }
    *k = (struct known){.when = now, .handle = handle, .ct = *ct};
    return PTL_OK;
}

static inline int find(const char *call, ptl_handle_ct_t handle, struct ct **ct)
{
    const struct known *k = &known_counter;
    if (likely(api_still(&k->when)) && likely(k->handle == handle)) {
        *ct = k->ct;
        PAUSE_POINT("remembered");
        if (likely((*ct)->slot.handle == handle)) {
            return PTL_OK;
        }
    }
    return find_anew(call, handle, ct);
}

__attribute__((cold, noinline)) static int refuse_event(const char *call)
{
    return api_refuse_call("%s is refused: event is NULL", call);
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
    struct ct *ct;
    int rc = find(__func__, ct_handle, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    if (unlikely(event == NULL)) {
        return refuse_event(__func__);
    }
    nic_poll(ct->ni->nic);
    *event = read_counter(ct);
    /* If another thread has freed the counter meanwhile, the value may be that of a new one. */
    return likely(ct->slot.handle == ct_handle) ? PTL_OK
                                                : api_refuse_object(__func__, ct_handle, HANDLE_CT);
}

/* The condition of a wait: one of several counters has reached its test value, or has a failure. */
struct ct_wait {
    const ptl_handle_ct_t *handles;
    const ptl_size_t *tests;
    unsigned size;
    unsigned which;
    ptl_ct_event_t value;
    int rc;
};

/* Whether a wait is over at once: its condition is true, and the NIC has nothing to do. If the NIC
 * has, the thread goes on to the wait, which makes progress: a program whose conditions are always
 * true would make none. */
static inline bool is_over(struct nic *nic, bool (*ready)(void *arg), void *arg)
{
    if (!ready(arg)) {
        return false;
    }
    nic_take_over(nic);
    return nic_quiet(nic);
}

/* Makes progress once, and returns whether the condition is true; PtlCTPoll() with timeout 0. */
static inline bool poll_once(struct nic *nic, bool (*ready)(void *arg), void *arg)
{
    nic_take_over(nic);
    bool done = ready(arg), moved = done;
    if (!nic_quiet(nic)) {
        nic_lock(nic);
        moved |= nic_advance(nic);
        done = ready(arg);
        nic_unlock(nic);
    }
    /* counts as a find even if the messages that moved did not make the condition true */
    nic_note_poll(nic, moved);
    return done;
}

static bool reached(void *arg)
{
    struct ct_wait *w = arg;
    for (unsigned i = 0; i < w->size; i++) {
        struct ni *ni;
        struct ct *ct;
        w->rc = api_object(w->handles[i], HANDLE_CT, &ni, &ct);
        if (w->rc == PTL_OK) {
            w->value = read_counter(ct);
            w->rc = ct->slot.handle == w->handles[i] ? PTL_OK : PTL_ARG_INVALID;
        }
        if (w->rc != PTL_OK || w->value.success >= w->tests[i] || w->value.failure != 0) {
            w->which = i;
            return true;
        }
    }
    return false;
}

/* The condition of a wait for one counter. */
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
    /* its memory stays that of a counter, even if another thread has freed it */
    w->value = read_counter(w->ct);
    w->rc = w->ct->slot.handle == w->handle ? PTL_OK : PTL_ARG_INVALID;
    return w->value.success >= w->test || w->value.failure != 0 || w->rc != PTL_OK;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
    struct ct *ct;
    int rc = find(__func__, ct_handle, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    if (unlikely(event == NULL)) {
        return refuse_event(__func__);
    }
    struct one_wait w = {.ct = ct, .handle = ct_handle, .test = test};
    if (!is_over(ct->ni->nic, one_reached, &w)) {
        struct ct_mark mark = {.ct = ct, .success = test};
        rc = ni_wait_mark(ct->ni, one_reached, &w, &mark);
    }
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
        return api_refuse_null(__func__, "ct_handles tests event which", ct_handles, tests, event,
                               which)
                   ?: api_refuse_call("PtlCTPoll is refused: size is 0, and must be at least 1");
    }
    struct ni *ni;
    int rc = api_find_all(__func__, ct_handles, size, HANDLE_CT, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct ct_wait w = {.handles = ct_handles, .tests = tests, .size = size};
    if (timeout == 0 && !poll_once(ni->nic, reached, &w)) {
        return PTL_CT_NONE_REACHED;
    }
    if (timeout != 0 && !is_over(ni->nic, reached, &w)) {
        rc = ni_wait_abort(ni, reached, &w, api_timeout(timeout), PTL_CT_NONE_REACHED);
        if (rc != PTL_OK) {
            return rc;
        }
    }
    *event = w.value;
    *which = w.which;
    return w.rc;
}

/* PtlCTSet and PtlCTInc. The operations that they trigger start before they return. */
static int change(const char *call, ptl_handle_ct_t ct_handle, ptl_ct_event_t value, bool set)
{
    struct ni *ni;
    struct ct *ct;
    int rc = api_lock_object(call, ct_handle, HANDLE_CT, &ni, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    if (set) {
        ct_set(ct, value);
    } else {
        ct_add((struct ct_ref){ct, ct_handle}, value.success, value.failure);
    }
    trigger_run(ni->nic);
    nic_unlock(ni->nic);
    return PTL_OK;
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
    return change(__func__, ct_handle, new_ct, true);
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
    if (unlikely(increment.success != 0 && increment.failure != 0)) {
        return api_refuse_increment(__func__, ct_handle, increment);
    }
    return change(__func__, ct_handle, increment, false);
}
