/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics at their target: the check of such a message, and its execution on the entry's memory. */
#include "nic/apply.h"

#include "nic/entry.h"

#include <errno.h>
#include <stdlib.h>

/* Whether an atomic message is sound: a legal operation on whole elements, in one packet. */
bool rx_atomic_sound(const struct rx *rx)
{
    const struct message *m = rx->m;
    bool fetch = m->type == MESSAGE_FETCH;
    bool legal = atomic_is_legal(ATOMIC_PLAIN, m->op, m->datatype) ||
                 (fetch && atomic_is_legal(ATOMIC_SWAP, m->op, m->datatype));
    if ((rx->class != FABRIC_REQUEST && !(fetch && rx->class == FABRIC_ASK)) || !legal ||
        m->ack > PTL_OC_ACK_REQ || fetch != (m->cookie != 0 && m->ack == PTL_NO_ACK_REQ)) {
        return false;
    }
    size_t operand = atomic_operand_size(m->op, m->datatype);
    size_t packet = rx->peer->nic->packet_size;
    return atomic_fits(m->length, m->op, m->datatype) && m->length <= packet &&
           m->length + operand <= packet &&
           (rx->f.length == m->length + operand || rx->f.length == 0);
}

/* Does an atomic on one element that begins in one part of the memory (PTL_IOVEC) and ends in
 * another. */
static int atomic_across(const struct memory *m, const uint8_t *data, const void *operand,
                         uint8_t *before, size_t size, ptl_op_t op, ptl_datatype_t type)
{
    uint8_t element[ATOMIC_OPERAND];
    if (memory_read(element, m, size) != 0 ||
        nic_atomic(element, data, operand, before, size, op, type) != 0) {
        return -EFAULT;
    }
    return memory_write(m, element, size);
}

/* Does nic_atomic() on memory in parts: the whole elements of each part at once, and one by one
 * those that lie across two parts. */
static int memory_atomic(const struct memory *m, const uint8_t *data, const void *operand,
                         uint8_t *before, size_t length, ptl_op_t op, ptl_datatype_t type)
{
    if (m->vector == NULL) {
        return nic_atomic(m->base, data, operand, before, length, op, type);
    }
    size_t size = atomic_size(type);
    struct vector_cursor cursor = {0, 0};
    for (size_t done = 0; done < length;) {
        struct memory at = {NULL, m->vector, m->skip + done};
        struct iovec piece;
        uint64_t n;
        if (vector_pieces(m->vector, &cursor, at.skip, length - done, &piece, 1, &n) != 1) {
            return -EFAULT;
        }
        uint8_t *old = before == NULL ? NULL : before + done;
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a header of no legal type is refused */
        size_t run = n - n % size;
        int rc = run != 0 ? nic_atomic(piece.iov_base, data + done, operand, old, run, op, type)
                          : atomic_across(&at, data + done, operand, old, size, op, type);
        if (rc != 0) {
            return rc;
        }
        done += run != 0 ? run : size;
    }
    return 0;
}

/* Does an atomic whose payload has come whole. */
void rx_apply(struct rx *rx, const uint8_t *payload)
{
    struct message *m = rx->m;
    size_t operand = atomic_operand_size(m->op, m->datatype);
    rx->applied = true;
    if (m->type == MESSAGE_FETCH && rx->before == NULL) {
        rx->before = malloc(rx->at.ni->nic->packet_size);
        if (rx->before == NULL) {
            rx->at.fail = PTL_NI_DROPPED;
            return;
        }
    }
    struct memory target = le_memory(rx->at.le, rx->at.offset);
    if (memory_atomic(&target, payload + operand, operand != 0 ? payload : NULL,
                      m->type == MESSAGE_FETCH ? rx->before : NULL, rx->at.mlength, m->op,
                      m->datatype) != 0) {
        rx->at.fail = PTL_NI_SEGV;
    }
}
