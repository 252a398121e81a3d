/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an operation (answer.c): its ack, its reply, or that there will be none. */
#ifndef NIC_ANSWER_H
#define NIC_ANSWER_H

#include "nic/rx.h"

/* request_answered() posts and counts ACK or REPLY of a request at its initiator. */
void request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength,
                      uint64_t remote_offset, ptl_list_t list);
/* op_response() ends the operation that a response is for. */
void op_response(struct op *op, ptl_ni_fail_t fail, uint64_t mlength, uint64_t remote_offset,
                 bool silent, ptl_list_t list);
/* op_fail() ends an operation that will get no answer; op_end() frees one that has left and been
 * answered. */
void op_fail(struct op *op, ptl_ni_fail_t fail);
void op_end(struct op *op);
/* rx_op() returns the operation that a response is for, or NULL; response_end() ends that
 * operation. response_done() ends whatever the response is for: one operation, those of several
 * acks, or an ask that the peer withdraws. */
struct op *rx_op(struct rx *rx);
void response_end(const struct rx *rx, struct op *op, enum fabric_status status);
void response_done(struct rx *rx, enum fabric_status status);
/* acks_done() ends the operations that the acks of a peer name. It returns RX_GO: acks never
 * wait. */
enum rx_step acks_done(struct nic_peer *peer, const struct message_acks *acks);

#endif
