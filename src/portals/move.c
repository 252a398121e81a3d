/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.15: data movement. */
#include "nic/initiate.h"
#include "nic/peer.h"
#include "nic/wait.h"
#include "portals/api.h"

static inline __attribute__((always_inline)) bool side_sound(const struct request *r,
                                                             const struct md *md, ptl_size_t offset)
{
    return md != NULL && offset <= md->length && r->length <= md->length - offset;
}

/* Returns the MD that a handle names, or NULL; the handle may be any number, or one of another
 * kind. */
static inline struct md *find_md(struct ni *ni, ptl_handle_md_t handle)
{
    return table_get(&ni->mds, handle);
}

/* Completes the request of an atomic. Apart from api_request(), where it would slow down every
 * put. */
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

/* Completes and checks a request, but for its target. `kind` is r->kind, passed by itself as the
 * compiler may know it as a constant. */
static inline __attribute__((always_inline)) int
request_of(struct ni *ni, struct request *r, enum op_kind kind, const struct api_sides *sides)
{
    struct md *md = find_md(ni, sides->md);
    if (unlikely(!side_sound(r, md, sides->offset) || !request_fits(ni, r) ||
                 r->ack >= ACK_REQUESTS)) {
        return PTL_ARG_INVALID;
    }
    r->ack = md->ack_as[r->ack];
    if (unlikely(r->ack == ACK_NEVER)) {
        return PTL_ARG_INVALID;
    }
    if (kind >= OP_ATOMIC && !complete_atomic(ni, r, sides)) {
        return PTL_ARG_INVALID;
    }
    r->md = md;
    r->memory = memory_of(md->start, &md->vector, sides->offset);
    return PTL_OK;
}

int api_request(struct ni *ni, struct request *r, const struct api_sides *sides)
{
    int rc = request_of(ni, r, r->kind, sides);
    return rc != PTL_OK || !target_sound(ni, r->target) ? api_refuse(ni, r, sides) : PTL_OK;
}

static bool has_place(void *arg)
{
    return nic_has_place(arg);
}

/* Starts an operation once the queue of the program has a place. The caller holds the lock; while
 * the function waits it does not, so it checks the request again. */
static int start_later(struct ni *ni, struct request *r, const struct api_sides *sides)
{
    struct nic *nic = ni->nic;
    while (!nic_has_place(nic)) {
        nic_unlock(nic);
        PAUSE_POINT("full");
        int rc;
        do {
            rc = ni_wait_abort(ni, has_place, nic, -1, PTL_FAIL);
        } while (rc == PTL_ABORTED);
        nic_lock(nic);
        rc = rc == PTL_OK ? api_request(ni, r, sides) : rc;
        if (rc != PTL_OK) {
            return rc;
        }
    }
    return nic_request(ni, r);
}

/* Starts a request that submit() did not take. */
static __attribute__((noinline)) int start_other(struct ni *ni, struct request *r,
                                                 const struct api_sides *sides)
{
    if (!target_sound(ni, r->target)) {
        /* submit() need not check the target, as it only takes known peers */
        return api_refuse(ni, r, sides);
    }
    if (request_expects(r) && nic_has_place(ni->nic)) {
        /* of requests with an answer only those to oneself could end in nic_request_now() */
        return nic_request(ni, r);
    }
    return nic_request_now(ni, r) ? PTL_OK : start_later(ni, r, sides);
}

static inline __attribute__((always_inline)) int start(struct request *r, enum op_kind kind,
                                                       const struct api_sides *sides)
{
    /* Not tested for NULL: before PtlInit() and after PtlFini() there are no NIs, so the handle
     * names none. */
    struct process *p = process_current();
    struct ni *ni = NULL;
    if (likely(p != NULL)) {
        ni = __atomic_load_n(&p->nis[handle_ni(sides->md)], __ATOMIC_ACQUIRE);
    }
    if (unlikely(ni == NULL)) {
        struct request whole = *r;
        return api_refuse_handle(&whole, sides->md);
    }
    struct nic *nic = ni->nic;
    PAUSE_POINT("found");
    nic_take_over(nic);
    nic_lock(nic);
    int rc = request_of(ni, r, kind, sides);
    if (likely(rc == PTL_OK)) {
        struct nic_peer *peer = peer_met(ni, r->target);
        if (unlikely(peer == NULL || !submit(nic, ni, peer, r, true))) {
            /* a copy, as r itself must not have its address taken, to stay in registers */
            struct request whole = *r;
            struct api_sides both = *sides;
            rc = start_other(ni, &whole, &both);
        }
    } else {
        struct request whole = *r;
        struct api_sides both = *sides;
        rc = api_refuse(ni, &whole, &both);
    }
    trigger_run(nic); /* SEND may have counted, and reached thresholds */
    nic_unlock(nic);
    return rc;
}

int api_start(struct request *r, const struct api_sides *sides)
{
    return start(r, r->kind, sides);
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
    return start(&r, OP_PUT, &sides);
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
           ptl_size_t remote_offset, void *user_ptr)
{
    struct request r;
    api_fill(&r, OP_GET, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, 0, 0, 0);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return start(&r, OP_GET, &sides);
}
