/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sPIN on Portals 4, the host's side: attach handlers to an entry.
 *
 * A handler is a small C function that the NIC runs on the packets of a message
 * that matched an entry. It is written against spin_handler.h; this header is
 * for the program that appends the entry.
 *
 *      PtlMEAppendHandlers ──► entry ──► header handler      once, first
 *                                   ├──► payload handlers    one a packet, in parallel
 *                                   └──► completion handler  once, last, before the event
 *                               all of them: HPU memory (`state`) and, by DMA, two ranges of
 *                               the host: the entry's and handler_host_mem
 *
 * The interface is appendix B of "sPIN: High-performance streaming Processing
 * in the Network" (SC'17). Every function returns a PTL_ code and may be called
 * by any thread.
 */
#ifndef SPIN_H
#define SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of handlers; defined in spin_handler.h. */
typedef struct ptl_header ptl_header_t;
typedef struct ptl_payload ptl_payload_t;

typedef int (*ptl_header_handler_t)(const ptl_header_t header, void *state);
typedef int (*ptl_payload_handler_t)(const ptl_payload_t payload, void *state);
typedef int (*ptl_completion_handler_t)(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                        void *state);

/* A handle of a timer that runs handlers. */
typedef ptl_handle_any_t ptl_handle_timer_t;

/* A handle of a piece of HPU memory. */
typedef ptl_handle_any_t ptl_handle_hpu_mem_t;
#define PTL_HPU_MEM_NONE ((ptl_handle_hpu_mem_t)0xbfffffff)

/* Options of ptl_handlers_t. */
/* handler_host_mem is an array of ptl_iovec_t, and handler_host_length their number */
#define PTL_HANDLER_IOVEC (1u << 0)
/* the entry is linked, but no message matches it until PtlHandlersActivate() is called */
#define PTL_HANDLER_INACTIVE (1u << 1)
/* payload and completion handlers also get the user header, by PtlHandlerHeader() */
#define PTL_HANDLER_KEEP_USER_HDR (1u << 2)

/* PTL_HANDLER_MESSAGE_STATE() is the option that gives each message at the entry a zeroed block of
 * `bytes` bytes of its own, which its handlers reach by PtlHandlerMessageState(). At most
 * PTL_SPIN_MESSAGE_STATE bytes; 0 is none. (Beyond the paper.) */
#define PTL_HANDLER_MESSAGE_STATE(bytes)                                                           \
    ((unsigned long long)(bytes) < 0xffffffu ? (unsigned int)(bytes) << 8 : 0xffffff00u)
#define PTL_SPIN_MESSAGE_STATE 4096

/* The three handlers of an entry, and the memory they work on. Any handler may
 * be NULL and is then not called. */
typedef struct {
    ptl_header_handler_t header_handler;
    ptl_payload_handler_t payload_handler;
    ptl_completion_handler_t completion_handler;
    /* PTL_HPU_MEM_NONE: the library allocates hpu_initial_length zeroed bytes for this entry, and
     * frees them with it */
    ptl_handle_hpu_mem_t hpu_mem;
    /* copied to the start of the HPU memory at append; NULL: the HPU memory keeps its contents */
    const void *hpu_initial_state;
    ptl_size_t hpu_initial_length;  /* bytes of the state, <= max_initial_state */
    void *handler_host_mem;         /* a second range of the host, for results */
    ptl_size_t handler_host_length; /* its bytes; with PTL_HANDLER_IOVEC the number of its parts */
    /* how many bytes at the start of a message are its user header, <= max_user_hdr_size */
    ptl_size_t user_hdr_length;
    unsigned int options; /* PTL_HANDLER_ options; another bit gives PTL_ARG_INVALID */
    /* bit i is set if HPU i may run the handlers; all set bits are below num_hpus; 0: any HPU may.
     * At most as many handlers of the entry run at once as bits are set, so with one bit they run
     * one after the other */
    uint64_t hpu_mask;
} ptl_handlers_t;

/* The limits of an NI for handlers. Sizes are in bytes. */
typedef struct {
    ptl_size_t max_user_hdr_size;       /* user header of a message */
    ptl_size_t max_payload_size;        /* payload of a packet */
    ptl_size_t max_handler_mem;         /* one piece of HPU memory */
    ptl_size_t max_initial_state;       /* hpu_initial_length */
    ptl_size_t min_fragmentation_limit; /* packets begin at multiples of this in the payload */
    /* budget of a handler, in cycles for each byte; PTL_SIZE_MAX: no limit */
    ptl_size_t max_cycles_per_byte;
    /* HPUs: threads that run handlers (PINWHEEL_HPUS); if that is 0, how many handlers may be
     * active at once */
    unsigned int num_hpus;
} ptl_spin_limits_t;

/* The values that handlers have added with PtlHandlerCounterAdd() to one counter. */
typedef struct {
    uint64_t sum;   /* sum of the values */
    uint64_t count; /* how many values there were */
} ptl_spin_counter_t;

#define PTL_SPIN_COUNTERS 64       /* counters of an NI */
#define PTL_SPIN_OUTPUT 496        /* bytes of an HPU's printed text that are kept */
#define PTL_SPIN_TIMERS 256        /* timers that an NI can have */
#define PTL_SPIN_TIMER_LEAST 10000 /* nanoseconds: the shortest period of a timer */

/* ni_fail_type of the event of a message whose handler ended in an error: the first error of the
 * message. mlength is the number of bytes that were deposited nevertheless. If there is no room
 * to run a message's next handler for PINWHEEL_HPU_PATIENCE_MS, the message ends with
 * PTL_NI_DROPPED; or, if its portal table entry has flow control, the entry is disabled and the
 * message ends with PTL_NI_PT_DISABLED, which its completion handler, if it runs, learns by its
 * argument. */
/* the handler returned FAIL, or a code that handlers of its kind may not return */
#define PTL_NI_HANDLER_FAIL 32
#define PTL_NI_HANDLER_TIMEOUT 33 /* the handler ran for longer than PINWHEEL_HANDLER_BUDGET_US */
/* the handler left its memory: a fault, or a DMA out of range. PTL_NI_SEGV is another error: a
 * handler's DMA, or the NIC, could not access memory of the program within a range of the entry. */
#define PTL_NI_HANDLER_SEGV 34

/* PtlHPUAllocMem() allocates `length` zeroed bytes of HPU memory, which start at
 * a multiple of 64. Entries may share it; it outlives them until it is freed.
 * PTL_ARG_INVALID: no such NI, or a length of 0 or over max_handler_mem.
 * PTL_NO_SPACE: no memory or no handle is left, or PINWHEEL_HPU_MEMORY is reached. */
PTL_EXPORT int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length,
                              ptl_handle_hpu_mem_t *hpu_mem);

/* PtlHPUFreeMem() frees HPU memory. PTL_IN_USE while an entry refers to it. */
PTL_EXPORT int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_mem);

/* PtlHPURead() and PtlHPUWrite() copy `length` bytes at `offset` of HPU memory to `dst` or from
 * `src`, also while handlers use it: handlers and program must synchronise such accesses
 * themselves. PTL_ARG_INVALID: no such HPU memory, a range outside of it, or memory of the
 * program that cannot be accessed. (Beyond the paper: RED-SEA D4.7, 4.4.6.) */
PTL_EXPORT int PtlHPURead(ptl_handle_hpu_mem_t hpu_mem, ptl_size_t offset, void *dst,
                          ptl_size_t length);
PTL_EXPORT int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_mem, ptl_size_t offset, const void *src,
                           ptl_size_t length);

/* PtlMEAppendHandlers() is PtlMEAppend() for an entry with handlers, which run for every message
 * that arrives for it, but not for a message that the entry finds in the unexpected list.
 * `handlers` may be NULL (no handlers) and may be reused after the call. PTL_ARG_INVALID also
 * for a limit exceeded, an unknown option, handlers on the overflow list, a second range that
 * cannot be read, or HPU memory that is too short or of another NI, and, with PINWHEEL_HPU=rv32,
 * for a handler without RV32 code (docs/rv32-handlers.md), whose name is printed on standard
 * error. */
PTL_EXPORT int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                   const ptl_me_t *me, const ptl_handlers_t *handlers,
                                   ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

/* PtlLEAppendHandlers() is PtlMEAppendHandlers() for an NI without matching. */
PTL_EXPORT int PtlLEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                   const ptl_le_t *le, const ptl_handlers_t *handlers,
                                   ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle);

/* PtlHandlersActivate() lets messages find an entry that was appended with PTL_HANDLER_INACTIVE:
 * until then the entry is at its place in the list, and matching skips it. `me_handle` is the
 * handle of an ME or an LE. PTL_ARG_INVALID: it is neither, or the entry is not inactive.
 * PTL_IN_USE: PtlHandlersInvoke() is using the entry, which is use-once. (Beyond the paper:
 * D4.7, 4.4.6.) */
PTL_EXPORT int PtlHandlersActivate(ptl_handle_me_t me_handle);

/* PtlHandlersInvoke() makes the NIC run the handlers of an entry as if a put of the `length`
 * bytes at `msg` had come from this process: header, payload and completion handler, event and
 * counter; a use-once entry is used up. Permissions and match bits are not checked. The bytes
 * are copied, and the call does not wait for the handlers. The entry may be inactive: so a
 * handler can set up its HPU memory before the first message comes. PTL_ARG_INVALID: the handle
 * is of no entry with handlers, the message is too long, or its memory cannot be read.
 * PTL_IN_USE: a message is using the entry, which is use-once. PTL_NO_SPACE: memory is short, or
 * PINWHEEL_HPU_QUEUE such calls are in progress. (Beyond the paper: D4.7, 4.4.6 and 4.4.7.)
 * PtlHandlersInvokeEx() does the same with the given header data; without it they are 0. */
PTL_EXPORT int PtlHandlersInvoke(ptl_handle_me_t me_handle, const void *msg, ptl_size_t length);
PTL_EXPORT int PtlHandlersInvokeEx(ptl_handle_me_t me_handle, const void *msg, ptl_size_t length,
                                   ptl_hdr_data_t hdr_data);

/* PtlHandlersTimer() makes the NIC run the handlers of an entry `delay_ns` from now, and then
 * every `period_ns` unless that is 0: the header handler with type PTL_REQUEST_TIMER, `hdr_data`
 * and no bytes, then the completion handler. For the host a tick is no message: it posts no
 * event, counts nothing, and leaves an inactive or use-once entry as it is; an error of its
 * handlers is posted like that of a put. A tick that is due before the last one has ended is
 * left out. A timer without period ends with its tick; any timer ends with its entry, with its
 * NI, or by PtlHandlersTimerCancel(), but a tick that has begun is completed. PTL_ARG_INVALID:
 * the handle is of no entry with handlers, the period is below PTL_SPIN_TIMER_LEAST, or a time
 * is 2^60 ns or more; or there is no such timer (any more). PTL_NO_SPACE: the NI has
 * PTL_SPIN_TIMERS timers, or the kernel gives no timer. (Beyond the paper.) */
PTL_EXPORT int PtlHandlersTimer(ptl_handle_me_t me_handle, uint64_t delay_ns, uint64_t period_ns,
                                ptl_hdr_data_t hdr_data, ptl_handle_timer_t *timer);
PTL_EXPORT int PtlHandlersTimerCancel(ptl_handle_timer_t timer);

/* PtlSpinLimits() stores the limits of the NI for handlers. */
PTL_EXPORT int PtlSpinLimits(ptl_handle_ni_t ni_handle, ptl_spin_limits_t *limits);

/* PtlSpinCounter() reads counter `index`, below PTL_SPIN_COUNTERS, of an NI: the values that the
 * handlers of all its entries have added since the NI was opened. While a handler adds a value,
 * sum may have it and count not yet, or the reverse. (Beyond the paper: D4.7, 4.4.3.) */
PTL_EXPORT int PtlSpinCounter(ptl_handle_ni_t ni_handle, unsigned int index,
                              ptl_spin_counter_t *counter);

/* PtlSpinOutput() copies the newest text that handlers have printed on an HPU of the NI's NIC,
 * and ends it with a null character: `size` bytes with that, of at most PTL_SPIN_OUTPUT that are
 * kept. `*printed` is the number of all bytes that were printed. PTL_ARG_INVALID: there is no
 * such HPU, or size is 0. (Beyond the paper.) */
PTL_EXPORT int PtlSpinOutput(ptl_handle_ni_t ni_handle, unsigned int hpu, char *text,
                             ptl_size_t size, ptl_size_t *printed);

#ifdef __cplusplus
}
#endif

#endif
