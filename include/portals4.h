/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals 4.3: the interface of a network card to the programs and run times
 * above it. Numbers such as "3.15" are sections of the specification.
 *
 * The objects, and how a message finds them:
 *
 *      initiator                                   target
 *   MD  a range to send from or              portal table of the NI
 *   |   to receive replies into               [0] [1] [2] ...  <- pt_index
 *   |                                                  |
 *   +-- EQ  SEND, ACK, REPLY                           v  entries in list order
 *   +-- CT  the same, only counted             ME -> ME -> ME   matching NI
 *                                              LE -> LE         non-matching NI
 *                                               +-- CT of the entry
 *                                              priority list, then overflow list;
 *                                              what the latter took: unexpected headers
 *                                              EQ of the portal table entry
 *                                                   PUT, GET, ATOMIC, LINK, AUTO_UNLINK, ...
 *
 * Ownership. Structures passed in (ptl_md_t, ptl_me_t, ...) are copied; they may
 *   live on the stack. The memory they describe stays the program's: it must
 *   remain mapped while an MD is bound or an entry linked. If it is not, the
 *   operation ends with PTL_NI_SEGV in its events; the process does not crash.
 *   Arrays of ptl_iovec_t are copied when the MD is bound or the entry appended.
 * Units. Lengths, offsets and "sizes" are bytes unless said otherwise. Times are
 *   milliseconds.
 * Handles. A handle names its kind, its interface and a generation, so that a
 *   handle of the wrong kind, of another interface or of a freed object gives
 *   PTL_ARG_INVALID. Processes that make the same calls in the same order get
 *   the same handle values.
 * Threads. Every function may be called by any number of threads at once. The
 *   calls that wait (PtlEQWait, PtlEQPoll, PtlCTWait, PtlCTPoll), PtlPTDisable,
 *   and PtlNIFini may block; so may a data movement whose path is full, for as
 *   long as the peer takes to drain it. All others return at once. None is a
 *   cancellation point: a thread that is cancelled in a call ends after it, and one
 *   that waits goes on to wait (PtlAbort ends that).
 * Progress. Calls that wait, poll or read an event or counter move messages
 *   themselves; while a program makes none, a thread of the library does.
 * Fork. A child process owns none of its parent's objects: its calls return
 *   PTL_NO_INIT until it calls PtlInit, and then it starts anew.
 * Errors. A function that returns int returns PTL_OK or another code below (but
 *   see PtlHandleIsEqual). Any function but PtlInit gives PTL_NO_INIT before
 *   PtlInit and after the last PtlFini, and PTL_ARG_INVALID for a bad handle or
 *   a null pointer where a result or a structure is due; the comments below
 *   list only what comes on top. Argument errors are found before anything is
 *   done. Nothing aborts.
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions are exported from libportals also if it is compiled with -fvisibility=hidden. */
#if defined(__GNUC__)
#define PTL_EXPORT __attribute__((visibility("default")))
#else
#define PTL_EXPORT
#endif

/* ---- Base types (3.3) ------------------------------------------------------ */

typedef uint64_t ptl_size_t;
typedef uint32_t ptl_pt_index_t; /* index into the portal table */
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t; /* sent with a put or atomic; the target's event has it */
typedef unsigned int ptl_time_t; /* milliseconds */
typedef unsigned int ptl_interface_t;
typedef uint32_t ptl_nid_t; /* an IPv4 address in host byte order */
typedef uint32_t ptl_pid_t; /* 1 .. PTL_PID_MAX, unique on its nid */
typedef uint32_t ptl_rank_t;
typedef uint32_t ptl_uid_t;

/* All handles have one representation; the kind of the object is part of the value. */
typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;

typedef unsigned char ptl_list_t;       /* PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST */
typedef unsigned char ptl_search_op_t;  /* PTL_SEARCH_... */
typedef unsigned char ptl_ack_req_t;    /* PTL_..._ACK_REQ */
typedef unsigned char ptl_op_t;         /* PTL_MIN .. PTL_MSWAP */
typedef unsigned char ptl_datatype_t;   /* PTL_INT8_T .. PTL_LONG_DOUBLE_COMPLEX */
typedef unsigned char ptl_event_kind_t; /* PTL_EVENT_... */
typedef unsigned char ptl_ni_fail_t;    /* PTL_NI_OK and the failures after it */

/* A process: by rank on a logical interface, by address on a physical one. */
typedef union {
    ptl_rank_t rank;
    struct {
        ptl_nid_t nid;
        ptl_pid_t pid;
    } phys;
} ptl_process_t;

/* ---- Constants (3.2) ------------------------------------------------------- */

#define PTL_EQ_NONE 0x3fffffffU
#define PTL_CT_NONE 0x5fffffffU
#define PTL_INVALID_HANDLE 0xffffffffU
#define PTL_IFACE_DEFAULT 0xffffffffU /* PTL_IFACE_DEFAULT + i (wrapping) is the i-th interface */
#define PTL_PID_ANY 0xffffU
#define PTL_NID_ANY 0xffffU
#define PTL_PID_MAX 65534
#define PTL_UID_ANY 0xffffffffU
#define PTL_PT_ANY 0xffffffffU
#define PTL_RANK_ANY 0xffffffffU
#define PTL_TIME_FOREVER 0xffffffffU
/* as the length of an MD or entry: up to the end of the address space */
#define PTL_SIZE_MAX UINT64_MAX

/* Return codes (3.4). */
enum ptl_retvals {
    PTL_OK = 0,
    PTL_ARG_INVALID = 1,     /* an argument is out of range, stale, of the wrong kind or null */
    PTL_CT_NONE_REACHED = 2, /* PtlCTPoll: no counter has reached its test within the time */
    PTL_EQ_DROPPED = 3,      /* an event is delivered, but at least one event before it was lost */
    PTL_EQ_EMPTY = 4,        /* no event (PtlEQPoll: within the time) */
    PTL_FAIL = 5,            /* the system refused a call; the log on stderr names it */
    PTL_IGNORED = 6,         /* PtlSetMap: the interface has a map already, which stays */
    PTL_IN_USE = 7,          /* an operation is using the object: the caller may try again */
    PTL_LIST_TOO_LONG = 8,   /* limit max_list_size */
    PTL_NO_INIT = 9,         /* this process has not called PtlInit */
    PTL_NO_SPACE = 10,       /* a limit of the interface, or memory, is used up */
    PTL_PID_IN_USE = 11,     /* another process or interface has the requested pid */
    PTL_PT_FULL = 12,        /* PTL_PT_ANY, but no index is free */
    PTL_PT_EQ_NEEDED = 13,   /* flow control needs an event queue */
    PTL_PT_IN_USE = 14,      /* the index is allocated, or (PtlPTFree) has entries */
    PTL_ABORTED = 15,        /* a waiting call was ended by PtlAbort */
    PTL_INTERRUPTED = 16,    /* a code of Portals before 4.3; never returned */
    /* kept for old programs: it does not count PTL_ABORTED and PTL_INTERRUPTED */
    PTL_STATUS_LAST = PTL_PT_IN_USE + 1
};

/* Options of an NI: exactly one of each pair must be set. */
#define PTL_NI_MATCHING (1U << 0)    /* entries are MEs */
#define PTL_NI_NO_MATCHING (1U << 1) /* entries are LEs */
#define PTL_NI_LOGICAL (1U << 2)     /* targets are ranks of a map */
#define PTL_NI_PHYSICAL (1U << 3)    /* targets are nid and pid */
#define PTL_NI_INIT_OPTIONS_MASK 0xfU

/* Features, in ptl_ni_limits_t.features. */
#define PTL_TARGET_BIND_INACCESSIBLE (1U << 0) /* entries may cover unmapped memory */
/* data between two processes become visible in order, whatever their sizes and addresses; if the
 * program does not ask for this in its desired limits they are only ordered by address */
#define PTL_TOTAL_DATA_ORDERING (1U << 1)
/* aligned atomics of up to 8 bytes for each element are atomic against those of the processor, too
 */
#define PTL_COHERENT_ATOMICS (1U << 2)

/* How an operation ended: ptl_event_t.ni_fail_type. */
enum ptl_ni_fail {
    PTL_NI_OK = 0,
    PTL_NI_UNDELIVERABLE = 1,  /* the target cannot be reached, or has ended meanwhile */
    PTL_NI_DROPPED = 2,        /* no entry matched, or there is no such portal table entry */
    PTL_NI_PT_DISABLED = 3,    /* the portal table entry is disabled */
    PTL_NI_PERM_VIOLATION = 4, /* the matching entry is for another uid */
    PTL_NI_OP_VIOLATION = 5,   /* the matching entry does not allow this operation */
    PTL_NI_NO_MATCH = 6,       /* a search found nothing */
    PTL_NI_SEGV = 7,           /* memory of the initiator or the target is not accessible */
    PTL_NI_TARGET_INVALID = 8  /* a code of other implementations; never reported */
};

/* Status registers of an interface, PtlNIStatus. */
typedef enum {
    PTL_SR_DROP_COUNT = 0,            /* messages dropped: no match, no or disabled PT entry */
    PTL_SR_PERMISSION_VIOLATIONS = 1, /* messages refused with PTL_NI_PERM_VIOLATION */
    PTL_SR_OPERATION_VIOLATIONS = 2,  /* messages refused with PTL_NI_OP_VIOLATION */
    PTL_SR_LAST = 3
} ptl_sr_index_t;
typedef int ptl_sr_value_t;

/* Portal table entry options. */
/* a promise of the program, not checked: all entries are USE_ONCE */
#define PTL_PT_ONLY_USE_ONCE (1U << 0)
/* disable the portal table entry instead of losing a message */
#define PTL_PT_FLOWCTRL (1U << 1)
/* a promise of the program, not checked: all entries truncate */
#define PTL_PT_ONLY_TRUNCATE (1U << 2)
/* permission to match out of order, which the library does not use */
#define PTL_PT_MATCH_UNORDERED (1U << 3)
#define PTL_PT_ALLOC_DISABLED (1U << 4) /* allocate the index disabled; PtlPTEnable enables it */
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1fU

/* Option of MDs, MEs and LEs: `start` is an array of `length` ptl_iovec_t. Offsets count the bytes
 * of its ranges one after the other. */
#define PTL_IOVEC (1U << 0)

/* MD options. */
#define PTL_MD_EVENT_CT_SEND (1U << 1)  /* count SENDs */
#define PTL_MD_EVENT_CT_REPLY (1U << 2) /* count REPLYs */
#define PTL_MD_EVENT_CT_ACK (1U << 3)   /* count ACKs */
/* data may become visible before earlier data; messages are matched in order nevertheless */
#define PTL_MD_UNORDERED (1U << 4)
#define PTL_MD_EVENT_SUCCESS_DISABLE (1U << 5) /* post full events for failures only */
#define PTL_MD_VOLATILE (1U << 6)              /* see max_volatile_size in ptl_ni_limits_t */
#define PTL_MD_EVENT_SEND_DISABLE (1U << 7)    /* no SEND events */
/* permission to lose puts, which the library does not use */
#define PTL_MD_UNRELIABLE (1U << 8)
#define PTL_MD_EVENT_CT_BYTES (1U << 14) /* count bytes instead of successes */
#define PTL_MD_OPTIONS_MASK 0x41ffU      /* all options of an MD */

/* Options of MEs. Those of the first group also exist for LEs, under PTL_LE_ names. */
#define PTL_ME_OP_PUT (1U << 1)   /* the entry accepts puts */
#define PTL_ME_OP_GET (1U << 2)   /* the entry accepts gets */
#define PTL_ME_USE_ONCE (1U << 3) /* the entry's first message unlinks it */
/* overflow list: the entry's messages leave no unexpected header */
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1U << 4)
/* a promise of the program, which the library does not need */
#define PTL_ME_IS_ACCESSIBLE (1U << 5)
#define PTL_ME_EVENT_LINK_DISABLE (1U << 6)     /* no LINK event */
#define PTL_ME_EVENT_COMM_DISABLE (1U << 7)     /* no PUT, GET, ATOMIC events */
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1U << 8) /* no PT_DISABLED events */
/* post PUT, GET and ATOMIC events for failures only */
#define PTL_ME_EVENT_SUCCESS_DISABLE (1U << 9)
#define PTL_ME_EVENT_OVER_DISABLE (1U << 10)   /* no ..._OVERFLOW events */
#define PTL_ME_EVENT_UNLINK_DISABLE (1U << 11) /* no AUTO_UNLINK and AUTO_FREE events */
#define PTL_ME_EVENT_CT_COMM (1U << 12)        /* count messages that arrive */
#define PTL_ME_EVENT_CT_OVERFLOW (1U << 13)    /* count ..._OVERFLOW events */
#define PTL_ME_EVENT_CT_BYTES (1U << 14)       /* count bytes (mlength) instead of successes */
/* send no ack for messages to this entry, even if the initiator asks for one */
#define PTL_ME_ACK_DISABLE (1U << 19)
/* Options of MEs only. */
/* the entry keeps an offset of its own, see ptl_me_t */
#define PTL_ME_MANAGE_LOCAL (1U << 15)
#define PTL_ME_NO_TRUNCATE (1U << 16) /* a message that does not fit does not match */
/* a permission with MANAGE_LOCAL, which the library does not use */
#define PTL_ME_MAY_ALIGN (1U << 17)
#define PTL_ME_LOCAL_INC_UH_RLENGTH (1U << 18) /* see ptl_me_t */

#define PTL_LE_OP_PUT PTL_ME_OP_PUT
#define PTL_LE_OP_GET PTL_ME_OP_GET
#define PTL_LE_USE_ONCE PTL_ME_USE_ONCE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE PTL_ME_IS_ACCESSIBLE
#define PTL_LE_EVENT_LINK_DISABLE PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_COMM_DISABLE PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_CT_COMM PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_EVENT_CT_BYTES PTL_ME_EVENT_CT_BYTES
#define PTL_LE_ACK_DISABLE PTL_ME_ACK_DISABLE

/* All options of an LE, and all options of an ME. */
#define PTL_LE_APPEND_OPTIONS_MASK 0x87fffU
#define PTL_ME_APPEND_OPTIONS_MASK 0xfffffU

enum ptl_list { PTL_PRIORITY_LIST = 0, PTL_OVERFLOW_LIST = 1 };
enum ptl_search_op { PTL_SEARCH_ONLY = 0, PTL_SEARCH_DELETE = 1 };

/* What acknowledgement the initiator of a put asks the target for (3.15). */
enum ptl_ack_req {
    PTL_NO_ACK_REQ = 0,
    PTL_ACK_REQ = 1,    /* an ACK event; it is also counted with PTL_MD_EVENT_CT_ACK */
    PTL_CT_ACK_REQ = 2, /* counted only; bytes with PTL_MD_EVENT_CT_BYTES */
    /* the ack is counted, and never in bytes, when the target is done with the message; a message
     * that was refused counts as a failure */
    PTL_OC_ACK_REQ = 3
};

/*
 * Operations and types of atomics (3.15). Integers: all; FLOAT, DOUBLE,
 * LONG_DOUBLE: all but logical and bitwise ones and MSWAP; complex types: SUM, PROD,
 * SWAP, CSWAP, CSWAP_NE. SWAP to MSWAP are for PtlSwap, the others for PtlAtomic
 * and PtlFetchAtomic. Integers wrap. LOR, LAND and LXOR give 0 or 1.
 */
enum ptl_op {
    PTL_MIN = 0,
    PTL_MAX = 1,
    PTL_SUM = 2,
    PTL_PROD = 3,
    PTL_LOR = 4,
    PTL_LAND = 5,
    PTL_BOR = 6,
    PTL_BAND = 7,
    PTL_LXOR = 8,
    PTL_BXOR = 9,
    PTL_SWAP = 10,
    PTL_CSWAP = 11,
    PTL_CSWAP_NE = 12,
    PTL_CSWAP_LE = 13,
    PTL_CSWAP_LT = 14,
    PTL_CSWAP_GE = 15,
    PTL_CSWAP_GT = 16,
    PTL_MSWAP = 17,
    PTL_OP_LAST = 18
};

enum ptl_datatype {
    PTL_INT8_T = 0,
    PTL_UINT8_T = 1,
    PTL_INT16_T = 2,
    PTL_UINT16_T = 3,
    PTL_INT32_T = 4,
    PTL_UINT32_T = 5,
    PTL_FLOAT = 6,
    PTL_INT64_T = 7,
    PTL_UINT64_T = 8,
    PTL_DOUBLE = 9,
    PTL_FLOAT_COMPLEX = 10,
    PTL_DOUBLE_COMPLEX = 11,
    PTL_LONG_DOUBLE = 12,
    PTL_LONG_DOUBLE_COMPLEX = 13,
    PTL_DATATYPE_LAST = 14
};

/* Events (3.13). */
enum ptl_event_kind {
    PTL_EVENT_GET = 0,
    PTL_EVENT_GET_OVERFLOW = 1,
    PTL_EVENT_PUT = 2,
    PTL_EVENT_PUT_OVERFLOW = 3,
    PTL_EVENT_ATOMIC = 4,
    PTL_EVENT_ATOMIC_OVERFLOW = 5,
    PTL_EVENT_FETCH_ATOMIC = 6,
    PTL_EVENT_FETCH_ATOMIC_OVERFLOW = 7,
    PTL_EVENT_REPLY = 8,
    PTL_EVENT_SEND = 9,
    PTL_EVENT_ACK = 10,
    PTL_EVENT_PT_DISABLED = 11,
    PTL_EVENT_LINK = 12,
    PTL_EVENT_AUTO_UNLINK = 13,
    PTL_EVENT_AUTO_FREE = 14,
    PTL_EVENT_SEARCH = 15
};

/* A type of earlier versions of Portals; no function takes it. */
typedef enum { PTL_CT_OPERATION = 0, PTL_CT_BYTE = 1 } ptl_ct_type_t;

/* ---- Structures ------------------------------------------------------------ */

/* The limits of an interface (3.6.1): numbers of objects, unless a comment says bytes. */
typedef struct {
    int max_entries;            /* MEs and LEs that are linked at a time */
    int max_unexpected_headers; /* unexpected headers that are kept at a time */
    int max_mds;
    int max_cts;
    int max_eqs;
    int max_pt_index;                 /* the last valid index, at least 63 */
    int max_iovecs;                   /* ranges of one MD or entry */
    int max_list_size;                /* entries of one list */
    int max_triggered_ops;            /* triggered operations that wait at a time */
    ptl_size_t max_msg_size;          /* bytes of one put or get */
    ptl_size_t max_atomic_size;       /* bytes of one PtlAtomic */
    ptl_size_t max_fetch_atomic_size; /* bytes of one PtlFetchAtomic or PtlSwap */
    /* bytes up to which data of a put become visible after those of earlier puts, and are read by
     * later gets */
    ptl_size_t max_waw_ordered_size;
    /* bytes up to which data of a put become visible after earlier gets have read */
    ptl_size_t max_war_ordered_size;
    /* bytes: the buffer of a PTL_MD_VOLATILE put of at most this length may be reused when the call
     * returns; for longer puts the option is accepted and has no effect */
    ptl_size_t max_volatile_size;
    unsigned int features; /* PTL_TARGET_BIND_INACCESSIBLE, ... */
} ptl_ni_limits_t;

/* A range of the initiator's memory (3.10). */
typedef struct {
    void *start;
    ptl_size_t length;
    unsigned int options;      /* PTL_MD_... */
    ptl_handle_eq_t eq_handle; /* or PTL_EQ_NONE */
    ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE; ignored without an EVENT_CT_ option */
} ptl_md_t;

typedef struct {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_iovec_t;

/* A range of the target's memory on a non-matching interface (3.11). */
typedef struct {
    void *start;
    ptl_size_t length;
    ptl_handle_ct_t ct_handle; /* or PTL_CT_NONE; ignored without an EVENT_CT_ option */
    ptl_uid_t uid;             /* user whose messages the entry accepts, or PTL_UID_ANY */
    unsigned int options;      /* PTL_LE_... */
} ptl_le_t;

/*
 * The same on a matching interface (3.12); begins like ptl_le_t. A message
 * matches if its initiator is match_id and its match bits equal match_bits
 * wherever ignore_bits is 0. On a physical interface PTL_NID_ANY and PTL_PID_ANY
 * are wildcards, each for its own half of match_id; on a logical one it is
 * PTL_RANK_ANY.
 *
 * With PTL_ME_MANAGE_LOCAL the NIC puts messages one behind another: the entry's own offset, which
 * advances by the length of each message, replaces the offset of the request. When less than
 * min_free bytes (unless 0) remain, the entry is unlinked. Without the option min_free has no
 * effect. If PTL_ME_LOCAL_INC_UH_RLENGTH is set as well, unexpected headers that the entry matches
 * when it is appended also advance its offset, by the lengths that their messages requested.
 */
typedef struct {
    void *start;
    ptl_size_t length;
    ptl_handle_ct_t ct_handle;
    ptl_uid_t uid;
    unsigned int options; /* PTL_ME_... */
    ptl_process_t match_id;
    ptl_match_bits_t match_bits;
    ptl_match_bits_t ignore_bits;
    ptl_size_t min_free;
} ptl_me_t;

/* A counter's value (3.14). `failure` counts operations, never bytes. */
typedef struct {
    ptl_size_t success;
    ptl_size_t failure;
} ptl_ct_event_t;

/*
 * A full event (3.13). Which fields hold, by type:
 *
 *   PUT, GET, ATOMIC,   all, atomic_... only for the last two; start is where the
 *   FETCH_ATOMIC        data was put or read (with PTL_IOVEC, where its first byte
 *                       was); remote_offset is the requested offset; match_bits
 *                       only on a matching interface. PtlSwap gives FETCH_ATOMIC
 *   ..._OVERFLOW        the same for a message that the overflow list had taken:
 *                       user_ptr is of the entry appended now, start where the
 *                       data lies in the overflow entry
 *   SEARCH              as ..._OVERFLOW; with PTL_NI_NO_MATCH only type,
 *                       ni_fail_type, user_ptr, pt_index
 *   ACK, REPLY          type, ni_fail_type, user_ptr, mlength, remote_offset (the
 *                       one used at the target), ptl_list (that of the entry)
 *   SEND                type, ni_fail_type, user_ptr
 *   LINK, AUTO_UNLINK,  type, ni_fail_type, user_ptr, pt_index
 *   AUTO_FREE
 *   PT_DISABLED         type, ni_fail_type (PTL_NI_PT_DISABLED), pt_index
 */
typedef struct {
    void *start;
    void *user_ptr; /* at the initiator the operation's, at the target the entry's */
    ptl_hdr_data_t hdr_data;
    ptl_match_bits_t match_bits;
    ptl_size_t rlength; /* length that the initiator requested */
    ptl_size_t mlength; /* bytes that were moved, at most rlength */
    ptl_size_t remote_offset;
    ptl_process_t initiator; /* rank on a logical interface */
    ptl_uid_t uid;           /* of the initiator */
    ptl_pt_index_t pt_index;
    ptl_event_kind_t type;
    ptl_list_t ptl_list;
    ptl_ni_fail_t ni_fail_type;
    ptl_op_t atomic_operation;
    ptl_datatype_t atomic_type;
} ptl_event_t;

/* Compiled programs depend on these sizes. Handlers compiled for another HPU, where pointers
 * are shorter, see none of these structs but ptl_process_t. */
#if UINTPTR_MAX == UINT32_MAX
#elif defined(__cplusplus)
#if __cplusplus >= 201103L
#define PTL_ABI_(type, size) static_assert(sizeof(type) == (size), "size of " #type)
#endif
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define PTL_ABI_(type, size) _Static_assert(sizeof(type) == (size), "size of " #type)
#endif
#ifdef PTL_ABI_
PTL_ABI_(ptl_size_t, 8);
PTL_ABI_(ptl_handle_any_t, 4);
PTL_ABI_(ptl_event_kind_t, 1);
PTL_ABI_(ptl_sr_index_t, 4);
PTL_ABI_(ptl_process_t, 8);
PTL_ABI_(ptl_ni_limits_t, 96);
PTL_ABI_(ptl_md_t, 32);
PTL_ABI_(ptl_iovec_t, 16);
PTL_ABI_(ptl_le_t, 32);
PTL_ABI_(ptl_me_t, 64);
PTL_ABI_(ptl_ct_event_t, 16);
PTL_ABI_(ptl_event_t, 80);
#undef PTL_ABI_
#endif

/* ---- Initialisation (3.5) -------------------------------------------------- */

/* PtlInit starts the library, or counts one more user of it. After the last
 * PtlFini it may be called again. PTL_FAIL: an environment variable of Pinwheel
 * has a bad value (named on stderr), or the system lacks something needed. */
PTL_EXPORT int PtlInit(void);

/* PtlFini undoes one PtlInit; the last one closes every interface. Without
 * PtlInit it does nothing. */
PTL_EXPORT void PtlFini(void);

/* PtlAbort ends the calls of this process that wait in PtlEQWait, PtlEQPoll,
 * PtlCTWait and PtlCTPoll at this moment: they return PTL_ABORTED. Calls made
 * later work as ever. */
PTL_EXPORT void PtlAbort(void);

/* PtlSetJobKey, an addition of Pinwheel, sets the secret of the job, 32 to 1024 bytes, for the
 * interfaces that PtlNIInit opens from now on: they speak UDP to processes on other hosts, but
 * only to those that have the same secret (docs/slmp.md). The file of PINWHEEL_JOB_KEY_FILE, if
 * that is set, has precedence. The bytes are copied; length 0 removes the key. PTL_ARG_INVALID:
 * another length. */
PTL_EXPORT int PtlSetJobKey(const void *key, ptl_size_t length);

/* PtlErrorStr, an addition of Pinwheel, returns the name of a return code and its meaning,
 * "PTL_IN_USE: an operation ...". It may be called at any time. For a number that is no return code
 * the text says so. */
PTL_EXPORT const char *PtlErrorStr(unsigned code);

/* ---- Network interfaces (3.6) ---------------------------------------------- */

/*
 * PtlNIInit opens one of the four kinds of interface on `iface`; the four share one physical id.
 * Opening a kind again counts one more user and returns the same handle and limits; `pid` and
 * `desired` are then ignored. `pid` is the pid that the process asks for, PTL_PID_ANY or 1 to
 * PTL_PID_MAX. `desired` may be null; each limit is brought to what the library can hold, never
 * refused. `actual` may be null. PTL_ARG_INVALID: no such interface, not exactly one option of each
 * pair, unknown options, a pid out of range, or, if the interface is open, another pid than it has.
 * PTL_PID_IN_USE: the pid is taken. PTL_NO_SPACE: no memory, or shared memory.
 */
PTL_EXPORT int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
                         const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
                         ptl_handle_ni_t *ni_handle);

/* PtlNIFini undoes one PtlNIInit. The last one waits for a bounded time until messages in
 * progress have left, then frees all objects of the interface. Threads that wait for one of them
 * get PTL_ARG_INVALID; no other thread may be inside another call on it. */
PTL_EXPORT int PtlNIFini(ptl_handle_ni_t ni_handle);

/* PtlNIStatus reads a status register. PTL_ARG_INVALID: no such register. */
PTL_EXPORT int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register,
                           ptl_sr_value_t *status);

/* PtlNIHandle finds the interface to which an object of any kind belongs; for
 * an interface it gives the handle itself. */
PTL_EXPORT int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/*
 * PtlSetMap gives a logical interface its ranks: mapping[i] is the physical id
 * of rank i. Peers need not have called it yet. It comes before any entry is
 * appended and any message sent. PTL_ARG_INVALID: a physical interface, an empty
 * map, an invalid id, or a map without this process. PTL_IGNORED: the
 * interface has a map, which stays.
 */
PTL_EXPORT int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size,
                         const ptl_process_t *mapping);

/* PtlGetMap copies up to map_size entries and stores the true size in
 * *actual_map_size. `mapping` may be null if map_size is 0. PTL_ARG_INVALID: a
 * physical interface. PTL_NO_SPACE: no map was set. */
PTL_EXPORT int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
                         ptl_size_t *actual_map_size);

/* ---- Portal table (3.7) ---------------------------------------------------- */

/*
 * PtlPTAlloc takes an index of the portal table: `pt_index_req`, or with
 * PTL_PT_ANY a free one, on a new interface 0 first. Events of its entries go to
 * eq_handle, or nowhere with PTL_EQ_NONE.
 *
 * With PTL_PT_FLOWCTRL a message that matches no entry, finds no room for its unexpected header, or
 * would find the event queue full, first waits for PINWHEEL_FLOWCTRL_MS, and holds its sender back.
 * If there is no room then the message disables the index, and it and all later messages are
 * refused with PTL_NI_PT_DISABLED. A PT_DISABLED event is posted when the deliveries in progress
 * are over. PtlPTEnable lets messages in again. With this option the event queue also has room,
 * beyond its count, for the events of operations that the program itself starts: it loses no event.
 * PTL_ARG_INVALID: an index above limits.max_pt_index, unknown options, an event queue of another
 * interface. PTL_PT_EQ_NEEDED: flow control without an event queue. PTL_PT_IN_USE: the index is
 * allocated. PTL_PT_FULL: none is free. PTL_NO_SPACE: no memory for the room that flow control
 * needs in the queue.
 */
PTL_EXPORT int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options,
                          ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
                          ptl_pt_index_t *pt_index);

/* PtlPTFree frees an index and drops its unexpected headers. PTL_PT_IN_USE: entries are linked
 * to it. PTL_ARG_INVALID (here and below): not allocated. */
PTL_EXPORT int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* PtlPTDisable waits until the deliveries in progress are over, then refuses all messages for
 * this index with PTL_NI_PT_DISABLED. Entries stay linked and may be appended. No event is
 * posted. */
PTL_EXPORT int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* PtlPTEnable lets the index accept messages again. */
PTL_EXPORT int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* ---- Identity (3.8, 3.9) --------------------------------------------------- */

/* PtlGetUid returns the user ID that messages of this process carry. */
PTL_EXPORT int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/* PtlGetId returns this process's ID as peers on the interface name it: nid and pid, or its rank in
 * the map (PTL_RANK_ANY before PtlSetMap). */
PTL_EXPORT int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* PtlGetPhysId returns this process's nid and pid, on any kind of interface. */
PTL_EXPORT int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/* ---- Memory descriptors (3.10) --------------------------------------------- */

/* PtlMDBind makes an MD. With start null and length PTL_SIZE_MAX it spans the
 * address space and a local offset is an address. PTL_ARG_INVALID: unknown
 * options, more than limits.max_iovecs parts or an array of them that cannot be
 * read, an event queue or a counter of another interface. PTL_NO_SPACE: limit
 * max_mds, or memory. */
PTL_EXPORT int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);

/* PtlMDRelease frees an MD. PTL_IN_USE: operations on it are in progress, or wait for a trigger. */
PTL_EXPORT int PtlMDRelease(ptl_handle_md_t md_handle);

/* ---- List entries (3.11) and match list entries (3.12) --------------------- */

/*
 * PtlLEAppend and PtlMEAppend append an entry to a list of a portal table index.
 * An arriving message takes the first entry that matches, of the priority list
 * or else of the overflow list; only then are its uid and its operation checked.
 * user_ptr appears in the entry's events.
 *
 * A message that an entry of the overflow list takes leaves an unexpected header, unless the entry
 * has PTL_ME_UNEXPECTED_HDR_DISABLE. An entry that is appended to the priority list first takes the
 * unexpected headers that it matches, oldest first: each gives an ..._OVERFLOW event. A use-once
 * entry takes one header, and is then not linked (AUTO_UNLINK instead of LINK); any other entry
 * takes all and is linked. The message may still be arriving: its ..._OVERFLOW event then comes
 * when it is complete.
 *
 * AUTO_UNLINK reports that a message has used up an entry. An entry of the overflow list gives
 * AUTO_FREE later: when no unexpected header refers to it any more, and no further event will.
 *
 * PTL_ARG_INVALID: an LE on a matching interface or an ME on a non-matching one,
 * an index that is not allocated, no such list, unknown options, more than
 * limits.max_iovecs parts, a counter of another interface. PTL_NO_SPACE: limit
 * max_entries, or memory. PTL_LIST_TOO_LONG: limit max_list_size.
 */
PTL_EXPORT int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                           ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle);
PTL_EXPORT int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                           ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

/* PtlLEUnlink and PtlMEUnlink take an entry off its list; no event is posted. PTL_IN_USE: a
 * message is being delivered to it (try again); an unexpected header refers to it (take that by
 * an append or a search first); or a triggered operation has not appended it yet.
 * PTL_ARG_INVALID also when the entry was unlinked automatically. */
PTL_EXPORT int PtlLEUnlink(ptl_handle_le_t le_handle);
PTL_EXPORT int PtlMEUnlink(ptl_handle_me_t me_handle);

/*
 * PtlLESearch and PtlMESearch look for the unexpected headers that an entry would take if it were
 * appended; complete messages only. With ..._USE_ONCE the search finds the oldest, else all.
 * PTL_SEARCH_ONLY gives a SEARCH event for each header and leaves it; PTL_SEARCH_DELETE removes
 * each header and gives its ..._OVERFLOW event. Nothing found gives one SEARCH event with
 * PTL_NI_NO_MATCH. The entry is never linked; of its memory only the length counts, with
 * PTL_ME_NO_TRUNCATE. With PTL_ME_EVENT_CT_OVERFLOW each header found counts as a success. The end
 * of the search counts as a failure, except that of a use-once search that has found one. Errors as
 * for appending.
 */
PTL_EXPORT int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                           ptl_search_op_t ptl_search_op, void *user_ptr);
PTL_EXPORT int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                           ptl_search_op_t ptl_search_op, void *user_ptr);

/* ---- Event queues (3.13) --------------------------------------------------- */

/* PtlEQAlloc makes a queue for at least `count` events. PTL_ARG_INVALID: count
 * is 0. PTL_NO_SPACE: limit max_eqs, or memory. */
PTL_EXPORT int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);

/* PtlEQFree frees a queue with the events in it; a thread that waits for it gets
 * PTL_ARG_INVALID. Later events of MDs and portal table entries that still name it are lost. */
PTL_EXPORT int PtlEQFree(ptl_handle_eq_t eq_handle);

/*
 * PtlEQGet takes the oldest event. PTL_EQ_EMPTY: there is none. PTL_EQ_DROPPED: there is one, but
 * the queue had run full and events older than it are lost. PtlEQWait waits until there is one. An
 * event goes to exactly one thread. PtlEQPoll waits up to `timeout` (0: not at all, or
 * PTL_TIME_FOREVER) for an event of any of `size` queues of one interface and stores the queue's
 * place in *which; it looks at them in turn. PTL_ARG_INVALID: size is 0, or queues of several
 * interfaces. With PINWHEEL_HPUS=0 PtlEQPoll runs handlers: none begins when the time is over, so
 * that it returns late by one handler at most; with a timeout of 0 it runs the handlers of all
 * messages that have come. PTL_ABORTED (PtlEQWait, PtlEQPoll): PtlAbort was called.
 */
PTL_EXPORT int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
PTL_EXPORT int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
PTL_EXPORT int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
                         ptl_event_t *event, unsigned int *which);

/* ---- Counting events (3.14) ------------------------------------------------ */

/* PtlCTAlloc makes a counter at {0, 0}. PTL_NO_SPACE: limit max_cts. */
PTL_EXPORT int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);

/* PtlCTFree frees a counter and drops the triggered operations that wait for it; a thread that
 * waits for it gets PTL_ARG_INVALID. */
PTL_EXPORT int PtlCTFree(ptl_handle_ct_t ct_handle);

/* PtlCTCancelTriggered drops the triggered operations that wait for a counter; the counter does not
 * change. */
PTL_EXPORT int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);

/* PtlCTGet reads a counter; it does not read the two fields at the same moment. */
PTL_EXPORT int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);

/*
 * PtlCTWait waits until success >= test or failure != 0 and stores the value. PtlCTPoll does so for
 * any of `size` counters of one interface, at most `timeout`, and stores the counter's place in
 * *which. PTL_CT_NONE_REACHED: the time is over; as in PtlEQPoll no handler begins after that.
 * PTL_ARG_INVALID: size is 0, or counters of several interfaces. PTL_ABORTED: PtlAbort was called.
 */
PTL_EXPORT int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);
PTL_EXPORT int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests,
                         unsigned int size, ptl_time_t timeout, ptl_ct_event_t *event,
                         unsigned int *which);

/* PtlCTSet sets a counter to a value, PtlCTInc adds to it; both may trigger operations.
 * PTL_ARG_INVALID (PtlCTInc): both fields are non-zero. */
PTL_EXPORT int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
PTL_EXPORT int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- Data movement (3.15) -------------------------------------------------- */

/*
 * PtlPut sends `length` bytes at local_offset of an MD to the target's entry. Events at the
 * initiator: SEND when the buffer may be reused, ACK as ack_req says. If the entry is shorter,
 * mlength < length arrive; an offset beyond its end gives mlength 0. Messages between two processes
 * on one interface are matched in the order of the calls. A target that does not exist gives
 * PTL_NI_UNDELIVERABLE in the events. PTL_ARG_INVALID: the range leaves the MD, length above
 * limits.max_msg_size, a rank outside the map or a physical id that no process can have, a pt_index
 * above 65535, PTL_ACK_REQ without an event queue, PTL_CT_ACK_REQ without a counter in the MD, an
 * unknown ack_req, PTL_ACK_REQ with PTL_MD_UNRELIABLE. PTL_NO_SPACE: no memory.
 */
PTL_EXPORT int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                      ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                      ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                      ptl_hdr_data_t hdr_data);

/* PtlGet fetches bytes of the target's entry into an MD. A REPLY event reports that they have come.
 * Otherwise as PtlPut. */
PTL_EXPORT int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                      ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                      ptl_size_t remote_offset, void *user_ptr);

/*
 * PtlAtomic does `operation` element by element on the target's entry, with the bytes of the MD as
 * the other operand, and stores the result there. PtlFetchAtomic also brings what was there before
 * to get_md, and PtlSwap, too:
 *
 *   PTL_SWAP                     target = put
 *   PTL_CSWAP, _NE, _LE, _LT,    target = put if operand ==, !=, <=, <, >=, >
 *     _GE, _GT                   target
 *   PTL_MSWAP                    target = (operand & put) | (~operand & target)
 *
 * `operand` is one element; it is read by the call, and only for CSWAP... and MSWAP, which work on
 * one element. The put side acts as in PtlPut (SEND), the get side as in PtlGet (REPLY). Each
 * element is atomic against all other operations of this kind, of any process, on the same memory
 * through the same interface. If an entry ends within an element, that element is not changed:
 * mlength counts whole elements. PTL_ARG_INVALID: as PtlPut, an illegal pair of operation and type,
 * a length that is no multiple of the type's size, is above limits.max_atomic_size
 * (max_fetch_atomic_size), or is not one element where it must be; MDs of two interfaces; an
 * operand that is needed and cannot be read.
 */
PTL_EXPORT int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                         ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                         ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                         ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                              ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                              ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                              ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                       ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                       ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                       ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation,
                       ptl_datatype_t datatype);

/* PtlAtomicSync makes the results of atomics that were done on this process's
 * memory visible to its plain loads, and its plain stores to later atomics. */
PTL_EXPORT int PtlAtomicSync(void);

/* ---- Triggered operations (3.16) ------------------------------------------- */

/*
 * Each does what the function in its name does, when success + failure of trig_ct_handle reaches
 * `threshold`, or at once if it has. Buffers are read then and not before, except for the operand
 * of PtlTriggeredSwap. Operations of one counter with the same threshold happen in the order of the
 * calls. The arguments are checked at once, by the call. PTL_ARG_INVALID: as the call in the name,
 * or counters and MDs of different interfaces. PTL_NO_SPACE: limit max_triggered_ops.
 */
PTL_EXPORT int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                               ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                               ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                               ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                               ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                               ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                               ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                               void *user_ptr, ptl_handle_ct_t trig_ct_handle,
                               ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                                  ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                                  ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                  ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                  ptl_op_t operation, ptl_datatype_t datatype,
                                  ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                       ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                                       ptl_size_t length, ptl_process_t target_id,
                                       ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                       ptl_size_t remote_offset, void *user_ptr,
                                       ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                       ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                                ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                                ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
                                ptl_op_t operation, ptl_datatype_t datatype,
                                ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                                 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
                                 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/* An extension of other implementations: entries that are appended, and unlinked, by a counter.
 * The handle is valid from the call on. An operation that cannot be done when it is triggered (a
 * limit, an entry in use) is lost; an append that fails posts a LINK event with PTL_NI_DROPPED. */
PTL_EXPORT int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                    const ptl_me_t *me, ptl_list_t ptl_list, void *user_ptr,
                                    ptl_handle_me_t *me_handle, ptl_handle_ct_t trig_ct_handle,
                                    ptl_size_t threshold);
PTL_EXPORT int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                                    ptl_size_t threshold);

/* ---- Deferred communication (3.17) ----------------------------------------- */

/* PtlStartBundle announces that many operations follow, PtlEndBundle that there are no more;
 * pairs of them may be nested. This NIC starts each operation at once nevertheless.
 * PTL_ARG_INVALID (PtlEndBundle): no bundle was started. */
PTL_EXPORT int PtlStartBundle(ptl_handle_ni_t ni_handle);
PTL_EXPORT int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* ---- Handles (3.18) -------------------------------------------------------- */

/* PtlHandleIsEqual returns non-zero if both handles name one object, else 0:
 * not a return code. Any value is allowed, PTL_INVALID_HANDLE included. */
PTL_EXPORT int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

#ifdef __cplusplus
}
#endif

#endif
