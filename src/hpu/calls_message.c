/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that handlers send, from their own memory or from that of their entry. Each call is
 * a row that describes its message. post() checks what all have in common, and the NIC checks the
 * rest. */
#include "hpu/calls.h"

#include <errno.h>

static int send(struct hpu_exec *exec, const char *name, const void *caller,
                const struct hpu_message *m)
{
    if (m->from_host && m->kind != HPU_GET) {
        (void)call_place_from(exec, name, caller, m->host_offset, m->length, PTL_ME_HOST_MEM);
    }
    if (m->from_host && (m->kind == HPU_GET || m->kind == HPU_FETCH)) {
        (void)call_place_from(exec, name, caller, m->before_offset, m->length, PTL_ME_HOST_MEM);
    }
    if (!m->from_host && m->length > exec->env.max_payload) {
        return PTL_ARG_INVALID;
    }
    return exec->env.ops->send(&exec->env, m);
}

/* Checks and sends a message. All calls share this body: it gets the name of the call and the
 * return address in its caller. */
static int post_from(struct hpu_message *m, const char *name, const void *caller)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    m->nowait = (m->ack & PTL_HANDLER_NOWAIT) != 0;
    m->ack &= (ptl_ack_req_t)~PTL_HANDLER_NOWAIT;
    int rc = send(exec, name, caller, m);
    if (rc == -EFAULT) {
        call_refuse_from(exec, name, caller, SEGV,
                         "what it sends, or where an answer goes, is not there");
    }
    call_leave_from(exec, name, caller);
    return rc;
}
#define post(m) post_from(m, __func__, __builtin_return_address(0))

#define ALL(...) __VA_ARGS__

/* SENDS() defines a call and its Ex variant, which also names the portal table entry. Its arguments
 * are the parameters before and behind that one, and the fields of the message that not all calls
 * have. */
#define SENDS(name, before, behind, ...)                                                           \
    int name(ALL before, ptl_process_t target_id, ALL behind)                                      \
    {                                                                                              \
        struct hpu_message m = {MESSAGE, .pt_inherited = 1, __VA_ARGS__};                          \
        return post(&m);                                                                           \
    }                                                                                              \
    int name##Ex(ALL before, ptl_process_t target_id, ptl_pt_index_t pt_index, ALL behind)         \
    {                                                                                              \
        struct hpu_message m = {MESSAGE, .pt_index = pt_index, __VA_ARGS__};                       \
        return post(&m);                                                                           \
    }
#define MESSAGE                                                                                    \
    .length = length, .target = target_id, .match_bits = match_bits, .remote_offset = remote_offset

/* Both the data that are sent and the answer's are in the entry's memory. */
#define FROM_HOST(offset, to) .from_host = 1, .host_offset = (offset), .before_offset = (to)
#define ATOMIC .op = operation, .datatype = datatype
#define SWAP .swap = true, .operand = operand, ATOMIC

SENDS(PtlHandlerPutFromDevice, (const void *local, ptl_size_t length, ptl_ack_req_t ack_req),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data),
      .kind = HPU_PUT, .local = local, .ack = ack_req, .user_ptr = user_ptr, .hdr_data = hdr_data)
SENDS(PtlHandlerPutFromHost, (ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data),
      .kind = HPU_PUT, FROM_HOST(offset, 0), .ack = ack_req, .user_ptr = user_ptr,
      .hdr_data = hdr_data)
SENDS(PtlHandlerGetToDevice, (void *local, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset), .kind = HPU_GET, .before = local,
      .ack = PTL_NO_ACK_REQ)
SENDS(PtlHandlerGetToHost, (ptl_size_t offset, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr), .kind = HPU_GET,
      FROM_HOST(0, offset), .ack = PTL_NO_ACK_REQ, .user_ptr = user_ptr)
SENDS(PtlHandlerAtomicFromDevice, (const void *local, ptl_size_t length, ptl_ack_req_t ack_req),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_ATOMIC, .local = local, .ack = ack_req, .user_ptr = user_ptr,
      .hdr_data = hdr_data, ATOMIC)
SENDS(PtlHandlerAtomicFromHost, (ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_ATOMIC, FROM_HOST(offset, 0), .ack = ack_req, .user_ptr = user_ptr,
      .hdr_data = hdr_data, ATOMIC)
SENDS(PtlHandlerFetchAtomicFromDevice, (void *before, const void *local, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
       ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_FETCH, .local = local, .before = before, .ack = PTL_NO_ACK_REQ,
      .hdr_data = hdr_data, ATOMIC)
SENDS(PtlHandlerFetchAtomicFromHost,
      (ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_FETCH, FROM_HOST(put_offset, get_offset), .ack = PTL_NO_ACK_REQ,
      .user_ptr = user_ptr, .hdr_data = hdr_data, ATOMIC)
SENDS(PtlHandlerSwapFromDevice, (void *before, const void *local, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
       const void *operand, ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_FETCH, .local = local, .before = before, .ack = PTL_NO_ACK_REQ,
      .hdr_data = hdr_data, SWAP)
SENDS(PtlHandlerSwapFromHost, (ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length),
      (ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
       ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation, ptl_datatype_t datatype),
      .kind = HPU_FETCH, FROM_HOST(put_offset, get_offset), .ack = PTL_NO_ACK_REQ,
      .user_ptr = user_ptr, .hdr_data = hdr_data, SWAP)
