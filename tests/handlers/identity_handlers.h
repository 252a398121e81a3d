/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of identity.c, and what they share with their host. */
#ifndef IDENTITY_HANDLERS_H
#define IDENTITY_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

/* What a handler finds wrong. */
enum identity_wrong {
    WRONG_NO_STATE, /* there is no state where there is to be some, or the other way round */
    WRONG_NOT_ZERO, /* the state of a message that begins */
    WRONG_HEADER,   /* PtlHandlerHeader() tells the header handler something else */
    WRONG_MESSAGE,  /* ... tells other handlers something else, or the state is another one's */
    WRONG_BYTES,    /* the packet is of another message */
    WRONG_USER,     /* the user header */
    WRONG_SUM,      /* the bytes of the message's packets */
    WRONG_TIMER,    /* a tick */
    WRONGS
};

/* What handlers do besides: bits of hdr_data, above which it says who has sent the message. */
enum {
    IDENTITY_YIELD = 1,
    IDENTITY_WAIT = 2,
    IDENTITY_FAULT = 4,
    IDENTITY_SPIN = 8,
    IDENTITY_FAIL = 16
};
enum { IDENTITY_SHIFT = 8 };

/* HPU memory of the entry. */
struct identity_state {
    uint32_t length;  /* of the message's state */
    uint32_t keeps;   /* PTL_HANDLER_KEEP_USER_HDR */
    uint32_t partial; /* messages may come torn */
    uint32_t unused;
};

/* The beginning of a message's state; the rest is a pattern. */
struct identity_own {
    ptl_process_t source_id;
    uint64_t length, match_bits, offset, hdr_data;
    uint64_t bytes;
    uint32_t type, seed;
};
PTL_HANDLER_STATE(struct identity_state);
PTL_HANDLER_STATE(struct identity_own);

/* handler_host_mem */
struct identity_log {
    uint64_t headers, payloads, completions, ticks;
    uint64_t waiting, go; /* of IDENTITY_WAIT */
    uint64_t bytes;
    uint64_t wrong[WRONGS];
};

/* Byte `i` of the payload of a message, and of its user header. */
static inline uint8_t identity_byte(uint64_t hdr_data, uint64_t i)
{
    return (uint8_t)((hdr_data >> IDENTITY_SHIFT) * 31 + i * 7 + 1);
}

/* All three, and those that have no header handler; they ask, and have no state. */
extern const ptl_handlers_t identity_handlers, identity_headless;

/* What each of these does ends it with SEGV on RV32; natively the first ones do. */
enum identity_stray {
    STRAY_HEADER_NULL,           /* PtlHandlerHeader(NULL) */
    STRAY_HEADER_READ,           /* PtlHandlerHeader() to memory that may not be written */
    STRAY_NATIVE,                /* the number of those before */
    STRAY_BEHIND = STRAY_NATIVE, /* an access behind the state */
    STRAY_BEFORE,                /* an access before it */
    STRAY_NOT_ASKED,             /* an access by a pointer of the handler before */
    STRAY_USER_WRITE,            /* a store to the kept user header */
    STRAY_USER_BEHIND,           /* a load behind it */
    STRAYS
};
struct identity_stray_state {
    uint32_t what;
    uint32_t pointer; /* the header handler's */
};
PTL_HANDLER_STATE(struct identity_stray_state);
extern const ptl_handlers_t identity_strays;

#endif
