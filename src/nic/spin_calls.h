/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of spin/ that the stages call for a message at handlers. They are declared in this
 * folder, since files include none of a room above theirs (docs/rooms.txt); the files of spin/ that
 * are named below define them.
 */
#ifndef NIC_SPIN_CALLS_H
#define NIC_SPIN_CALLS_H

#include "nic/rx.h"

/* ---- handlers.c: the stages of a message whose entry has handlers ---- */

/* The header, a packet and the end of a message at handlers, as the receive machine calls for them
 * (fabric/rx_machine.h). */
enum rx_step handlers_header(struct rx *rx);
enum rx_step handlers_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length);
enum rx_step handlers_completion(struct rx *rx);
/* handlers_early() has, in virtual time, the handlers of a message end that has come, and may not
 * end itself yet. */
void handlers_early(struct rx *rx);
/* handlers_torn() notes that the payload of a message has not come whole. */
void handlers_torn(struct rx *rx, ptl_ni_fail_t fail);

/* ---- handler_run.c ---- */

/* handlers_run() says whether any thread runs a handler of a message now. handlers_end() ends those
 * handlers, and says the same; their calls return as soon as the threads get a processor and the
 * NIC's lock. */
bool handlers_run(struct rx *rx);
bool handlers_end(struct rx *rx);
/* handlers_cancel() gives up the suspended handlers of a message. One that an HPU thread runs goes
 * on without the message. None may run on a program's or the NIC thread: that will want the lock,
 * which the caller holds. */
void handlers_cancel(struct rx *rx);
void handlers_free(struct rx *rx);
extern const struct hpu_sched_ops nic_sched_ops;

/* ---- handler_send.c ---- */

/* handler_request_begin() makes the operation a user of its handler's entry and answer;
 * handler_request_answered() notes the answer, and returns whether to post an event;
 * handler_request_end() ends the use. `closed`: the NI was closed before. */
void handler_request_begin(const struct request *r);
bool handler_request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength);
void handler_request_end(struct request *r, bool closed);

/* ---- detach.c ---- */

/* detach_may() says whether a message at handlers may leave its channel, once it is the first
 * there. */
bool detach_may(const struct rx *rx);
/* detach() has a message leave its channel: at once if it has no payload. Else its payload goes to
 * a copy, and when all of it is there detach_stored() says whether the message has left. False: it
 * stays. */
bool detach(struct rx *rx);
bool detach_stored(struct rx *rx, enum fabric_status status);
/* Whether the answer of a message, detached or in a channel, must wait for that of an earlier
 * detached one. */
bool detach_behind_answer(const struct rx *rx);
/* Whether a detached message of the peer is at an entry. */
bool detach_keeps(const struct nic_peer *peer, const struct le *le);
/* detach_peer_down() tells the detached messages of a peer that it is dead. */
void detach_peer_down(struct nic_peer *peer);

/* ---- invoke.c: messages in no channel ---- */

/* invoke_advance() drives the invocations in nic->invoked, and returns whether one has moved.
 * invoke_waits() says whether there is one that no thread drives yet. */
bool invoke_advance_all(struct nic *nic);
static inline bool invoke_advance(struct nic *nic)
{
    return unlikely(!list_empty(&nic->invoked)) && invoke_advance_all(nic);
}
bool invoke_waits(const struct nic *nic);
/* invoke_stir() has an invocation that waits looked at again: what it waits for has come. */
void invoke_stir(struct rx *rx);
/* invoke_any() calls ask() for each message of an NI that is in no channel; true if any call
 * returned true. */
bool invoke_any(struct ni *ni, bool (*ask)(struct rx *rx));
/* invoke_cut() cuts off the invocations of an NI that is being closed. */
void invoke_cut(struct ni *ni);
/* invoke_free() ends all invocations, when no NI is left. */
void invoke_free(struct nic *nic);

/* ---- timer.c ---- */

/* timers_end() frees the timers of an NI, timers_end_entry() those of an entry; ticks that have
 * begun go on. timers_advance() has the timers tick that are due, and returns whether any tick has
 * begun. */
void timers_end(struct ni *ni);
void timers_end_entry(struct le *le);
bool timers_advance(struct nic *nic);

/* ---- blocks.c, hpu_memory.c, telemetry.c ---- */

/* blocks_end() forgets an entry whose messages take blocks of this kind (0: none). block_give()
 * takes the block of a message back, if it has one. */
void blocks_end(struct nic *nic, unsigned kind);
void block_give(struct handler_run *run);

/* hpu_memory_free() ends a piece of HPU memory; hpu_memory_forget() unmaps the pieces that are kept
 * unused. */
void hpu_memory_free(struct hpu_memory *m);
void hpu_memory_forget(struct nic *nic);
/* telemetry_begin() gives an execution context a place on the stats page, telemetry_end() takes it
 * back. */
void telemetry_begin(struct le *le);
void telemetry_end(struct nic *nic, struct handlers *h);

#endif
