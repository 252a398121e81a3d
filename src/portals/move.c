/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.15: data movement. */
#include "portals/api.h"

static bool side_sound(const struct request *r, const struct md *md, ptl_size_t offset)
{
    return md != NULL && offset <= md->length && r->length <= md->length - offset;
}

static struct md *find_md(struct ni *ni, ptl_handle_md_t handle)
{
    return handle_kind(handle) == HANDLE_MD ? table_get(&ni->mds, handle) : NULL;
}

/* Apart from api_request(): what only atomics need would slow down every put. */
__attribute__((noinline)) static bool complete_atomic(struct ni *ni, struct request *r,
                                                      const struct api_sides *sides)
{
    if (!request_atomic_sound(ni, r, r->kind == OP_FETCH && r->op >= PTL_SWAP)) {
        return false;
    }
    if (r->kind == OP_FETCH) {
        r->get_md = find_md(ni, sides->get_md);
        if (!side_sound(r, r->get_md, sides->get_offset)) {
            return false;
        }
        r->get_memory = memory_of(r->get_md->start, &r->get_md->vector, sides->get_offset);
    }
    return true;
}

static inline __attribute__((always_inline)) int request_of(struct ni *ni, struct request *r,
                                                            const struct api_sides *sides)
{
    struct md *md = find_md(ni, sides->md);
    if (rare(!side_sound(r, md, sides->offset) || !request_sound(ni, r, md->eq, md->ct))) {
        return PTL_ARG_INVALID;
    }
    if (rare(r->ack == PTL_ACK_REQ && (md->options & PTL_MD_UNRELIABLE) != 0)) {
        return PTL_ARG_INVALID;
    }
    if (r->kind >= OP_ATOMIC && !complete_atomic(ni, r, sides)) {
        return PTL_ARG_INVALID;
    }
    if (r->ack >= PTL_CT_ACK_REQ && (md->options & PTL_MD_EVENT_CT_ACK) == 0) {
        r->ack = PTL_NO_ACK_REQ; /* nobody would see it, and the MD need not wait for it */
    }
    r->md = md;
    r->memory = memory_of(md->start, &md->vector, sides->offset);
    return PTL_OK;
}

int api_request(struct ni *ni, struct request *r, const struct api_sides *sides)
{
    return request_of(ni, r, sides);
}

static bool has_place(void *arg)
{
    return nic_has_place(arg, FROM_PROGRAM);
}

/* Starts an operation, after the queue has room for it. The lock is held, but for
 * while it waits: then all may have changed. */
static int start_later(struct ni *ni, struct request *r, const struct api_sides *sides)
{
    struct nic *nic = ni->nic;
    while (!nic_has_place(nic, FROM_PROGRAM)) {
        nic_unlock(nic);
        nic_wait(nic, has_place, nic, -1);
        nic_lock(nic);
        int rc = api_ni(sides->md, &ni);
        rc = rc == PTL_OK ? api_request(ni, r, sides) : rc;
        if (rc != PTL_OK) {
            return rc;
        }
    }
    return nic_request(ni, r);
}

int api_start(struct request *r, const struct api_sides *sides)
{
    struct ni *ni;
    int rc = api_ni(sides->md, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    struct nic *nic = ni->nic;
    nic_take_over(nic);
    nic_lock(nic);
    rc = request_of(ni, r, sides);
    if (usual(rc == PTL_OK) && request_expects(r) && usual(nic_has_place(nic, FROM_PROGRAM))) {
        rc = nic_request(ni, r); /* the usual case: only one to oneself could end at once */
    } else if (rc == PTL_OK && !nic_request_now(ni, r)) {
        rc = start_later(ni, r, sides);
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
    struct request r;
    api_fill(&r, OP_PUT, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr,
             hdr_data, 0, 0);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return api_start(&r, &sides);
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
           ptl_size_t remote_offset, void *user_ptr)
{
    struct request r;
    api_fill(&r, OP_GET, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, 0, 0, 0);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return api_start(&r, &sides);
}
