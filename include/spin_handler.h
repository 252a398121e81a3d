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
 * A handler is plain code: no system calls, no locks, no allocation. It touches its stack, its HPU
 * memory (`state`), its packet, constant static data and, by DMA, the two host ranges of its entry.
 * On RV32 cores (PINWHEEL_HPU=rv32) any access outside these ends the handler with SEGV. Natively a
 * DMA outside the ranges does, and an access that the processor's memory protection refuses. An
 * access to other memory of the process, such as a byte just outside the packet, is not noticed
 * natively: try a new handler on RV32 first. The call that ends a handler does not return, and what
 * the handler did before stays done. An integer division by 0, or of the smallest number by -1,
 * ends the handler with SEGV, too. A handler that runs for longer than PINWHEEL_HANDLER_BUDGET_US,
 * in processor time without a PtlHandlerYield(), is ended in the same way with TIMEOUT.
 *
 * The functions below are for handlers. In other code only PtlHandlerCAS() and PtlHandlerFAdd()
 * work; the others do nothing and return PTL_FAIL, false or 0.
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

/* ---- The arguments of handlers ---- */

typedef enum {
    PTL_REQUEST_PUT,
    PTL_REQUEST_GET,
    PTL_REQUEST_ATOMIC,
    PTL_REQUEST_FETCH_ATOMIC,
    PTL_REQUEST_SWAP,
    PTL_REQUEST_TIMER, /* not a message but a tick of a timer, spin.h */
    PTL_REQUEST_FRAME  /* frames of an Ethernet interface (`pinwheel raw`) */
} ptl_request_type_t;

typedef struct ptl_header {
    ptl_request_type_t type;
    /* bytes of the message, with user header or operand, whether it is truncated or not */
    ptl_size_t length;
    ptl_process_t target_id; /* this process, with the ID that the initiator used */
    ptl_process_t source_id; /* the initiator of the message */
    ptl_match_bits_t match_bits;
    ptl_size_t offset; /* offset in the entry at which the request begins: of a put its first
                        * byte, or with PROCESS_DATA the first byte behind the user header; of a
                        * get, atomic or swap the first byte that is read or changed. It is the
                        * initiator's offset, which may lie behind the entry's end; with
                        * PTL_ME_MANAGE_LOCAL it is the entry's own: behind all messages that
                        * matched before, each counted with its length as far as it fitted,
                        * whatever its handlers did with it. The offsets of PtlHandlerDMA... and
                        * of packets do not count from it. Of a frame: when it came, in ns. */
    ptl_hdr_data_t hdr_data;
    const void *user_hdr; /* of a put its first user_hdr_length bytes; of a swap its operand */
    /* shorter than the entry's user_hdr_length if the message is shorter than that */
    ptl_size_t user_hdr_length;
} ptl_header_t;

typedef struct ptl_payload {
    ptl_size_t length; /* bytes of this packet */
    ptl_size_t offset; /* offset of this packet in the message, without the user header */
    /* the packet's bytes, which the handler may read and overwrite until it returns */
    uint8_t *base;
} ptl_payload_t;

/* The return codes of handlers. Any other value, or one that the kind of the handler may not
 * return, counts as FAIL. */
enum ptl_handler_return {
    SUCCESS = 0,              /* payload, completion: the handler has succeeded */
    DROP = 1,                 /* header: drop the message; payload: drop this packet */
    DROP_PENDING = 2,         /* header */
    PROCESS_DATA = 3,         /* header: call payload handlers */
    PROCESS_DATA_PENDING = 4, /* header */
    /* header: the NIC does what the request says, and calls no more handlers */
    PROCEED = 5,
    PROCEED_PENDING = 6, /* header */
    SUCCESS_PENDING = 7, /* completion */
    FAIL = 8,            /* all: the handler has found an error */
    SEGV = 9,            /* set by the run time; if a handler returns it, it counts as FAIL */
    TIMEOUT = 10         /* likewise: the handler ran for longer than its budget */
};

/* ---- Declaring handlers ---- */

/* A handler is known by its address, so it must not be merged or inlined. */
#define __handler __attribute__((noinline))

/* A registered handler. The linker collects these structs in the section "pinwheel_handlers" of
 * each program or library. */
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

/* The image is a file that `pinwheel cc --image` has made of the same source file; it becomes a
 * part of the program. */
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

/* A note in the program tells where its table of handlers is, so that the library finds the table
 * in memory. On an HPU the handlers are a table of the image. */
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

/* A registered handler must have the type of one of the three kinds above. */
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

/* PTL_HANDLER_STATE(struct NAME) declares that a struct is handler state, or is shared by
 * handlers and host in another way: `pinwheel cc` checks that both have the same layout of it.
 * If a source has no such declaration `pinwheel cc` checks every struct that a variable of a
 * handler points to. */
#define PTL_HANDLER_JOIN_(a, b) a##b
#define PTL_HANDLER_JOIN(a, b) PTL_HANDLER_JOIN_(a, b)
#ifdef PTL_HANDLER_CHECK
#define PTL_HANDLER_STATE(type)                                                                    \
    __attribute__((used, section("pinwheel_states"))) static type *const PTL_HANDLER_JOIN(         \
        ptl_handler_state_, __COUNTER__) = NULL
#else
#define PTL_HANDLER_STATE(type) typedef type *PTL_HANDLER_JOIN(ptl_handler_state_, __COUNTER__)
#endif

/* ---- The message (beyond the paper) ---- All handlers of a message may read its header, and
 * share the message's own memory. A tick of a timer has a header, too, with the type
 * PTL_REQUEST_TIMER, but no memory of its own. */

/* PtlHandlerHeader() stores the argument of the message's header handler, whether the entry has
 * one or not. In a header handler `user_hdr` points to the user header; in other handlers to a
 * copy of it with PTL_HANDLER_KEEP_USER_HDR, and is NULL without that option. The memory that it
 * points to is valid until the handler returns. PTL_FAIL: the caller is no handler, or its
 * interface is closed. Memory that cannot be written ends the handler with SEGV. */
PTL_EXPORT int PtlHandlerHeader(ptl_header_t *header);

/* PtlHandlerMessageState() returns the message's own memory, which begins at a multiple of 64,
 * has as many bytes as the entry's PTL_HANDLER_MESSAGE_STATE() says, and is zero until a handler
 * of this message writes to it. NULL: the entry has none, the message is a tick of a timer, or
 * the caller is no handler. All other handlers of the message see what its header handler has
 * written, and its completion handler sees what its payload handlers have written. Payload
 * handlers of a message run in parallel: only their atomics are ordered with each other. The
 * pointer is valid until the handler returns; on RV32 cores an access through it by a handler
 * that has not called this function is SEGV. */
PTL_EXPORT void *PtlHandlerMessageState(void);

/* ---- Host memory ---- `offset` counts from the start of the host range that `options` names. B
 * functions return PTL_OK when the transfer is done. NB functions return at once, with a handle
 * for Test or Wait; until the transfer is done it owns `local` (`cmpval`, `before`). Atomics and
 * transfers below 64 KiB are done at once. Longer transfers are done while the handler goes on,
 * by a thread, which a transfer of 1 MiB or more wakes up if the process may use a second
 * processor; by Test, which does a part if nothing was done since it was called before; and by
 * Wait. A transfer that is not done when the handler returns is done then; if an error ends the
 * handler it stops. Handles are valid until the handler ends. If a range has parts (PTL_IOVEC)
 * all transfers are done at once, and an element of an atomic must lie in one part, else SEGV.
 * These atomics are atomic with those of Portals operations of the same size on the same memory. */

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

/* PtlHandlerDMACASB() atomically replaces the 8 bytes at `offset`, whose address is a multiple
 * of 8, with `swapval` if they equal *cmpval. If they do not, *cmpval gets the bytes found. A
 * misaligned address ends the handler with SEGV. */
PTL_EXPORT int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                                 unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                                        unsigned int options);

/* PtlHandlerDMAFetchAddB() atomically adds `inc` to the naturally aligned integer at `offset`,
 * of a type from PTL_INT8_T to PTL_UINT64_T, and stores the old value in *before, extended to 64
 * bits with its sign if the type is signed. `before` may be NULL. Another type ends the handler
 * with FAIL. */
PTL_EXPORT int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                      ptl_datatype_t type, unsigned int options);
PTL_EXPORT ptl_dma_h PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                             ptl_datatype_t type, unsigned int options);

/* PtlHandlerDMATest() returns true if a transfer is done; on an RV32 core, if the cycles have
 * passed that PtlHandlerDMAWait() would wait for. A handle that this handler did not get ends it
 * with FAIL, memory of the transfer that does not exist with SEGV. */
PTL_EXPORT bool PtlHandlerDMATest(ptl_dma_h handle);

/* PtlHandlerDMAWait() returns when the transfer is done. */
PTL_EXPORT void PtlHandlerDMAWait(ptl_dma_h handle);

/* ---- HPU memory, which handlers running in parallel share ---- The atomics of C11
 * (<stdatomic.h>) and of compilers (__atomic_...) also work, on objects of 1, 2, 4 and 8 bytes,
 * natively and on RV32. */

/* PtlHandlerCAS() atomically replaces *value with `swapval` if it equals `cmpval`, and returns true
 * if it did. */
PTL_EXPORT bool PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval);

/* PtlHandlerFAdd() atomically adds `inc` to *value and stores the old value in *before, unless
 * `before` is NULL. */
PTL_EXPORT int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc);

/* ---- HPUs ---- */

/* PTL_NUM_HPUS is the highest number of handlers that are active at once. PTL_MY_HPU is the number
 * of this handler: below PTL_NUM_HPUS, different from that of any other active handler of the NI,
 * and the same until the handler returns. */
#define PTL_NUM_HPUS 64
#define PTL_MY_HPU PtlHandlerMyHPU()

PTL_EXPORT unsigned int PtlHandlerMyHPU(void);

/* PtlHandlerYield() lets other handlers run. */
PTL_EXPORT void PtlHandlerYield(void);

/* ---- Telemetry (beyond the paper) ---- */

/* PtlHandlerCycles() returns the time stamp counter of the processor. The difference of two values
 * within one handler that has not yielded is in cycles of the nominal clock. */
PTL_EXPORT uint64_t PtlHandlerCycles(void);

/* PtlHandlerCounterAdd() adds a value to counter `index` of the NI, which the host reads with
 * PtlSpinCounter(). PTL_ARG_INVALID: there is no such counter. */
PTL_EXPORT int PtlHandlerCounterAdd(unsigned int index, uint64_t value);

/* PtlHandlerPrintf() prints as printf() does: conversions d i u x X o c s p f e g and %%, with
 * their flags, width, precision and length. The newest bytes of each HPU are kept;
 * PtlSpinOutput() and the command `pinwheel nic` show them. One call prints 256 bytes at most.
 * PTL_ARG_INVALID: the format has another conversion, or a width or precision over 64; then
 * nothing is printed. A string in memory that cannot be read ends the handler with SEGV. */
PTL_EXPORT int PtlHandlerPrintf(const char *format, ...);
int PtlHandlerPrintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Frames (beyond the paper) ---- For handlers on the frames of an Ethernet interface, which
 * `pinwheel raw` runs (docs/raw-ethernet.md): each payload handler gets a frame, from its
 * destination address on. A frame that its handler neither answers nor passes ends with it.
 * Handlers of other messages get PTL_FAIL. */

/* PtlHandlerFrameReply() sends the first `length` bytes of the frame, as the handler has left them,
 * out of the interface on which it came, when the payload handler returns SUCCESS. The last call
 * counts. PTL_ARG_INVALID: `length` is below 14 or beyond the frame. */
PTL_EXPORT int PtlHandlerFrameReply(ptl_size_t length);

/* PtlHandlerFrameSend() sends a frame of the handler's memory at once; the memory is the handler's
 * again when the call returns. PTL_ARG_INVALID: `length` is below 14 or more than the interface
 * takes. PTL_NO_SPACE: the interface has too many frames to send. Memory that cannot be read ends
 * the handler with SEGV. */
PTL_EXPORT int PtlHandlerFrameSend(const void *frame, ptl_size_t length);

/* PtlHandlerFramePass() gives the frame, as the handler has left it, to the kernel when the payload
 * handler returns SUCCESS, as if no rule had matched it. */
PTL_EXPORT int PtlHandlerFramePass(void);

/* ---- Counters of the host ---- `ct_handle` must be of the same NI as the entry, else
 * PTL_ARG_INVALID. The operations that a change triggers happen before the call returns.
 * Otherwise these functions are like PtlCTGet(), PtlCTSet() and PtlCTInc(). */

PTL_EXPORT int PtlHandlerCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
PTL_EXPORT int PtlHandlerCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
PTL_EXPORT int PtlHandlerCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- Messages ---- A message goes to the portal table index of the entry or, with Ex functions,
 * to the one given. Host functions use the memory of the entry, at an offset: they enqueue the
 * operation as if the host had called for it, and never wait; the entry is not unlinked before the
 * operation has ended. Device functions use the handler's own memory: one packet at most
 * (PTL_ARG_INVALID beyond max_payload_size), which the handler may reuse when the call returns.
 *
 * A message that cannot leave at once, since its target takes nothing, waits in one of the places
 * for its target. There are PINWHEEL_HANDLER_QUEUE places for messages from handlers' memory, and
 * more for messages from entries' memory. The first place of each target is reserved for it. Of the
 * other places a target has at most as many as are free, and an entry at most as many at a target
 * as that target may still get: so a target that takes nothing, or an entry that floods, does not
 * stop others. If there is no place for it, a message from an entry's memory is refused at once
 * (PTL_NO_SPACE); one from the handler's memory suspends the handler, for PINWHEEL_HPU_PATIENCE_MS
 * at most, and is refused after that.
 *
 * Events go to the event queue of the entry: ACK with PTL_ACK_REQ, and SEND only if the
 * message was lost. With PTL_CT_ACK_REQ and PTL_OC_ACK_REQ the acknowledgement is counted,
 * as one, by the counter of the entry (its ct_handle).
 *
 * They return PTL_OK, or a code of this list, and then nothing was sent; calls that wait for an
 * answer have further codes, given at these calls.
 *
 *     PTL_ARG_INVALID   the target is a rank outside the map, or a physical id that no process can
 *                       have; `pt_index` is above 65535; the length is beyond the limit that
 *                       stands at the call; of those with `ack_req`: it is no request, or
 *                       PTL_ACK_REQ without an event queue of the entry, or PTL_CT_ACK_REQ or
 *                       PTL_OC_ACK_REQ without its counter
 *     PTL_NO_SPACE      no memory; and as said above
 *     PTL_FAIL          the caller is no handler
 *
 * Invalid memory ends the handler with SEGV: `local`, `before` or `operand` that the handler may
 * not read or write; an offset and length that are not inside the entry. */

/* PTL_HANDLER_NOWAIT, added to the `ack_req` of a put or an atomic, keeps the call from
 * suspending the handler: if there is no place for the message it is refused at once. An older
 * library without this option refuses every message that has it, with PTL_ARG_INVALID, also if
 * the handler is device code. */
#define PTL_HANDLER_NOWAIT 0x80u

/* PtlHandlerUserPtr() makes a user_ptr of a 64-bit number, such as a pointer of the host that
 * the state holds. On an HPU with shorter pointers the result stands for the number during this
 * call of the handler. A call of a handler can make 16 of them; one more ends it with FAIL. */
#ifdef __riscv
void *PtlHandlerUserPtr(uint64_t value);
#else
static inline void *PtlHandlerUserPtr(uint64_t value)
{
    return (void *)(uintptr_t)value;
}
#endif

/* PtlHandlerPutFromDevice() and its Ex form return PTL_ARG_INVALID if the length is beyond
 * max_payload_size. */
PTL_EXPORT int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                                       ptl_process_t target_id, ptl_match_bits_t match_bits,
                                       ptl_size_t remote_offset, void *user_ptr,
                                       ptl_hdr_data_t hdr_data);
PTL_EXPORT int PtlHandlerPutFromDeviceEx(const void *local, ptl_size_t length,
                                         ptl_ack_req_t ack_req, ptl_process_t target_id,
                                         ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                         ptl_size_t remote_offset, void *user_ptr,
                                         ptl_hdr_data_t hdr_data);

/* PtlHandlerPutFromHost() and its Ex form read the data when the message is sent. They return
 * PTL_ARG_INVALID if the length is beyond max_msg_size. */
PTL_EXPORT int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                                     ptl_process_t target_id, ptl_match_bits_t match_bits,
                                     ptl_size_t remote_offset, void *user_ptr,
                                     ptl_hdr_data_t hdr_data);
PTL_EXPORT int PtlHandlerPutFromHostEx(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                                       ptl_process_t target_id, ptl_pt_index_t pt_index,
                                       ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                       void *user_ptr, ptl_hdr_data_t hdr_data);

/* A call below that gets, fetches or swaps sends a request (an "ask") that overtakes all messages
 * that its process has sent to the target before, and its answer overtakes the target's: so
 * handlers that ask each other in a circle, or ask their own process, are answered. The ask need
 * not find at the target what the same handler has put there before. If it matches an entry with
 * handlers, these may make it wait.
 *
 * PtlHandlerGetToDevice() and its Ex form suspend the handler until the data have come. If no
 * answer has come in PINWHEEL_HPU_PATIENCE_MS the NIC withdraws the ask, and the handler waits as
 * long again to learn whether the target has executed it. So the call can end in these ways:
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

/* PtlHandlerGetToHost() and its Ex form get data into the entry's memory. PTL_ARG_INVALID: the
 * length is beyond max_msg_size. A failure at the target is reported by the REPLY. The REPLY
 * counts as a message that the entry has received: the entry's options say whether it has an
 * event and what is counted. So if a header handler gets data and returns DROP_PENDING, its
 * entry completes when the data have come. */
PTL_EXPORT int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                                   ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                   void *user_ptr);
PTL_EXPORT int PtlHandlerGetToHostEx(ptl_size_t offset, ptl_size_t length, ptl_process_t target_id,
                                     ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                     ptl_size_t remote_offset, void *user_ptr);

/* PtlHandlerAtomicFromDevice() and its Ex form return PTL_ARG_INVALID if the length is beyond
 * max_payload_size or max_atomic_size, or no multiple of an element's size, or if the operation is
 * none of PtlAtomic()'s or is not defined for the datatype. */
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
/* PtlHandlerAtomicFromHost() and its Ex form return PTL_ARG_INVALID in the same cases, except that
 * max_payload_size is no limit. */
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

/* PtlHandlerFetchAtomicFromDevice() and its Ex form store the target's old value in `before`. The
 * handler waits for that as with PtlHandlerGetToDevice(), and PTL_FAIL and PTL_ABORTED mean the
 * same. PTL_ARG_INVALID: the length is beyond max_payload_size or max_fetch_atomic_size, or no
 * multiple of an element's size, or the operation is none of PtlFetchAtomic()'s or is not defined
 * for the datatype. */
PTL_EXPORT int PtlHandlerFetchAtomicFromDevice(void *before, const void *local, ptl_size_t length,
                                               ptl_process_t target_id, ptl_match_bits_t match_bits,
                                               ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                               ptl_op_t operation, ptl_datatype_t datatype);
PTL_EXPORT int PtlHandlerFetchAtomicFromDeviceEx(void *before, const void *local, ptl_size_t length,
                                                 ptl_process_t target_id, ptl_pt_index_t pt_index,
                                                 ptl_match_bits_t match_bits,
                                                 ptl_size_t remote_offset, ptl_hdr_data_t hdr_data,
                                                 ptl_op_t operation, ptl_datatype_t datatype);
/* PtlHandlerFetchAtomicFromHost() and its Ex form store the target's old value at `get_offset` of
 * the entry, with a REPLY as for PtlHandlerGetToHost(). PTL_ARG_INVALID: as FromDevice, except that
 * max_payload_size is no limit. */
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

/* PtlHandlerSwapFromDevice() and its Ex form are PtlHandlerFetchAtomicFromDevice() for PTL_SWAP and
 * the conditional and masked swaps, which also have an operand. PTL_ARG_INVALID: the operation is
 * none of PtlSwap()'s; otherwise the same. */
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
/* PtlHandlerSwapFromHost() and its Ex form are PtlHandlerFetchAtomicFromHost() for these
 * operations. */
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
