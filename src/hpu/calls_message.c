/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages that handlers send, from their own memory or from that of their entry. Each call
 * describes its message; what all have in common is checked in post(), and the rest by the NIC.
 */
#include "hpu/calls.h"

#include <errno.h>

static struct hpu_message envelope(enum hpu_message_kind kind, ptl_size_t length,
                                   ptl_ack_req_t ack_req, ptl_process_t target_id,
                                   ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                   void *user_ptr, ptl_hdr_data_t hdr_data)
{
    return (struct hpu_message){.kind = kind,
                                .length = length,
                                .ack = ack_req,
                                .target = target_id,
                                .pt_inherited = 1,
                                .match_bits = match_bits,
                                .remote_offset = remote_offset,
                                .user_ptr = user_ptr,
                                .hdr_data = hdr_data};
}

static void to_index(struct hpu_message *m, ptl_pt_index_t pt_index)
{
    m->pt_inherited = 0;
    m->pt_index = pt_index;
}

/* All of its memory is the entry's. */
static void from_host(struct hpu_message *m, ptl_size_t offset, ptl_size_t before_offset)
{
    m->from_host = 1;
    m->host_offset = offset;
    m->before_offset = before_offset;
}

static void atomic(struct hpu_message *m, ptl_op_t op, ptl_datatype_t datatype)
{
    m->op = op;
    m->datatype = datatype;
}

static void swap(struct hpu_message *m, const void *operand, ptl_op_t op, ptl_datatype_t datatype)
{
    m->swap = true;
    m->operand = operand;
    atomic(m, op, datatype);
}

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

/* One copy is enough for all of them, so it is told who called which. */
static int post_from(const struct hpu_message *m, const char *name, const void *caller)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = send(exec, name, caller, m);
    if (rc == -EFAULT) {
        call_refuse_from(exec, name, caller, SEGV,
                         "what it sends, or where an answer goes, is not there");
    }
    call_leave_from(exec, name, caller);
    return rc;
}
#define post(m) post_from(m, __func__, __builtin_return_address(0))

int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                            ptl_process_t target_id, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data)
{
    struct hpu_message m = envelope(HPU_PUT, length, ack_req, target_id, match_bits, remote_offset,
                                    user_ptr, hdr_data);
    m.local = local;
    return post(&m);
}

int PtlHandlerPutFromDeviceEx(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                              ptl_process_t target_id, ptl_pt_index_t pt_index,
                              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                              ptl_hdr_data_t hdr_data)
{
    struct hpu_message m = envelope(HPU_PUT, length, ack_req, target_id, match_bits, remote_offset,
                                    user_ptr, hdr_data);
    to_index(&m, pt_index);
    m.local = local;
    return post(&m);
}

int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                          ptl_process_t target_id, ptl_match_bits_t match_bits,
                          ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data)
{
    struct hpu_message m = envelope(HPU_PUT, length, ack_req, target_id, match_bits, remote_offset,
                                    user_ptr, hdr_data);
    from_host(&m, offset, 0);
    return post(&m);
}

int PtlHandlerPutFromHostEx(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                            ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data)
{
    struct hpu_message m = envelope(HPU_PUT, length, ack_req, target_id, match_bits, remote_offset,
                                    user_ptr, hdr_data);
    to_index(&m, pt_index);
    from_host(&m, offset, 0);
    return post(&m);
}

int PtlHandlerGetToDevice(void *local, ptl_size_t length, ptl_process_t target_id,
                          ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
    struct hpu_message m =
        envelope(HPU_GET, length, PTL_NO_ACK_REQ, target_id, match_bits, remote_offset, NULL, 0);
    m.before = local;
    return post(&m);
}

int PtlHandlerGetToDeviceEx(void *local, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset)
{
    struct hpu_message m =
        envelope(HPU_GET, length, PTL_NO_ACK_REQ, target_id, match_bits, remote_offset, NULL, 0);
    to_index(&m, pt_index);
    m.before = local;
    return post(&m);
}

int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                        ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr)
{
    struct hpu_message m = envelope(HPU_GET, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, 0);
    from_host(&m, 0, offset);
    return post(&m);
}

int PtlHandlerGetToHostEx(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                          ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                          ptl_size_t remote_offset, void *user_ptr)
{
    struct hpu_message m = envelope(HPU_GET, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, 0);
    to_index(&m, pt_index);
    from_host(&m, 0, offset);
    return post(&m);
}

int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                               ptl_process_t target_id, ptl_match_bits_t match_bits,
                               ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                               ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_ATOMIC, length, ack_req, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    m.local = local;
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerAtomicFromDeviceEx(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                                 ptl_process_t target_id, ptl_pt_index_t pt_index,
                                 ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                 void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                 ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_ATOMIC, length, ack_req, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    to_index(&m, pt_index);
    m.local = local;
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                             ptl_process_t target_id, ptl_match_bits_t match_bits,
                             ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                             ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_ATOMIC, length, ack_req, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    from_host(&m, offset, 0);
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerAtomicFromHostEx(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                               ptl_process_t target_id, ptl_pt_index_t pt_index,
                               ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                               void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                               ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_ATOMIC, length, ack_req, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    to_index(&m, pt_index);
    from_host(&m, offset, 0);
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerFetchAtomicFromDevice(void *before, const void *local, ptl_size_t length,
                                    ptl_process_t target_id, ptl_match_bits_t match_bits,
                                    ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                    ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, NULL, hdr_data);
    m.local = local;
    m.before = before;
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerFetchAtomicFromDeviceEx(void *before, const void *local, ptl_size_t length,
                                      ptl_process_t target_id, ptl_pt_index_t pt_index,
                                      ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                      ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                      ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, NULL, hdr_data);
    to_index(&m, pt_index);
    m.local = local;
    m.before = before;
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerFetchAtomicFromHost(ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length,
                                  ptl_process_t target_id, ptl_match_bits_t match_bits,
                                  ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                  ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    from_host(&m, put_offset, get_offset);
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerFetchAtomicFromHostEx(ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length,
                                    ptl_process_t target_id, ptl_pt_index_t pt_index,
                                    ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                    void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                    ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    to_index(&m, pt_index);
    from_host(&m, put_offset, get_offset);
    atomic(&m, operation, datatype);
    return post(&m);
}

int PtlHandlerSwapFromDevice(void *before, const void *local, ptl_size_t length,
                             ptl_process_t target_id, ptl_match_bits_t match_bits,
                             ptl_size_t remote_offset, ptl_hdr_data_t hdr_data, const void *operand,
                             ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, NULL, hdr_data);
    m.local = local;
    m.before = before;
    swap(&m, operand, operation, datatype);
    return post(&m);
}

int PtlHandlerSwapFromDeviceEx(void *before, const void *local, ptl_size_t length,
                               ptl_process_t target_id, ptl_pt_index_t pt_index,
                               ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                               ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation,
                               ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, NULL, hdr_data);
    to_index(&m, pt_index);
    m.local = local;
    m.before = before;
    swap(&m, operand, operation, datatype);
    return post(&m);
}

int PtlHandlerSwapFromHost(ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length,
                           ptl_process_t target_id, ptl_match_bits_t match_bits,
                           ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                           const void *operand, ptl_op_t operation, ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    from_host(&m, put_offset, get_offset);
    swap(&m, operand, operation, datatype);
    return post(&m);
}

int PtlHandlerSwapFromHostEx(ptl_size_t get_offset, ptl_size_t put_offset, ptl_size_t length,
                             ptl_process_t target_id, ptl_pt_index_t pt_index,
                             ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                             ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation,
                             ptl_datatype_t datatype)
{
    struct hpu_message m = envelope(HPU_FETCH, length, PTL_NO_ACK_REQ, target_id, match_bits,
                                    remote_offset, user_ptr, hdr_data);
    to_index(&m, pt_index);
    from_host(&m, put_offset, get_offset);
    swap(&m, operand, operation, datatype);
    return post(&m);
}
