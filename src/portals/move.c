/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.15: data movement. */
#include "portals/api.h"

int api_request(struct ni *ni, struct request *r, ptl_handle_md_t md_handle,
                ptl_size_t local_offset)
{
    struct md *md = handle_kind(md_handle) == HANDLE_MD ? table_get(&ni->mds, md_handle) : NULL;
    if (md == NULL || local_offset > md->length || r->length > md->length - local_offset ||
        !request_sound(ni, r, md->eq, md->ct)) {
        return PTL_ARG_INVALID;
    }
    r->md = md;
    r->base = memory_at(md->start, local_offset);
    return PTL_OK;
}

static bool has_place(void *arg)
{
    return nic_has_place(arg, FROM_PROGRAM);
}

/* Starts an operation, after the queue has room for it. The lock is held, but for
 * while it waits: then all may have changed. */
static int start_later(struct ni *ni, struct request *r, ptl_handle_md_t md_handle,
                       ptl_size_t local_offset)
{
    struct nic *nic = ni->nic;
    while (!nic_has_place(nic, FROM_PROGRAM)) {
        nic_unlock(nic);
        nic_wait(nic, has_place, nic, -1);
        nic_lock(nic);
        int rc = api_ni(md_handle, &ni);
        rc = rc == PTL_OK ? api_request(ni, r, md_handle, local_offset) : rc;
        if (rc != PTL_OK) {
            return rc;
        }
    }
    return nic_request(ni, r);
}

static int start(struct request *r, ptl_handle_md_t md_handle, ptl_size_t local_offset)
{
    struct ni *ni;
    int rc = api_ni(md_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct nic *nic = ni->nic;
    nic_take_over(nic);
    nic_lock(nic);
    rc = api_request(ni, r, md_handle, local_offset);
    if (rc == PTL_OK && !nic_request_now(ni, r)) {
        rc = start_later(ni, r, md_handle, local_offset);
    }
    trigger_run(nic); /* SEND may have counted */
    nic_unlock(nic);
    return rc;
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
           ptl_hdr_data_t hdr_data)
{
    struct request r; /* no initializer: clearing all of it first costs more than the rest */
    r.kind = OP_PUT;
    r.origin = FROM_PROGRAM;
    r.length = length;
    r.ack = ack_req;
    r.target = target_id;
    r.pt_index = pt_index;
    r.match_bits = match_bits;
    r.remote_offset = remote_offset;
    r.hdr_data = hdr_data;
    r.user_ptr = user_ptr;
    r.eq = (struct eq_ref){NULL, 0};
    r.owned = NULL;
    return start(&r, md_handle, local_offset);
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
           ptl_size_t remote_offset, void *user_ptr)
{
    struct request r = {
        .kind = OP_GET,
        .origin = FROM_PROGRAM,
        .length = length,
        .target = target_id,
        .pt_index = pt_index,
        .match_bits = match_bits,
        .remote_offset = remote_offset,
        .user_ptr = user_ptr,
    };
    return start(&r, md_handle, local_offset);
}
