/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's objects: what is sent from, what is to be sent, what is under way, and what waits
 * for a counter. Part of objects.h.
 */
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
#define ACK_NEVER UINT8_MAX /* it is not legal */

struct md {
    struct table_slot slot;
    struct ni *ni;
    void *start;
    struct vector vector; /* PTL_IOVEC: a copy of the parts */
    uint64_t length;
    unsigned options;
    struct eq_ref eq;
    struct ct_ref ct;
    unsigned users;                     /* operations that have not ended */
    ptl_ack_req_t ack_as[ACK_REQUESTS]; /* the ack that a request needs, by the one asked for */
};

enum op_kind { OP_PUT, OP_GET, OP_ATOMIC, OP_FETCH /* PtlFetchAtomic and PtlSwap */ };
enum op_origin { FROM_PROGRAM, FROM_TRIGGER, FROM_HANDLER };

/* The arguments of a data movement, checked. */
struct request {
    enum op_kind kind;
    enum op_origin origin;
    ptl_op_t op; /* of atomics, else 0 */
    ptl_datatype_t datatype;
    struct md *md;        /* it has the payload, or gets the reply of OP_GET; NULL: a handler's */
    struct memory memory; /* its memory */
    struct md *get_md;    /* of OP_FETCH: where the reply goes */
    struct memory get_memory;
    uint64_t length;
    ptl_ack_req_t ack;
    ptl_process_t target;
    uint32_t pt_index;
    uint32_t context; /* of a handler: the handle of its entry */
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t hdr_data;
    void *user_ptr;
    /* of a handler (FROM_HANDLER): what it inherits from its entry */
    struct eq_ref eq;
    struct ct_ref ct;      /* with PTL_CT_ACK_REQ and PTL_OC_ACK_REQ */
    struct le *le;         /* the entry whose memory it uses; NULL: the handler's own */
    struct answer *answer; /* the answer that the handler waits for, handler_send.c; or NULL */
    void *owned;           /* freed when the buffer is no longer needed */
    uint8_t operand[ATOMIC_OPERAND]; /* of CSWAP and its relatives, and MSWAP */
};

static inline bool request_sends(const struct request *r)
{
    return r->kind != OP_GET;
}

static inline bool request_fetches(const struct request *r)
{
    return r->kind == OP_GET || r->kind == OP_FETCH;
}

/* What handlers fetch passes what others, and they, have sent before (ask.c). */
static inline bool request_asks(const struct request *r)
{
    return r->origin == FROM_HANDLER && request_fetches(r);
}

/* The MD that a reply goes to. */
static inline struct md *request_reply_md(const struct request *r)
{
    return r->kind == OP_FETCH ? r->get_md : r->md;
}

static inline const struct memory *request_reply_memory(const struct request *r)
{
    return r->kind == OP_FETCH ? &r->get_memory : &r->memory;
}

/* Whether a response is due. */
static inline __attribute__((always_inline)) bool request_expects(const struct request *r)
{
    return request_fetches(r) || r->ack != PTL_NO_ACK_REQ;
}

/* Options that say what SEND does. A handler's request has no MD: it gets the ACK it asked for,
 * and SEND only when its message was lost. */
static inline unsigned request_send_options(const struct request *r)
{
    return r->md != NULL ? r->md->options : PTL_MD_EVENT_SUCCESS_DISABLE;
}
/* Nobody wants to know when the data of a successful request have left. */
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

/* An operation in flight: queued, or waiting for its response. It keeps the
 * place for that response (invariant set 2). */
struct op {
    struct table_slot slot;
    struct list link; /* of the peer's waiting list, or its asks */
    struct ni *ni;    /* NULL: its NI was closed; it ends without a sound */
    struct nic_peer *peer;
    bool left;       /* its buffer was given back, SEND was posted */
    bool fabric_has; /* tx is the fabric's */
    bool expects;    /* a response will come */
    bool counted;    /* in the peer's outstanding */
    bool replying;   /* of one that fetches: a message in progress brings its reply */
    bool withdrawn;  /* an ask whose target was told that nobody waits any more */
    uint64_t number; /* of an ask that has left: among those of its peer */

    struct request request;
    struct fabric_tx tx;
    uint8_t
        staged[2 * ATOMIC_OPERAND]; /* payload of a swap with an operand: that, and one element */
    struct share *share;            /* its place, while it waits for its peer: a handler's */
};

/* The effect of a put or an atomic at a fast entry that holds it whole (stages.h): it writes, and
 * counts. */
struct deed {
    void *to;
    nic_word_raw *instruction; /* of an atomic that is one; else NULL */
    struct ct_ref ct;          /* NULL: none counts */
    uint64_t count;            /* the number that is added to it */
    uint32_t length;
    uint8_t kind; /* OP_PUT or OP_ATOMIC */
    ptl_op_t op;  /* of an atomic */
    ptl_datatype_t datatype;
};

/* A quiet operation, ready to be done: quiet.h. */
struct quiet {
    uint64_t epoch; /* of the NI; 0: it is not ready */
    const void *from;
    struct deed deed;
};

/* Made by trigger_new(). One that is quiet or counts fires by its first two cache lines alone. */
struct triggered {
    struct table_slot slot;
    enum trigger_kind {
        TRIGGER_REQUEST,
        TRIGGER_CT_INC,
        TRIGGER_CT_SET,
        TRIGGER_APPEND,
        TRIGGER_UNLINK
    } kind;
    bool fetches; /* a request with two MDs */
    bool silent;  /* a request whose SEND is not wanted */
    union {
        struct list link;             /* of a counter, or of the NIC's fired list */
        struct triggered *next_spare; /* of the NI, while it is no operation */
    };
    struct ni *ni;
    uint64_t threshold;
    struct md *md; /* of a request, which keeps it */
    union {
        struct quiet quiet; /* the request, if it is */
        struct {
            struct ct_ref ct;     /* CT_INC, CT_SET */
            ptl_ct_event_t value; /* the same */
        };
        struct {
            struct le *le;      /* APPEND, UNLINK */
            uint32_t le_handle; /* of UNLINK: nothing is done once the entry has another */
        };
    };
    struct request request;
};
_Static_assert(offsetof(struct triggered, quiet) == 64 &&
                   offsetof(struct triggered, request) == 128,
               "what fires is two lines");

#endif
