/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.15: atomic operations. */
#include "nic/atomic.h"
#include "base/nic_copy.h"
#include "portals/api.h"

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
              ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
              ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
{
    struct request r;
    api_fill(&r, OP_ATOMIC, length, ack_req, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return api_start(&r, &sides);
}

int api_check_fetch(const struct request *r, ptl_handle_md_t put_md)
{
    struct ni *ni;
    int rc = api_ni(put_md, &ni);
    if (rc == PTL_OK && !atomic_is_legal(ATOMIC_FETCH, r->op, r->datatype)) {
        rc = PTL_ARG_INVALID;
    }
    return rc;
}

int api_operand(struct request *r, const void *operand, ptl_handle_md_t put_md)
{
    struct ni *ni;
    int rc = api_ni(put_md, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (!atomic_is_legal(ATOMIC_SWAP, r->op, r->datatype)) {
        return PTL_ARG_INVALID;
    }
    size_t size = atomic_operand_size(r->op, r->datatype);
    if (size == 0) {
        return PTL_OK;
    }
    return operand != NULL && nic_copy(r->operand, operand, size) == 0 ? PTL_OK : PTL_ARG_INVALID;
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                   ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype)
{
    struct request r;
    api_fill(&r, OP_FETCH, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    int rc = api_check_fetch(&r, put_md_handle);
    struct api_sides sides = {put_md_handle, local_put_offset, get_md_handle, local_get_offset};
    return rc == PTL_OK ? api_start(&r, &sides) : rc;
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
            ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
            ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
            ptl_op_t operation, ptl_datatype_t datatype)
{
    struct request r;
    api_fill(&r, OP_FETCH, length, PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    int rc = api_operand(&r, operand, put_md_handle);
    struct api_sides sides = {put_md_handle, local_put_offset, get_md_handle, local_get_offset};
    return rc == PTL_OK ? api_start(&r, &sides) : rc;
}

int PtlAtomicSync(void)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    /* Atomics are done by processors: whoever saw one complete needs but an order. */
    atomic_thread_fence(memory_order_seq_cst);
    return PTL_OK;
}
