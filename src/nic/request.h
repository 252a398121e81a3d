/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator's objects: MDs, requests, operations in flight, and triggered operations that wait
 * for a counter. Part of objects.h. */
#ifndef NIC_REQUEST_H
#define NIC_REQUEST_H

#include "base/list.h"
#include "base/table.h"
#include "fabric/fabric.h"
#include "nic/atomic.h"
#include "nic/event.h"
#include "nic/memory.h"
#include "portals4.h"

#define ATOMIC_OPERAND 32 /* bytes of the largest element of an atomic */

struct answer;
struct ct;
struct le;
struct ni;
struct nic_peer;
struct share;

struct ct_ref {
    struct ct *ct;
    uint32_t handle;
};

#define ACK_REQUESTS (PTL_OC_ACK_REQ + 1)
#define ACK_NEVER UINT8_MAX /* an ack of this kind is not legal for the MD */

struct md {
    struct table_slot slot;
    struct ni *ni;
    void *start;
    struct vector vector; /* PTL_IOVEC: a copy of the parts */
    uint64_t length;
    unsigned options;
    struct eq_ref eq;
    struct ct_ref ct;
    unsigned users; /* operations of it that have not ended */
    /* the ack that a request needs, by the kind that it asks for */
    ptl_ack_req_t ack_as[ACK_REQUESTS];
};

enum op_kind { OP_PUT, OP_GET, OP_ATOMIC, OP_FETCH /* PtlFetchAtomic and PtlSwap */ };
enum op_origin { FROM_PROGRAM, FROM_TRIGGER, FROM_HANDLER };

/* A data movement: the arguments of the call, checked. */
struct request {
    enum op_kind kind;
    enum op_origin origin;
    ptl_op_t op; /* of an atomic; else 0 */
    ptl_datatype_t datatype;
    /* its memory is the payload, or takes the reply of OP_GET; NULL: the request is a handler's */
    struct md *md;
    struct memory memory; /* the memory within `md`, or a handler's */
    struct md *get_md;    /* of OP_FETCH: the MD that the reply goes to */
    struct memory get_memory;
    uint64_t length;
    ptl_ack_req_t ack;
    ptl_process_t target;
    uint32_t pt_index;
    uint32_t context; /* of a handler's request: the handle of its entry */
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t hdr_data;
    void *user_ptr;
    /* of a handler's request (FROM_HANDLER), from its entry: */
    struct eq_ref eq;
    struct ct_ref ct; /* counts with PTL_CT_ACK_REQ and PTL_OC_ACK_REQ */
    struct le *le;    /* the entry whose memory it uses; NULL: the handler's own */
    /* where the answer is put that the handler waits for (handler_send.c), or NULL */
    struct answer *answer;
    void *owned;                     /* a copy of the data, to be freed when it has been sent */
    uint8_t operand[ATOMIC_OPERAND]; /* of CSWAP..., and MSWAP */
};

static inline bool request_sends(const struct request *r)
{
    return r->kind != OP_GET;
}

static inline bool request_fetches(const struct request *r)
{
    return r->kind == OP_GET || r->kind == OP_FETCH;
}

/* Whether this is an ask: a fetch of a handler. It overtakes what programs and handlers have sent
 * before (ask.c). */
static inline bool request_asks(const struct request *r)
{
    return r->origin == FROM_HANDLER && request_fetches(r);
}

/* Returns the MD that a reply goes to. */
static inline struct md *request_reply_md(const struct request *r)
{
    return r->kind == OP_FETCH ? r->get_md : r->md;
}

static inline const struct memory *request_reply_memory(const struct request *r)
{
    return r->kind == OP_FETCH ? &r->get_memory : &r->memory;
}

/* Whether the target is to send a response. */
static inline __attribute__((always_inline)) bool request_expects(const struct request *r)
{
    return request_fetches(r) || r->ack != PTL_NO_ACK_REQ;
}

/* Returns the options that govern SEND. A handler's request has no MD: it gets the ACK it asked
 * for, and SEND only when its message was lost. */
static inline unsigned request_send_options(const struct request *r)
{
    return r->md != NULL ? r->md->options : PTL_MD_EVENT_SUCCESS_DISABLE;
}
/* Whether no event and no count tells the program that the data of a successful request have
 * left. */
static inline bool md_is_silent(const struct md *md)
{
    return (md->options & PTL_MD_EVENT_CT_SEND) == 0 &&
           ((md->options & (PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE)) != 0 ||
            md->eq.eq == NULL);
}
static inline bool request_is_silent(const struct request *r)
{
    return r->md == NULL || md_is_silent(r->md);
}

/* An operation in flight: it waits to be sent, or for its response. It holds the place of that
 * response (invariant set 2). */
struct op {
    struct table_slot slot;
    struct list link; /* in the peer's waiting list, or that of its asks */
    struct ni *ni;    /* NULL: the NI was closed, and the operation ends without an event */
    struct nic_peer *peer;
    bool left;       /* its buffer is free, and SEND was posted */
    bool fabric_has; /* the fabric has `tx`, and reads the buffer */
    bool expects;    /* a response will come */
    bool counted;    /* it is counted in the peer's `outstanding` */
    bool replying;   /* of a fetch: a message in progress brings its reply */
    bool withdrawn;  /* an ask: the target was told that the handler waits no more */
    uint64_t number; /* of an ask that has left: how many left for its peer before */

    struct request request;
    struct fabric_tx tx;
    uint8_t
        /* payload of a swap with an operand: the operand, and one element */
        staged[2 * ATOMIC_OPERAND];
    struct share *share; /* of a handler's operation that waits to be sent: its place */
};

/* The effect of a put or an atomic on a fast entry that holds all of it (stages.h): memory to
 * write, and a counter to count. */
struct deed {
    void *to;
    nic_word_raw *instruction; /* if one instruction does the atomic; else NULL */
    struct ct_ref ct;          /* NULL: no counter */
    uint64_t count;            /* by how much it counts */
    uint32_t length;
    uint8_t kind; /* OP_PUT or OP_ATOMIC */
    ptl_op_t op;  /* of an atomic */
    ptl_datatype_t datatype;
};

/* A quiet operation (quiet.h), worked out. */
struct quiet {
    uint64_t epoch; /* of the NI when it was worked out; 0: it is not */
    const void *from;
    struct deed deed;
};

/* A triggered operation, made by trigger_new(). The first two cache lines are all that a quiet
 * request or a count needs to start. */
struct triggered {
    struct table_slot slot;
    enum trigger_kind {
        TRIGGER_REQUEST,
        TRIGGER_CT_INC,
        TRIGGER_CT_SET,
        TRIGGER_APPEND,
        TRIGGER_UNLINK
    } kind;
    bool fetches; /* a request with two MDs, PtlTriggeredFetchAtomic or PtlTriggeredSwap */
    bool silent;  /* a request of whose SEND the program does not hear */
    union {
        /* in a counter's list, or in the NIC's list of those that have fired */
        struct list link;
        struct triggered *next_spare; /* the next unused one of the NI */
    };
    struct ni *ni;
    uint64_t threshold;
    struct md *md; /* of a request, which is one of its users */
    union {
        struct quiet quiet; /* the request, if that is quiet */
        struct {
            struct ct_ref ct;     /* TRIGGER_CT_INC, TRIGGER_CT_SET */
            ptl_ct_event_t value; /* for these two, too */
        };
        struct {
            struct le *le; /* TRIGGER_APPEND, TRIGGER_UNLINK */
            /* of UNLINK: if the entry has another handle by then, nothing is done */
            uint32_t le_handle;
        };
    };
    struct request request;
};
_Static_assert(offsetof(struct triggered, quiet) == 64 &&
                   offsetof(struct triggered, request) == 128,
               "what fires is two lines");

#endif
