/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.16: triggered operations. */
#include "portals/api.h"

/* Makes a triggered operation and queues it; the lock is held and the counter
 * is of `ni`. */
static int arm(struct ni *ni, struct ct *ct, const struct triggered *what)
{
    struct triggered *t = table_add(&ni->triggered);
    if (t == NULL) {
        return PTL_NO_SPACE;
    }
    t->ni = ni;
    t->threshold = what->threshold;
    t->kind = what->kind;
    t->request = what->request;
    t->ct = what->ct;
    t->increment = what->increment;
    if (t->kind == TRIGGER_REQUEST) {
        t->request.origin = FROM_TRIGGER;
        t->request.md->users++;
    }
    trigger_arm(ct, t);
    trigger_run(ni->nic);
    return PTL_OK;
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct ni *ni, *ct_ni;
    int rc = api_ni(md_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct ct *ct;
    struct nic *nic = ni->nic;
    struct triggered t = {
        .kind = TRIGGER_REQUEST,
        .threshold = threshold,
        .request = {.kind = OP_PUT,
                    .length = length,
                    .ack = ack_req,
                    .target = target_id,
                    .pt_index = pt_index,
                    .match_bits = match_bits,
                    .remote_offset = remote_offset,
                    .hdr_data = hdr_data,
                    .user_ptr = user_ptr},
    };
    nic_lock(nic);
    rc = api_request(ni, &t.request, md_handle, local_offset);
    if (rc == PTL_OK) {
        rc = api_object(trig_ct_handle, HANDLE_CT, &ct_ni, &ct);
    }
    if (rc == PTL_OK) {
        rc = ct_ni == ni ? arm(ni, ct, &t) : PTL_ARG_INVALID;
    }
    nic_unlock(nic);
    return rc;
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
    struct ni *ni, *trigger_ni;
    int rc = api_ni(ct_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (increment.success != 0 && increment.failure != 0) {
        return PTL_ARG_INVALID;
    }
    struct ct *ct, *trigger;
    struct nic *nic = ni->nic;
    nic_lock(nic);
    rc = api_object(ct_handle, HANDLE_CT, &ni, &ct);
    if (rc == PTL_OK) {
        rc = api_object(trig_ct_handle, HANDLE_CT, &trigger_ni, &trigger);
    }
    if (rc == PTL_OK) {
        struct triggered t = {
            .kind = TRIGGER_CT_INC,
            .threshold = threshold,
            .ct = {ct, ct_handle},
            .increment = increment,
        };
        rc = trigger_ni == ni ? arm(ni, trigger, &t) : PTL_ARG_INVALID;
    }
    nic_unlock(nic);
    return rc;
}
