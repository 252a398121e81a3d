/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sPIN on Portals 4, the handler's side: the only header that a file of handlers
 * includes.
 *
 *      __handler int my_header(const ptl_header_t h, void *state);
 *      __handler int my_payload(const ptl_payload_t p, void *state);
 *      __handler int my_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
 *                                  void *state);
 *      PTL_HANDLER(my_payload);        registers it by name, after its definition
 *
 * A handler is plain code: no system calls, no locks, no allocation. It touches
 * its stack, its HPU memory (`state`), its packet, constant static data and, by
 * DMA, the two host ranges of its entry. On RV32 cores (PINWHEEL_HPU=rv32) whatever leaves these
 * ends the handler with SEGV. Natively a DMA outside the ranges does, and what the processor's
 * memory protection notices; an access to other memory that the process may access, as of a byte
 * just outside the packet, is not noticed: try a new handler on RV32 first. The call that ends a
 * handler does not return, and what the handler did before stays done. An integer division by 0,
 * and that of the smallest number by -1, ends it with SEGV, too. A handler that runs for longer
 * than PINWHEEL_HANDLER_BUDGET_US, in processor time without a PtlHandlerYield(), is
 * ended in the same way with TIMEOUT.
 *
 * The functions below are for handlers. Elsewhere PtlHandlerCAS() and
 * PtlHandlerFAdd() work, the others do nothing and give PTL_FAIL, false or 0.
 */
#ifndef SPIN_HANDLER_H
#define SPIN_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a handler is called with ---- */

typedef enum {
    PTL_REQUEST_PUT,
    PTL_REQUEST_GET,
    PTL_REQUEST_ATOMIC,
    PTL_REQUEST_FETCH_ATOMIC,
    PTL_REQUEST_SWAP,
    PTL_REQUEST_TIMER /* no message: a tick of a timer, spin.h */
} ptl_request_type_t;

typedef struct ptl_header {
    ptl_request_type_t type;
    ptl_size_t length;       /* of the message, user header or operand included, truncated or not */
    ptl_process_t target_id; /* this process, as the initiator named it */
    ptl_process_t source_id; /* the initiator */
    ptl_match_bits_t match_bits;
    ptl_size_t offset; /* in the entry, where what the request says begins: of a put its first
                          byte, or with PROCESS_DATA the first behind the user header; of a get,
                          atomic or swap the first that is read or changed. That of the initiator,
                          which may lie behind the entry's end; with PTL_ME_MANAGE_LOCAL the
                          entry's own, behind all that matched before it, each with its length as
                          far as there was room, whatever its handlers did with it. Offsets of
                          PtlHandlerDMA... and of packets are not counted from there. */
    ptl_hdr_data_t hdr_data;
    const void *user_hdr; /* of a put its first user_hdr_length bytes; the operand of a swap */
    ptl_size_t user_hdr_length; /* less than the entry says if the message is shorter */
} ptl_header_t;

typedef struct ptl_payload {
    ptl_size_t length; /* of this packet */
    ptl_size_t offset; /* of this packet in the message, user header not counted */
    uint8_t *base;     /* its bytes: valid, and the handler's to overwrite, until it returns */
} ptl_payload_t;

/* The return code of a handler. Any other value, or one that its kind may not return, counts as
 * FAIL. */
enum ptl_handler_return {
    SUCCESS = 0,              /* payload, completion */
    DROP = 1,                 /* header: the message; payload: this packet */
    DROP_PENDING = 2,         /* header */
    PROCESS_DATA = 3,         /* header: call payload handlers */
    PROCESS_DATA_PENDING = 4, /* header */
    PROCEED = 5,              /* header: do what the request says, call no handler */
    PROCEED_PENDING = 6,      /* header */
    SUCCESS_PENDING = 7,      /* completion */
    FAIL = 8,                 /* all: the handler met an error */
    SEGV = 9,                 /* raised by the run time; returned, it counts as FAIL */
    TIMEOUT = 10              /* the same: it ran for longer than its budget */
};

/* ---- Declaring handlers ---- */

/* A handler is known by its address, so it keeps a body of its own. */
#define __handler __attribute__((noinline))

/* One registered handler. The linker collects them in the section
 * "pinwheel_handlers" of each program or library. */
struct ptl_handler_entry {
    void (*address)(void);
    const char *name;
    const void *image; /* the handler compiled for another HPU; NULL: native code only */
};

#if defined(__has_attribute)
#if __has_attribute(retain)
#define PTL_HANDLER_RETAIN retain,
#endif
#endif
#ifndef PTL_HANDLER_RETAIN
#define PTL_HANDLER_RETAIN
#endif

/* The image is a file that `pinwheel cc --image` has made of this source; it becomes a part of
 * the program. */
#ifdef PTL_HANDLER_IMAGE_FILE
__asm__(".pushsection .rodata.ptl_handler_image,\"a\",@progbits\n\t"
        ".balign 16\n"
        "ptl_handler_image: .ascii \"PTLRV32\\1\"\n\t"
        ".quad 2f - 1f\n"
        "1:\t.incbin \"" PTL_HANDLER_IMAGE_FILE "\"\n"
        "2:\t.popsection");
extern const char ptl_handler_image[] __attribute__((visibility("hidden")));
#define PTL_HANDLER_IMAGE ptl_handler_image
#else
#define PTL_HANDLER_IMAGE NULL
#endif

/* A note of the program says where its handlers are: so they are found in memory. On an HPU
 * they are a table of the image. */
#ifdef __riscv
#define PTL_HANDLER_CONST const
#define PTL_HANDLER_NOTE
#else
#define PTL_HANDLER_CONST
#define PTL_HANDLER_NOTE                                                                           \
    __asm__(".pushsection .note.pinwheel,\"a\",@note\n\t"                                          \
            ".balign 4\n\t"                                                                        \
            ".long 9, 8, 1\n\t"                                                                    \
            ".asciz \"Pinwheel\"\n\t"                                                              \
            ".balign 4\n\t"                                                                        \
            ".hidden __start_pinwheel_handlers\n\t"                                                \
            ".hidden __stop_pinwheel_handlers\n\t"                                                 \
            ".long __start_pinwheel_handlers - .\n\t"                                              \
            ".long __stop_pinwheel_handlers - .\n\t"                                               \
            ".popsection");
#endif

/* A handler that is registered has the type of one of the three kinds above. */
#ifdef __cplusplus
extern "C++" {
constexpr bool ptl_handler_is(int (*)(const ptl_header_t, void *))
{
    return true;
}
constexpr bool ptl_handler_is(int (*)(const ptl_payload_t, void *))
{
    return true;
}
constexpr bool ptl_handler_is(int (*)(ptl_size_t, bool, void *))
{
    return true;
}
constexpr bool ptl_handler_is(...)
{
    return false;
}
}
#define PTL_HANDLER_IS(handler) ptl_handler_is(handler)
#define PTL_HANDLER_ASSERT static_assert
#else
#define PTL_HANDLER_IS(handler)                                                                    \
    _Generic(&(handler), int (*)(const ptl_header_t, void *) : 1,                                  \
             int (*)(const ptl_payload_t, void *) : 1, int (*)(ptl_size_t, bool, void *) : 1,      \
             default : 0)
#define PTL_HANDLER_ASSERT _Static_assert
#endif

#define PTL_HANDLER(handler)                                                                       \
    PTL_HANDLER_ASSERT(PTL_HANDLER_IS(handler),                                                    \
                       #handler " has the type of none of the three kinds of handlers: "           \
                                "int (const ptl_header_t, void *), "                               \
                                "int (const ptl_payload_t, void *), "                              \
                                "int (ptl_size_t, bool, void *)");                                 \
    PTL_HANDLER_NOTE                                                                               \
    __attribute__((used, PTL_HANDLER_RETAIN section("pinwheel_handlers"),                          \
                   aligned(sizeof(void *)))) static PTL_HANDLER_CONST struct ptl_handler_entry     \
        ptl_handler_entry_##handler = {(void (*)(void))handler, #handler, PTL_HANDLER_IMAGE}

/* PTL_HANDLER_STATE(struct NAME) says that a struct is handler state, or otherwise shared by
 * handlers and host: `pinwheel cc` sees to it that both have the same layout. Without any, it
 * looks at every struct that a variable of a handler points to. */
#define PTL_HANDLER_JOIN_(a, b) a##b
#define PTL_HANDLER_JOIN(a, b) PTL_HANDLER_JOIN_(a, b)
#ifdef PTL_HANDLER_CHECK
#define PTL_HANDLER_STATE(type)                                                                    \
    __attribute__((used, section("pinwheel_states"))) static type *const PTL_HANDLER_JOIN(         \
        ptl_handler_state_, __COUNTER__) = NULL
#else
#define PTL_HANDLER_STATE(type) typedef type *PTL_HANDLER_JOIN(ptl_handler_state_, __COUNTER__)
#endif

/* ---- The message (beyond the paper) ----
 * All handlers of a message may ask whose it is, and share what is its own. A tick of a timer is
 * asked about as a message is: its header has the type PTL_REQUEST_TIMER, and it has no state. */

/* PtlHandlerHeader() stores what the header handler of the message is called with, whether the
 * entry has a header handler or not. `user_hdr` is the user header in a header handler; in the
 * others it is a copy with PTL_HANDLER_KEEP_USER_HDR, and NULL without; what it points to is there
 * until the handler returns. PTL_FAIL: the caller is no handler, or its interface is closed. Memory
 * that cannot be written ends the handler with SEGV. */
PTL_EXPORT int PtlHandlerHeader(ptl_header_t *header);

/* PtlHandlerMessageState() gives the message's own memory, which begins at a multiple of 64 and has
 * as many bytes as PTL_HANDLER_MESSAGE_STATE() gave the entry: zeros, until a handler of this
 * message writes there. NULL: the entry has none, the message is a tick of a timer, or the caller
 * is no handler. What the header handler has written is seen by all others, what payload handlers
 * have written by the completion handler. Payload handlers of a message run side by side: among
 * them atomics are seen in order, and nothing else. The pointer is the handler's until it returns;
 * on RV32 cores an access by it in a handler that has not asked is SEGV. */
PTL_EXPORT void *PtlHandlerMessageState(void);

/* ---- Host memory ----
 * `offset` counts from the start of the host range that `options` names. B
 * returns when the transfer is done, NB at once with a handle for Test or Wait;
 * until then `local` (`cmpval`, `before`) belongs to the transfer. Atomics and
 * transfers below 64 KiB are done at once; larger ones while the handler goes on, by a
 * thread that one of 1 MiB or more wakes up, if the process may use a second processor;
 * by Test, a part if nothing has happened since it was asked before; and by Wait. What is
 * not done when the handler returns is done then; when it is ended by an error, it stops. Handles
 * die with the handler. Of a range in parts (PTL_IOVEC) all transfers are done at once, and an
 * element of an atomic lies in one part, else SEGV. B returns PTL_OK. Atomics are atomic with
 * those of Portals operations of the same size on that memory. */

#define PTL_ME_HOST_MEM 1u      /* the entry's own range */
#define PTL_HANDLER_HOST_MEM 2u /* handler_host_mem */

typedef uint32_t ptl_dma_h;

PTL_EXPORT int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t length,
                                    unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t length,
                                           unsigned int options);
PTL_EXPORT int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t length,
                                      unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t length,
                                             unsigned int options);

/* PtlHandlerDMACASB() atomically replaces the 8 bytes at `offset`, whose address
 * is a multiple of 8, with `swapval` if they equal *cmpval. If they do not,
 * *cmpval receives what was found. A misaligned address is SEGV. */
PTL_EXPORT int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                                 unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                                        unsigned int options);

/* PtlHandlerDMAFetchAddB() atomically adds `inc` to the naturally aligned integer
 * at `offset`, of a type from PTL_INT8_T to PTL_UINT64_T, and stores what it was
 * in *before, extended to 64 bits as the type's sign asks. `before` may be
 * NULL. Another type ends the handler with FAIL. */
PTL_EXPORT int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                      ptl_datatype_t type, unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                             ptl_datatype_t type, unsigned int options);

/* PtlHandlerDMATest() tells whether a transfer is done; on an RV32 core, whether the cycles have
 * passed that PtlHandlerDMAWait() would wait for. A handle that this handler was not given ends it
 * with FAIL, memory that is not there with SEGV. */
PTL_EXPORT bool PtlHandlerDMATest(ptl_dma_h handle);

/* PtlHandlerDMAWait() returns when it is. */
PTL_EXPORT void PtlHandlerDMAWait(ptl_dma_h handle);

/* ---- HPU memory, which handlers running in parallel share ----
 * Besides, the atomics of C11 (<stdatomic.h>) and of compilers (__atomic_...) work on objects of 1,
 * 2, 4 and 8 bytes, natively and on RV32. */

/* PtlHandlerCAS() atomically replaces *value with `swapval` if it equals
 * `cmpval`, and tells whether it did. */
PTL_EXPORT bool PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval);

/* PtlHandlerFAdd() atomically adds `inc` to *value and stores what it was in
 * *before, unless that is NULL. */
PTL_EXPORT int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc);

/* ---- HPUs ---- */

/* Handlers that are active at once, at most; and which of them this one is: a
 * number below PTL_NUM_HPUS that no other active handler of the NI has, and
 * that stays the same until the handler returns. */
#define PTL_NUM_HPUS 64
#define PTL_MY_HPU PtlHandlerMyHPU()

PTL_EXPORT unsigned int PtlHandlerMyHPU(void);

/* PtlHandlerYield() lets other handlers run. */
PTL_EXPORT void PtlHandlerYield(void);

/* ---- Telemetry (beyond the paper) ---- */

/* PtlHandlerCycles() is the time stamp counter of the processor; differences within one
 * handler that has not yielded are its cycles at the nominal clock. */
PTL_EXPORT uint64_t PtlHandlerCycles(void);

/* PtlHandlerCounterAdd() adds a value to counter `index` of the NI, which the host reads with
 * PtlSpinCounter(). PTL_ARG_INVALID: there is no such counter. */
PTL_EXPORT int PtlHandlerCounterAdd(unsigned int index, uint64_t value);

/* PtlHandlerPrintf() prints as printf() does: conversions d i u x X o c s p f e g and %%, with
 * their flags, width, precision and length. Of each HPU the newest bytes are kept; PtlSpinOutput()
 * and the command `pinwheel nic` show them. One call prints 256 bytes at most. PTL_ARG_INVALID:
 * another conversion, or a width or precision over 64; what stands before it is not printed either.
 * A string that is not there is SEGV. */
PTL_EXPORT int PtlHandlerPrintf(const char *format, ...);
int PtlHandlerPrintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Counters of the host ----
 * `ct_handle` is of the same NI as the entry, else PTL_ARG_INVALID. What a change triggers happens
 * before the call returns. They are otherwise as PtlCTGet(), PtlCTSet() and PtlCTInc(). */

PTL_EXPORT int PtlHandlerCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
PTL_EXPORT int PtlHandlerCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
PTL_EXPORT int PtlHandlerCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- Messages ----
 * The portal index of the entry is used, or with Ex the one given. Calls that name memory as
 * Host use the memory of the entry, at an offset: they enqueue the operation, as if the host had,
 * never wait, and keep the entry until the operation has ended: it is not unlinked before. Calls
 * that name it as Device use the handler's: one packet at most (PTL_ARG_INVALID beyond
 * max_payload_size), which may be reused on return.
 *
 * What cannot leave at once, since its target takes nothing, waits in a place of its target's.
 * There are PINWHEEL_HANDLER_QUEUE of them for messages from handlers' memory, and more for those
 * from entries'. A target's first place is always its own; of the others a target has no more than
 * are free, and an entry no more at a target than that may still have: so one that takes nothing,
 * or an entry that floods, stops no others. Without a place for it, a message from an entry's
 * memory is refused at once (PTL_NO_SPACE); one from the handler's suspends the handler, for
 * PINWHEEL_HPU_PATIENCE_MS at most, and is refused then.
 *
 * Events go to the event queue of the entry: ACK with PTL_ACK_REQ, and SEND only if the
 * message was lost. With PTL_CT_ACK_REQ and PTL_OC_ACK_REQ the acknowledgement is counted,
 * as one, by the counter of the entry (its ct_handle).
 *
 * They return PTL_OK, or a code of this list, and then nothing was sent; those that wait for an
 * answer have more, which stand at the calls.
 *
 *     PTL_ARG_INVALID   the target is a rank outside the map, or a physical id that no process can
 *                       have; `pt_index` is above 65535; the length is beyond the limit that
 *                       stands at the call; of those with `ack_req`: it is no request, or
 *                       PTL_ACK_REQ without an event queue of the entry, or PTL_CT_ACK_REQ or
 *                       PTL_OC_ACK_REQ without its counter
 *     PTL_NO_SPACE      no memory; and as said above
 *     PTL_FAIL          the caller is no handler
 *
 * Memory that is not there ends the handler with SEGV: `local`, `before` and `operand` that it may
 * not read or write; an offset and length that are not in the entry. */

/* PTL_HANDLER_NOWAIT, added to the `ack_req` of a put or an atomic, has it never suspend the
 * handler: without a place the message is refused at once. A library that does not know it refuses
 * every message that has it, with PTL_ARG_INVALID, also where the handler is device code. */
#define PTL_HANDLER_NOWAIT 0x80u

/* PtlHandlerUserPtr() makes a user_ptr of a number of 64 bits, as a pointer of the host's that
 * the state holds: on an HPU whose pointers are shorter, one that stands for it in this call of
 * the handler. There are 16 of them a call, one more ends the handler with FAIL. */
#ifdef __riscv
void *PtlHandlerUserPtr(uint64_t value);
#else
static inline void *PtlHandlerUserPtr(uint64_t value)
{
    return (void *)(uintptr_t)value;
}
#endif

/* PtlHandlerPutFromDevice() and Ex give PTL_ARG_INVALID for a length beyond max_payload_size. */
PTL_EXPORT int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                                       ptl_process_t target_id, ptl_match_bits_t match_bits,
                                       ptl_size_t remote_offset, void *user_ptr,
                                       ptl_hdr_data_t hdr_data);
PTL_EXPORT int PtlHandlerPutFromDeviceEx(const void *local, ptl_size_t length,
                                         ptl_ack_req_t ack_req, ptl_process_t target_id,
                                         ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                         ptl_size_t remote_offset, void *user_ptr,
                                         ptl_hdr_data_t hdr_data);

/* PtlHandlerPutFromHost() and Ex read the data when it is sent. They give PTL_ARG_INVALID for a
 * length beyond max_msg_size. */
PTL_EXPORT int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                                     ptl_process_t target_id, ptl_match_bits_t match_bits,
                                     ptl_size_t remote_offset, void *user_ptr,
                                     ptl_hdr_data_t hdr_data);
PTL_EXPORT int PtlHandlerPutFromHostEx(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                                       ptl_process_t target_id, ptl_pt_index_t pt_index,
                                       ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                       void *user_ptr, ptl_hdr_data_t hdr_data);

/* What handlers fetch, by the calls from here on that get, fetch or swap, passes all that their
 * process has sent to the target before, and what that has sent them: so handlers that ask each
 * other, in a circle, or their own process, are answered. It need not find at the target what the
 * same handler has put there before. Where it meets an entry with handlers, these may keep it
 * waiting.
 *
 * PtlHandlerGetToDevice() and Ex suspend the handler until the data is there. When none has come in
 * PINWHEEL_HPU_PATIENCE_MS the NIC withdraws the question, and the handler waits as long again to
 * hear what has become of it. So there are these ends:
 *
 *     PTL_OK        it is done, once, and the data is there
 *     PTL_ABORTED   it was withdrawn: the target has not done it, and never will; the handler may
 *                   ask again
 *     PTL_FAIL      the target refused it; or it is not known whether it was done, or will be: the
 *                   target is dead, or does not answer, or its handlers have the question
 *
 * PTL_ARG_INVALID: the length is beyond max_payload_size. */
PTL_EXPORT int PtlHandlerGetToDevice(void *local, ptl_size_t length, ptl_process_t target_id,
                                     ptl_match_bits_t match_bits, ptl_size_t remote_offset);
PTL_EXPORT int PtlHandlerGetToDeviceEx(void *local, ptl_size_t length, ptl_process_t target_id,
                                       ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                       ptl_size_t remote_offset);

/* PtlHandlerGetToHost() and Ex get into the entry. PTL_ARG_INVALID: the length is beyond
 * max_msg_size. What fails at the target is told by the REPLY. The REPLY is to the entry as a
 * message that has come: its options say whether there is an event and what is counted. So a header
 * handler that gets, and returns DROP_PENDING, has its entry complete when the data is there. */
PTL_EXPORT int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                                   ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                   void *user_ptr);
PTL_EXPORT int PtlHandlerGetToHostEx(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                                     ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                     ptl_size_t remote_offset, void *user_ptr);

/* PtlHandlerAtomicFromDevice() and Ex give PTL_ARG_INVALID for a length that is beyond
 * max_payload_size or max_atomic_size, or no multiple of an element's size, and for an operation
 * that is none of PtlAtomic()'s or does not go with the datatype. */
PTL_EXPORT int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t length,
                                          ptl_ack_req_t ack_req, ptl_process_t target_id,
                                          ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                          void *user_ptr, ptl_hdr_data_t hdr_data,
                                          ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerAtomicFromDeviceEx(const void *local, ptl_size_t length,
                                            ptl_ack_req_t ack_req, ptl_process_t target_id,
                                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                            ptl_size_t remote_offset, void *user_ptr,
                                            ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                            ptl_datatype_t datatype);
/* PtlHandlerAtomicFromHost() and Ex give it for the same, but that max_payload_size is no limit. */
PTL_EXPORT int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                                        ptl_process_t target_id, ptl_match_bits_t match_bits,
                                        ptl_size_t remote_offset, void *user_ptr,
                                        ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                        ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerAtomicFromHostEx(ptl_size_t offset, ptl_size_t length,
                                          ptl_ack_req_t ack_req, ptl_process_t target_id,
                                          ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                          ptl_size_t remote_offset, void *user_ptr,
                                          ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                          ptl_datatype_t datatype);

/* PtlHandlerFetchAtomicFromDevice() and Ex store what the target found in `before`, for which the
 * handler waits as for PtlHandlerGetToDevice(), with PTL_FAIL and PTL_ABORTED as there.
 * PTL_ARG_INVALID: the length is beyond max_payload_size or max_fetch_atomic_size, or no multiple
 * of an element's size, or the operation is none of PtlFetchAtomic()'s or does not go with the
 * datatype. */
PTL_EXPORT int PtlHandlerFetchAtomicFromDevice(void *before, const void *local, ptl_size_t length,
                                               ptl_process_t target_id, ptl_match_bits_t match_bits,
                                               ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                               ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerFetchAtomicFromDeviceEx(void *before, const void *local, ptl_size_t length,
                                                 ptl_process_t target_id, ptl_pt_index_t pt_index,
                                                 ptl_match_bits_t match_bits,
                                                 ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                                 ptl_op_t operation, ptl_datatype_t datatype);
/* PtlHandlerFetchAtomicFromHost() and Ex store it at `get_offset` of the entry, with a REPLY as for
 * PtlHandlerGetToHost(). PTL_ARG_INVALID: as FromDevice, but that max_payload_size is no limit. */
PTL_EXPORT int PtlHandlerFetchAtomicFromHost(ptl_size_t get_offset, ptl_size_t put_offset,
                                             ptl_size_t length, ptl_process_t target_id,
                                             ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                             void *user_ptr, ptl_hdr_data_t hdr_data,
                                             ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerFetchAtomicFromHostEx(ptl_size_t get_offset, ptl_size_t put_offset,
                                               ptl_size_t length, ptl_process_t target_id,
                                               ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                               ptl_size_t remote_offset, void *user_ptr,
                                               ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                               ptl_datatype_t datatype);

/* PtlHandlerSwapFromDevice() and Ex are PtlHandlerFetchAtomicFromDevice() for PTL_SWAP and its
 * relatives, which have an operand besides. PTL_ARG_INVALID: the operation is none of PtlSwap()'s;
 * otherwise the same. */
PTL_EXPORT int PtlHandlerSwapFromDevice(void *before, const void *local, ptl_size_t length,
                                        ptl_process_t target_id, ptl_match_bits_t match_bits,
                                        ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                        const void *operand, ptl_op_t operation,
                                        ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerSwapFromDeviceEx(void *before, const void *local, ptl_size_t length,
                                          ptl_process_t target_id, ptl_pt_index_t pt_index,
                                          ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                          ptl_hdr_data_t hdr_data, const void *operand,
                                          ptl_op_t operation, ptl_datatype_t datatype);
/* PtlHandlerSwapFromHost() and Ex are PtlHandlerFetchAtomicFromHost() for these. */
PTL_EXPORT int PtlHandlerSwapFromHost(ptl_size_t get_offset, ptl_size_t put_offset,
                                      ptl_size_t length, ptl_process_t target_id,
                                      ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                      void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
                                      ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerSwapFromHostEx(ptl_size_t get_offset, ptl_size_t put_offset,
                                        ptl_size_t length, ptl_process_t target_id,
                                        ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                        ptl_size_t remote_offset, void *user_ptr,
                                        ptl_hdr_data_t hdr_data, const void *operand,
                                        ptl_op_t operation, ptl_datatype_t datatype);

#ifdef __cplusplus
}
#endif

#endif
