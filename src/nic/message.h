/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a message between NICs. Fabrics carry it without a look into it; it is the same on
 * each. A peer has filled in its fields: check them before use. */
#ifndef NIC_MESSAGE_H
#define NIC_MESSAGE_H

#include "base/branch.h"
#include "fabric/fabric.h"
#include "spin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum message_type {
    MESSAGE_PUT = 1,
    MESSAGE_GET,
    MESSAGE_ATOMIC,
    MESSAGE_FETCH, /* fetch-atomic or swap; of CSWAP... and MSWAP the operand leads the payload */
    MESSAGE_ACK,
    MESSAGE_REPLY,
    /* acks of several puts and atomics that the target did as asked: struct message_acks */
    MESSAGE_ACKS,
    MESSAGE_WITHDRAW /* the initiator withdraws the ask whose number match_bits is (ask.c) */
};

struct message {
    uint8_t type;
    uint8_t ni;  /* index of the NI, among the four of a NIC, that it is for */
    uint8_t ack; /* request: ptl_ack_req_t; response: ptl_ni_fail_t */
    /* response: the initiator posts no event (PTL_ME_ACK_DISABLE); request: the target may write
     * its data before those of earlier messages (PTL_MD_UNORDERED) */
    uint8_t silent;
    uint16_t pt_index;
    uint8_t op; /* atomics: ptl_op_t; response: ptl_list_t of the entry */
    uint8_t datatype;
    uint32_t cookie; /* names the initiator's operation; 0: it wants no response */
    uint32_t rank;   /* of the initiator, if the NI is logical */
    uint64_t length; /* request: requested length; response: mlength */
    uint64_t match_bits;
    uint64_t hdr_data;      /* response: message_fail_mark() */
    uint64_t remote_offset; /* request: requested offset; response: the one used at the target */
};

static inline bool message_is_atomic(const struct message *m)
{
    return m->type == MESSAGE_ATOMIC || m->type == MESSAGE_FETCH;
}

/* message_begin() sets the fields before `length` in two stores. The fabric copies the header word
 * by word right after, and a processor forwards a store only to a load that lies within it. */
static inline void message_begin(struct message *m, const struct message *from)
{
    uint64_t first = (uint64_t)from->type | (uint64_t)from->ni << 8 | (uint64_t)from->ack << 16 |
                     (uint64_t)from->silent << 24 | (uint64_t)from->pt_index << 32 |
                     (uint64_t)from->op << 48 | (uint64_t)from->datatype << 56;
    uint64_t second = (uint64_t)from->cookie | (uint64_t)from->rank << 32;
    memcpy(m, &first, sizeof(first));
    memcpy(&m->cookie, &second, sizeof(second));
}

/* Failure code of an ask that was withdrawn, and that the target has not done and will not do. The
 * NIC never shows it to a program. */
#define FAIL_WITHDRAWN UINT8_MAX

/* Failure codes on the wire. PTL_NI_HANDLER_SEGV travels as PTL_NI_SEGV with a mark in a field that
 * used to be 0: so an initiator that does not know the code still understands a segmentation
 * fault. */
#define MESSAGE_BY_HANDLER 1u
static inline uint8_t message_fail_code(ptl_ni_fail_t fail)
{
    return (uint8_t)(unlikely(fail == PTL_NI_HANDLER_SEGV) ? PTL_NI_SEGV : fail);
}

static inline uint64_t message_fail_mark(ptl_ni_fail_t fail)
{
    return fail == PTL_NI_HANDLER_SEGV ? MESSAGE_BY_HANDLER : 0;
}

static inline ptl_ni_fail_t message_fail(const struct message *m)
{
    return m->ack == PTL_NI_SEGV && m->hdr_data == MESSAGE_BY_HANDLER ? PTL_NI_HANDLER_SEGV
                                                                      : m->ack;
}

/* Acks of operations that the target did as asked: each has nothing else to tell. The fields are
 * whole words, for the reason of message_begin(). */
#define ACKS_MOST 10u
struct message_acks {
    /* type, number of acks, and from bit 16 on: whose entries were in the overflow list */
    uint64_t head;
    uint64_t cookies[ACKS_MOST / 2]; /* two in each word, the low half first */
};

static inline uint64_t acks_head(unsigned count, unsigned overflow)
{
    return (uint64_t)MESSAGE_ACKS | (uint64_t)count << 8 | (uint64_t)overflow << 16;
}

static inline unsigned acks_count(const struct message_acks *a)
{
    return (unsigned)(a->head >> 8) & 0xff;
}

static inline bool acks_overflow(const struct message_acks *a, unsigned i)
{
    return (a->head >> (16 + i) & 1) != 0;
}

static inline uint32_t acks_cookie(const struct message_acks *a, unsigned i)
{
    return ((const uint32_t *)a->cookies)[i];
}

static inline void acks_set_cookie(struct message_acks *a, unsigned i, uint32_t cookie)
{
    a->cookies[i / 2] = i % 2 == 0 ? cookie : a->cookies[i / 2] | (uint64_t)cookie << 32;
}

_Static_assert(sizeof(struct message_acks) == FABRIC_HEADER, "they fill a header");
_Static_assert(sizeof(struct message) == FABRIC_HEADER, "the header is what fabrics carry");
_Static_assert(offsetof(struct message, ni) == 1 && offsetof(struct message, ack) == 2 &&
                   offsetof(struct message, silent) == 3 &&
                   offsetof(struct message, pt_index) == 4 && offsetof(struct message, op) == 6 &&
                   offsetof(struct message, datatype) == 7 &&
                   offsetof(struct message, cookie) == 8 && offsetof(struct message, rank) == 12 &&
                   offsetof(struct message, length) == 16,
               "message_begin() knows the layout");

#endif
