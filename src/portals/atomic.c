/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.15: atomic operations. */
#include "base/nic_copy.h"
#include "base/paths.h"
#include "nic/quiet.h"
#include "portals/api.h"

/* Returns the source of an atomic if its MD is in one piece and the program hears of the operation
 * by nothing; else NULL. */
static inline const void *find_word(const struct ni *ni, ptl_handle_md_t handle, ptl_size_t offset,
                                    ptl_size_t length)
{
    const struct md *md = handle_kind(handle) == HANDLE_MD ? table_get(&ni->mds, handle) : NULL;
    bool may = md != NULL && offset <= md->length && length <= md->length - offset &&
               md->vector.parts == NULL && md_is_silent(md);
    return may ? memory_at(md->start, offset) : NULL;
}

/* Carries out an atomic of one instruction on oneself, if it is quiet (quiet.h). False: nothing was
 * done. The caller holds the lock. */
static inline bool done_quietly(struct ni *ni, const void *from, ptl_size_t length,
                                ptl_pt_index_t pt_index, nic_word_raw *instruction,
                                ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
    struct quiet q = {.from = from};
    if (unlikely(from == NULL || ni_pt(ni, pt_index) == NULL)) {
        return false;
    }
    const struct le *le = quiet_find(ni, pt_index, match_bits);
    if (unlikely(le == NULL || !quiet_set(&q, le, length, remote_offset))) {
        return false;
    }
    q.deed.kind = OP_ATOMIC;
    q.deed.instruction = instruction;
    if (likely(atomic_is_aligned(q.deed.to, length) && quiet_is_good(ni, &q)) &&
        quiet_send(ni->nic, &q)) {
        COUNT_PATH(self_atomic);
        return true;
    }
    return false;
}

/* Carries out a quiet atomic without a request. Not inlined, so that PtlAtomic() keeps the
 * arguments for other atomics in their registers. */
static __attribute__((noinline)) bool
done_at_once(struct ni *ni, ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
             ptl_pt_index_t pt_index, nic_word_raw *instruction, ptl_match_bits_t match_bits,
             ptl_size_t remote_offset)
{
    struct nic *nic = ni->nic;
    nic_take_over(nic);
    nic_lock(nic);
    const void *from = find_word(ni, md_handle, local_offset, length);
    bool done = done_quietly(ni, from, length, pt_index, instruction, match_bits, remote_offset);
    trigger_run(nic);
    nic_unlock(nic);
    return done;
}

/* Starts an atomic of any other kind, as an operation. */
static __attribute__((noinline)) int start(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                                           ptl_size_t length, ptl_ack_req_t ack_req,
                                           ptl_process_t target_id, ptl_pt_index_t pt_index,
                                           ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                           void *user_ptr, ptl_hdr_data_t hdr_data,
                                           ptl_op_t operation, ptl_datatype_t datatype)
{
    struct request r;
    api_fill(&r, OP_ATOMIC, length, ack_req, target_id, pt_index, match_bits, remote_offset,
             user_ptr, hdr_data, operation, datatype);
    struct api_sides sides = {.md = md_handle, .offset = local_offset};
    return api_start(&r, &sides);
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
              ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
              ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
{
    struct ni *ni;
    nic_word_raw *instruction = atomic_instruction(operation, datatype, length);
    if (ack_req == PTL_NO_ACK_REQ && instruction != NULL && api_ni(md_handle, &ni) == PTL_OK &&
        target_is_own(ni, target_id) && /* the length of one word is within any max_atomic_size */
        likely(done_at_once(ni, md_handle, local_offset, length, pt_index, instruction, match_bits,
                            remote_offset))) {
        return PTL_OK;
    }
    return start(md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits,
                 remote_offset, user_ptr, hdr_data, operation, datatype);
}

int api_check_fetch(struct request *r, enum atomic_call call, const void *operand,
                    ptl_handle_md_t put_md)
{
    struct ni *ni;
    if (api_ni(put_md, &ni) != PTL_OK) {
        return api_refuse_handle(r, put_md);
    }
    if (!atomic_is_legal(call, r->op, r->datatype)) {
        return api_refuse_operation(r, call);
    }
    size_t size = atomic_operand_size(r->op, r->datatype);
    return size == 0 || (operand != NULL && nic_copy(r->operand, operand, size) == 0)
               ? PTL_OK
               : api_refuse_operand(r);
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
    int rc = api_check_fetch(&r, ATOMIC_FETCH, NULL, put_md_handle);
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
    int rc = api_check_fetch(&r, ATOMIC_SWAP, operand, put_md_handle);
    struct api_sides sides = {put_md_handle, local_put_offset, get_md_handle, local_get_offset};
    return rc == PTL_OK ? api_start(&r, &sides) : rc;
}

int PtlAtomicSync(void)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    /* Processors do the atomics themselves: a thread that has seen one complete only needs an
     * order. */
    atomic_thread_fence(memory_order_seq_cst);
    return PTL_OK;
}
