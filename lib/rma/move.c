/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets: on mapped memory (direct.c), else one message of Portals each, or several where
 * one may not be so long. */
#include "inside.h"

int put_send(struct operation *o, const void *from, size_t length, uint64_t offset)
{
    const struct pw_rma_key *key = o->key;
    const ptl_ni_limits_t *limits = &key->rail->limits;
    int rc = 0;
    for (uint64_t done = 0, n = 0; done < length && rc == 0; done += n) {
        n = least(length - done, limits->max_msg_size);
        rc = operation_message(o);
        if (rc == 0) {
            operation_sent(o,
                           PtlPut(o->md, (uintptr_t)from + done, n, PTL_ACK_REQ, key->is.id,
                                  key->is.pt, entry_bits(key->is.bits, ENTRY_PLAIN), offset + done,
                                  o->user_ptr, 0),
                           n > limits->max_volatile_size);
        }
    }
    return rc;
}

int get_send(struct operation *o, void *to, size_t length, uint64_t offset)
{
    const struct pw_rma_key *key = o->key;
    int rc = 0;
    for (uint64_t done = 0, n = 0; done < length && rc == 0; done += n) {
        n = least(length - done, key->rail->limits.max_msg_size);
        rc = operation_message(o);
        if (rc == 0) {
            operation_sent(o,
                           PtlGet(o->md, (uintptr_t)to + done, n, key->is.id, key->is.pt,
                                  entry_bits(key->is.bits, ENTRY_PLAIN), offset + done,
                                  o->user_ptr),
                           true);
        }
    }
    return rc;
}

int pw_rma_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset,
               struct pw_rma_request *request)
{
    struct operation o;
    int rc = operation_check(key, from, length, offset, PW_RMA_WRITE);
    if (rc != 0) {
        return rc;
    }
    if (direct_put(key, from, length, offset)) {
        request_over(key, request);
        return 0;
    }
    operation_begin(&o, key, request);
    rc = put_send(&o, from, length, offset);
    operation_begun(&o);
    return rc;
}

int pw_rma_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset,
               struct pw_rma_request *request)
{
    struct operation o;
    int rc = operation_check(key, to, length, offset, PW_RMA_READ);
    if (rc != 0) {
        return rc;
    }
    if (direct_get(key, to, length, offset)) {
        request_over(key, request);
        return 0;
    }
    operation_begin(&o, key, request);
    rc = get_send(&o, to, length, offset);
    operation_begun(&o);
    return rc;
}
