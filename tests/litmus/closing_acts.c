/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that meet ways to close in closing.c. */
#include "closing.h"

#include <stddef.h>
#include <stdint.h>

static uint64_t source, fetched;

/* ---- calls ---- */

static int eq_wait(struct scene *s)
{
    ptl_event_t event;
    return PtlEQWait(s->eq, &event);
}

static int eq_get(struct scene *s)
{
    ptl_event_t event;
    return PtlEQGet(s->eq, &event);
}

static int eq_poll_now(struct scene *s)
{
    ptl_event_t event;
    unsigned which;
    ptl_handle_eq_t both[] = {s->eq, s->eq};
    return PtlEQPoll(both, 2, 0, &event, &which);
}

static int eq_poll(struct scene *s)
{
    ptl_event_t event;
    unsigned which;
    return PtlEQPoll(&s->eq, 1, 30000, &event, &which);
}

static int ct_wait(struct scene *s)
{
    ptl_ct_event_t v;
    return PtlCTWait(s->ct, 1, &v);
}

static int ct_get(struct scene *s)
{
    ptl_ct_event_t v;
    return PtlCTGet(s->ct, &v);
}

static int ct_poll_for(struct scene *s, ptl_time_t timeout)
{
    ptl_ct_event_t v;
    unsigned which;
    ptl_size_t test = 1;
    return PtlCTPoll(&s->ct, &test, 1, timeout, &v, &which);
}

static int ct_poll(struct scene *s)
{
    return ct_poll_for(s, 30000);
}

static int ct_poll_now(struct scene *s)
{
    return ct_poll_for(s, 0);
}

static void look_eq(struct scene *s)
{
    eq_get(s);
}

static void look_eqs(struct scene *s)
{
    eq_poll_now(s);
}

static void look_ct(struct scene *s)
{
    ct_get(s);
}

static int ct_inc(struct scene *s)
{
    return PtlCTInc(s->ct, (ptl_ct_event_t){1, 0});
}

static int ct_set(struct scene *s)
{
    return PtlCTSet(s->ct, (ptl_ct_event_t){1, 0});
}

static int ct_free(struct scene *s)
{
    return PtlCTFree(s->ct);
}

static int ct_cancel(struct scene *s)
{
    return PtlCTCancelTriggered(s->ct);
}

static int ct_alloc(struct scene *s)
{
    ptl_handle_ct_t ct;
    return PtlCTAlloc(s->ni, &ct);
}

static int eq_alloc(struct scene *s)
{
    ptl_handle_eq_t eq;
    return PtlEQAlloc(s->ni, 8, &eq);
}

static int eq_free(struct scene *s)
{
    return PtlEQFree(s->eq);
}

static int put(struct scene *s)
{
    return PtlPut(s->md, 0, 8, PTL_NO_ACK_REQ, s->self, 0, 0, 0, NULL, 0);
}

/* Nobody is at that address, so that what goes there waits; the queue has PINWHEEL_SEND_QUEUE
 * places. */
static int put_in_full(struct scene *s)
{
    ptl_process_t nobody = {.phys = {s->self.phys.nid, 60000}};
    int rc = PTL_OK;
    for (int i = 0; i <= 2 && rc == PTL_OK; i++) {
        rc = PtlPut(s->md, 0, 8, PTL_NO_ACK_REQ, nobody, 0, 0, 0, NULL, 0);
    }
    return rc;
}

static int get(struct scene *s)
{
    return PtlGet(s->md, 0, 8, s->self, 0, 0, 0, NULL);
}

static int atomic(struct scene *s)
{
    return PtlAtomic(s->md, 0, 8, PTL_NO_ACK_REQ, s->self, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T);
}

static int fetch_atomic(struct scene *s)
{
    return PtlFetchAtomic(s->md, 0, s->md, 0, 8, s->self, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T);
}

static int swap(struct scene *s)
{
    return PtlSwap(s->md, 0, s->md, 0, 8, s->self, 0, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T);
}

static int triggered_put(struct scene *s)
{
    return PtlTriggeredPut(s->md, 0, 8, PTL_NO_ACK_REQ, s->self, 0, 0, 0, NULL, 0, s->ct, 1);
}

static int triggered_inc(struct scene *s)
{
    return PtlTriggeredCTInc(s->counted, (ptl_ct_event_t){1, 0}, s->ct, 0);
}

static int triggered_append(struct scene *s)
{
    ptl_me_t me = scene_entry(s);
    ptl_handle_me_t handle;
    return PtlTriggeredMEAppend(s->ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle, s->ct, 0);
}

static int triggered_unlink(struct scene *s)
{
    return PtlTriggeredMEUnlink(s->me, s->ct, 0);
}

static int md_bind(struct scene *s)
{
    ptl_md_t md = {.start = &source, .length = 8, .eq_handle = s->eq, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t handle;
    return PtlMDBind(s->ni, &md, &handle);
}

static int md_release(struct scene *s)
{
    return PtlMDRelease(s->md);
}

/* An entry that nothing refers to but its portal table entry. */
static int me_append(struct scene *s)
{
    ptl_me_t me = scene_entry(s);
    ptl_handle_me_t handle;
    me.options &= ~(unsigned)PTL_ME_EVENT_CT_COMM;
    me.ct_handle = PTL_CT_NONE;
    return PtlMEAppend(s->ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle);
}

/* A thread that has the bias appends without further ado. */
static void earn_bias(struct scene *s)
{
    for (int i = 0; i < 200; i++) {
        OK(PtlCTInc(s->ct, (ptl_ct_event_t){0, 0}));
    }
}

static int me_search(struct scene *s)
{
    ptl_me_t me = scene_entry(s);
    me.options = PTL_ME_OP_PUT;
    me.ct_handle = PTL_CT_NONE;
    return PtlMESearch(s->ni, 0, &me, PTL_SEARCH_ONLY, NULL);
}

static int me_unlink(struct scene *s)
{
    return PtlMEUnlink(s->me);
}

static int pt_alloc(struct scene *s)
{
    ptl_pt_index_t pt;
    return PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, 1, &pt);
}

static int pt_free(struct scene *s)
{
    return PtlPTFree(s->ni, 0);
}

static int pt_disable(struct scene *s)
{
    return PtlPTDisable(s->ni, 0);
}

static int pt_enable(struct scene *s)
{
    return PtlPTEnable(s->ni, 0);
}

static int ni_status(struct scene *s)
{
    ptl_sr_value_t value;
    return PtlNIStatus(s->ni, PTL_SR_DROP_COUNT, &value);
}

static int get_id(struct scene *s)
{
    ptl_process_t id;
    return PtlGetPhysId(s->ni, &id);
}

static int ni_handle(struct scene *s)
{
    ptl_handle_ni_t ni;
    return PtlNIHandle(s->eq, &ni);
}

static int start_bundle(struct scene *s)
{
    return PtlStartBundle(s->ni);
}

static int hpu_alloc(struct scene *s)
{
    ptl_handle_hpu_mem_t memory;
    return PtlHPUAllocMem(s->ni, 64, &memory);
}

static int hpu_free(struct scene *s)
{
    return PtlHPUFreeMem(s->memory);
}

static int hpu_write(struct scene *s)
{
    uint64_t value = 1;
    return PtlHPUWrite(s->memory, 0, &value, sizeof(value));
}

static int hpu_read(struct scene *s)
{
    return PtlHPURead(s->memory, 0, &fetched, sizeof(fetched));
}

static int activate(struct scene *s)
{
    return PtlHandlersActivate(s->me);
}

static int spin_counter(struct scene *s)
{
    ptl_spin_counter_t counter;
    return PtlSpinCounter(s->ni, 0, &counter);
}

static int spin_output(struct scene *s)
{
    char text[64];
    ptl_size_t printed = 0;
    return PtlSpinOutput(s->ni, 0, text, sizeof(text), &printed);
}

const struct act acts[] = {
    {"PtlEQWait", "found", IS_NI | IS_EQ, eq_wait, NULL, PTL_ARG_INVALID},
    {"PtlEQWait, about to wait", "waits", IS_NI | IS_EQ, eq_wait, NULL, PTL_ARG_INVALID},
    {"PtlEQGet", "found", IS_NI | IS_EQ, eq_get, NULL, PTL_EQ_EMPTY},
    {"PtlEQGet again", "remembered", IS_NI | IS_EQ, eq_get, look_eq, PTL_EQ_EMPTY},
    {"PtlEQPoll", "found", IS_NI | IS_EQ, eq_poll, NULL, PTL_ARG_INVALID},
    {"PtlEQPoll, about to wait", "waits", IS_NI | IS_EQ, eq_poll, NULL, PTL_ARG_INVALID},
    {"PtlEQPoll without time", "found", IS_NI | IS_EQ, eq_poll_now, NULL, PTL_EQ_EMPTY},
    {"PtlEQPoll again", "remembered", IS_NI | IS_EQ, eq_poll_now, look_eqs, PTL_EQ_EMPTY},
    {"PtlCTWait", "found", IS_NI | IS_CT, ct_wait, NULL, PTL_ARG_INVALID},
    {"PtlCTWait again", "remembered", IS_NI | IS_CT, ct_wait, look_ct, PTL_ARG_INVALID},
    {"PtlCTWait, about to wait", "waits", IS_NI | IS_CT, ct_wait, NULL, PTL_ARG_INVALID},
    {"PtlCTGet", "found", IS_NI | IS_CT, ct_get, NULL, PTL_ARG_INVALID},
    {"PtlCTGet again", "remembered", IS_NI | IS_CT, ct_get, look_ct, PTL_ARG_INVALID},
    {"PtlCTPoll", "found", IS_NI | IS_CT, ct_poll, NULL, PTL_ARG_INVALID},
    {"PtlCTPoll, about to wait", "waits", IS_NI | IS_CT, ct_poll, NULL, PTL_ARG_INVALID},
    {"PtlCTPoll without time", "found", IS_NI | IS_CT, ct_poll_now, NULL, PTL_CT_NONE_REACHED},
    {"PtlCTInc", "found", IS_NI | IS_CT, ct_inc, NULL, PTL_ARG_INVALID},
    {"PtlCTSet", "found", IS_NI | IS_CT, ct_set, NULL, PTL_ARG_INVALID},
    {"PtlCTFree", "found", IS_NI | IS_CT, ct_free, NULL, PTL_ARG_INVALID},
    {"PtlCTCancelTriggered", "found", IS_NI | IS_CT, ct_cancel, NULL, PTL_ARG_INVALID},
    {"PtlCTAlloc", "found", IS_NI, ct_alloc, NULL, PTL_ARG_INVALID},
    {"PtlEQAlloc", "found", IS_NI, eq_alloc, NULL, PTL_ARG_INVALID},
    {"PtlEQFree", "found", IS_NI | IS_EQ, eq_free, NULL, PTL_ARG_INVALID},
    {"PtlPut", "found", IS_NI | IS_MD, put, NULL, PTL_ARG_INVALID},
    {"PtlGet", "found", IS_NI | IS_MD, get, NULL, PTL_ARG_INVALID},
    {"PtlAtomic", "found", IS_NI | IS_MD, atomic, NULL, PTL_ARG_INVALID},
    {"PtlFetchAtomic", "found", IS_NI | IS_MD, fetch_atomic, NULL, PTL_ARG_INVALID},
    {"PtlSwap", "found", IS_NI | IS_MD, swap, NULL, PTL_ARG_INVALID},
    {"PtlTriggeredPut", "found", IS_NI | IS_MD | IS_CT, triggered_put, NULL, PTL_ARG_INVALID},
    {"PtlTriggeredCTInc", "found", IS_NI | IS_CT, triggered_inc, NULL, PTL_ARG_INVALID},
    {"PtlTriggeredMEAppend", "found", IS_NI | IS_CT, triggered_append, NULL, PTL_ARG_INVALID},
    {"PtlTriggeredMEUnlink", "found", IS_NI | IS_CT | IS_ME, triggered_unlink, NULL,
     PTL_ARG_INVALID},
    {"PtlMDBind", "found", IS_NI | IS_EQ, md_bind, NULL, PTL_ARG_INVALID},
    {"PtlMDRelease", "found", IS_NI | IS_MD, md_release, NULL, PTL_ARG_INVALID},
    {"PtlMEAppend", "found", IS_NI, me_append, NULL, PTL_ARG_INVALID},
    {"PtlMEAppend by a thread with the bias", "found", IS_NI, me_append, earn_bias,
     PTL_ARG_INVALID},
    {"PtlMEAppend, on its way back", "appended", IS_NI, me_append, NULL, PTL_OK},
    {"PtlMESearch", "found", IS_NI, me_search, NULL, PTL_ARG_INVALID},
    {"PtlMEUnlink", "found", IS_NI | IS_ME, me_unlink, NULL, PTL_ARG_INVALID},
    {"PtlPTAlloc", "found", IS_NI, pt_alloc, NULL, PTL_ARG_INVALID},
    {"PtlPTFree", "found", IS_NI, pt_free, NULL, PTL_ARG_INVALID},
    {"PtlPTDisable", "found", IS_NI, pt_disable, NULL, PTL_ARG_INVALID},
    {"PtlPTDisable, about to wait", "disabled", IS_NI, pt_disable, NULL, PTL_OK},
    {"PtlPTEnable", "found", IS_NI, pt_enable, NULL, PTL_ARG_INVALID},
    {"PtlNIStatus", "found", IS_NI, ni_status, NULL, PTL_ARG_INVALID},
    {"PtlGetPhysId", "found", IS_NI, get_id, NULL, PTL_OK},
    {"PtlNIHandle", "found", IS_NI | IS_EQ, ni_handle, NULL, PTL_ARG_INVALID},
    {"PtlStartBundle", "found", IS_NI, start_bundle, NULL, PTL_ARG_INVALID},
    {"PtlHPUAllocMem", "found", IS_NI, hpu_alloc, NULL, PTL_ARG_INVALID},
    {"PtlHPUFreeMem", "found", IS_NI | IS_HPU, hpu_free, NULL, PTL_ARG_INVALID},
    {"PtlHPUWrite", "found", IS_NI | IS_HPU, hpu_write, NULL, PTL_ARG_INVALID},
    {"PtlHPURead", "found", IS_NI | IS_HPU, hpu_read, NULL, PTL_ARG_INVALID},
    {"PtlHandlersActivate", "found", IS_NI | IS_ME, activate, NULL, PTL_ARG_INVALID},
    {"PtlSpinCounter", "found", IS_NI, spin_counter, NULL, PTL_OK},
    {"PtlPut in a full queue", "full", IS_NI, put_in_full, NULL, PTL_ARG_INVALID},
    {"PtlSpinOutput", "found", IS_NI, spin_output, NULL, PTL_OK},
    /* Ended by PtlAbort() before the first look, and between the last one and sleep. */
    {"PtlEQWait, about to look", "waits", IS_WAIT, eq_wait, NULL, PTL_ABORTED},
    {"PtlEQWait, about to sleep", "sleeps", IS_WAIT, eq_wait, NULL, PTL_ABORTED},
    {"PtlEQPoll, about to look", "waits", IS_WAIT, eq_poll, NULL, PTL_ABORTED},
    {"PtlEQPoll, about to sleep", "sleeps", IS_WAIT, eq_poll, NULL, PTL_ABORTED},
    {"PtlCTWait, about to look", "waits", IS_WAIT, ct_wait, NULL, PTL_ABORTED},
    {"PtlCTWait, about to sleep", "sleeps", IS_WAIT, ct_wait, NULL, PTL_ABORTED},
    {"PtlCTPoll, about to look", "waits", IS_WAIT, ct_poll, NULL, PTL_ABORTED},
    {"PtlCTPoll, about to sleep", "sleeps", IS_WAIT, ct_poll, NULL, PTL_ABORTED},
    {NULL, NULL, 0, NULL, NULL, PTL_ARG_INVALID},
};
