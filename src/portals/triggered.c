/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.16: triggered operations. */
#include "nic/quiet.h"
#include "portals/api.h"

#include <stdlib.h>

/* What the names of all calls of this file begin with. */
#define TRIGGERED "PtlTriggered..."

/* Finds the counter that triggers, which must be one of `ni`, and makes an operation for it; the
 * caller holds the lock. */
static int prepare(struct ni *ni, ptl_handle_ct_t handle, struct ct **ct, struct triggered **t)
{
    *ct = handle_kind(handle) == HANDLE_CT ? table_get(&ni->cts, handle) : NULL;
    if (*ct == NULL) {
        return api_refuse_call(TRIGGERED
                               " is refused: trig_ct_handle 0x%x names no counter of the interface "
                               "that the other arguments are of; PtlCTAlloc gives one",
                               handle);
    }
    *t = trigger_new(ni);
    return *t != NULL
               ? PTL_OK
               : api_refuse_space(TRIGGERED, "max_triggered_ops", ni->limits.max_triggered_ops);
}

/* Queues a triggered operation, which may fire at once; the caller holds the lock. */
static int arm(struct ct *ct, struct triggered *t, enum trigger_kind kind, ptl_size_t threshold)
{
    t->kind = kind;
    t->threshold = threshold;
    trigger_arm(ct, t);
    trigger_run(ct->ni->nic);
    return PTL_OK;
}

/* Queues a triggered data movement: arm(), after it has looked up what is known already, as for a
 * quiet one. */
static int arm_request(struct ni *ni, struct ct *ct, struct triggered *t, const struct request *r,
                       ptl_size_t threshold)
{
    t->request = *r;
    t->request.origin = FROM_TRIGGER;
    t->md = r->md;
    t->md->users++;
    t->fetches = r->kind == OP_FETCH;
    t->silent = request_is_silent(r);
    if (t->fetches) {
        r->get_md->users++;
    }
    t->quiet.epoch = 0;
    if (target_is_own(ni, r->target)) {
        quiet_make(ni, r, &t->quiet);
    }
    return arm(ct, t, TRIGGER_REQUEST, threshold);
}

static int start(struct request *r, const struct api_sides *sides, ptl_handle_ct_t trigger,
                 ptl_size_t threshold)
{
    struct ni *ni;
    if (api_ni(sides->md, &ni) != PTL_OK) {
        return api_refuse_handle(r, sides->md);
    }
    struct ct *ct;
    struct triggered *t;
    nic_lock(ni->nic);
    int rc = api_request(ni, r, sides)
                 ?: prepare(ni, trigger, &ct, &t) ?: arm_request(ni, ct, t, r, threshold);
    return api_unlock(ni, rc);
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct request r;
    api_fill(&r, OP_PUT, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr,
             hdr_data, 0, 0);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return start(&r, &sides, trig_ct_handle, threshold);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold)
{
    struct request r;
    api_fill(&r, OP_GET, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, 0, 0, 0);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return start(&r, &sides, trig_ct_handle, threshold);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                       ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct request r;
    api_fill(&r, OP_ATOMIC, length, ack_req, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return start(&r, &sides, trig_ct_handle, threshold);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                            ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                            ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct request r;
    api_fill(&r, OP_FETCH, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    int rc = api_check_fetch(&r, ATOMIC_FETCH, NULL, put_md_handle);
    struct api_sides sides = {put_md_handle, local_put_offset, get_md_handle, local_get_offset};
    return rc == PTL_OK ? start(&r, &sides, trig_ct_handle, threshold) : rc;
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                     ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                     ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                     ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                     const void *operand, ptl_op_t operation, ptl_datatype_t datatype,
                     ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct request r;
    api_fill(&r, OP_FETCH, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    int rc = api_check_fetch(&r, ATOMIC_SWAP, operand, put_md_handle);
    struct api_sides sides = {put_md_handle, local_put_offset, get_md_handle, local_get_offset};
    return rc == PTL_OK ? start(&r, &sides, trig_ct_handle, threshold) : rc;
}

static int change(ptl_handle_ct_t ct_handle, enum trigger_kind kind, ptl_ct_event_t value,
                  ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    const char *call = kind == TRIGGER_CT_INC ? "PtlTriggeredCTInc" : "PtlTriggeredCTSet";
    if (kind == TRIGGER_CT_INC && value.success != 0 && value.failure != 0) {
        return api_refuse_increment(call, ct_handle, value);
    }
    struct ni *ni;
    struct ct *ct, *trigger;
    int rc = api_lock_object(call, ct_handle, HANDLE_CT, &ni, &ct);
    if (rc != PTL_OK) {
        return rc;
    }
    struct triggered *t;
    rc = prepare(ni, trig_ct_handle, &trigger, &t);
    if (rc == PTL_OK) {
        t->ct = (struct ct_ref){ct, ct_handle};
        t->value = value;
        rc = arm(trigger, t, kind, threshold);
    }
    return api_unlock(ni, rc);
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    return change(ct_handle, TRIGGER_CT_INC, increment, trig_ct_handle, threshold);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
                      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    return change(ct_handle, TRIGGER_CT_SET, new_ct, trig_ct_handle, threshold);
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                         ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
                         ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct ni *ni;
    struct le_setup setup = {.me = me, .matching = true, .list = ptl_list, .user_ptr = user_ptr};
    struct triggered *t;
    struct le *le = NULL;
    struct ct *ct;
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = me == NULL || me_handle == NULL ? api_refuse_entry(__func__, &setup, me_handle)
                                         : api_check_entry(__func__, ni, pt_index, &setup);
    if (rc == PTL_OK && (le = le_new(ni, pt_index, &setup)) == NULL) {
        rc = api_refuse_space(__func__, "max_entries", ni->limits.max_entries);
    }
    if (le == NULL) {
        free((void *)setup.vector.parts);
    } else if ((rc = prepare(ni, trig_ct_handle, &ct, &t)) != PTL_OK) {
        le_free(le);
    } else {
        *me_handle = le->slot.handle;
        le->awaited = true;
        t->le = le;
        rc = arm(ct, t, TRIGGER_APPEND, threshold);
    }
    return api_unlock(ni, rc);
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold)
{
    struct ni *ni;
    struct le *le;
    struct ct *ct;
    struct triggered *t;
    int rc = api_lock_object(__func__, me_handle, HANDLE_LE, &ni, &le);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = ni_is_matching(ni)
             ? prepare(ni, trig_ct_handle, &ct, &t)
             : api_refuse_call("PtlTriggeredMEUnlink is refused: me_handle 0x%x is of an interface "
                               "with PTL_NI_NO_MATCHING",
                               me_handle);
    if (rc == PTL_OK) {
        t->le = le;
        t->le_handle = me_handle;
        rc = arm(ct, t, TRIGGER_UNLINK, threshold);
    }
    return api_unlock(ni, rc);
}
