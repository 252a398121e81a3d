/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of spin/, the room above, that the stages call: a message at handlers goes on there. It
 * is declared here, since includes point down, and defined there, file by file.
 */
#ifndef NIC_SPIN_CALLS_H
#define NIC_SPIN_CALLS_H

#include "nic/rx.h"

/* ---- handlers.c: the stages of a message whose entry has handlers ---- */

/* Header, packet and end of a message, as the receive machine asks for them (fabric/fabric.h). */
enum rx_step handlers_header(struct rx *rx);
enum rx_step handlers_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length);
enum rx_step handlers_completion(struct rx *rx);
/* handlers_torn() notes that the payload did not come whole. */
void handlers_torn(struct rx *rx, ptl_ni_fail_t fail);

/* ---- handler_run.c ---- */

/* handlers_run() says whether any thread runs one of a message; handlers_end() ends those, and says
 * the same. They come back as soon as their threads have a processor and the NIC's lock. */
bool handlers_run(struct rx *rx);
bool handlers_end(struct rx *rx);
/* handlers_cancel() gives up handlers that are suspended. One that an HPU runs goes on without its
 * message; none may run inline: its thread will want the lock that is held. */
void handlers_cancel(struct rx *rx);
void handlers_free(struct rx *rx);
extern const struct hpu_sched_ops nic_sched_ops;

/* ---- handler_send.c ---- */

/* A request of a handler becomes an operation, is answered (true: with an event), and ends;
 * `closed`: its NI was. */
void handler_request_begin(const struct request *r);
bool handler_request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength);
void handler_request_end(struct request *r, bool closed);

/* ---- detach.c ---- */

/* detach_may() is true if a message at handlers may leave its channel when it is the first there.
 */
bool detach_may(const struct rx *rx);
/* detach() lets one that may leave its channel: at once if it has no payload, else its payload goes
 * to a copy, and when that is here detach_stored() says whether it has left. False: it stays. */
bool detach(struct rx *rx);
bool detach_stored(struct rx *rx, enum fabric_status status);
/* Whether the answer of a message, in a channel or not, must wait for one before it that has left
 * the channel. */
bool detach_behind_answer(const struct rx *rx);
/* Whether a message of the peer that has left its channel is at an entry. */
bool detach_keeps(const struct nic_peer *peer, const struct le *le);
/* detach_peer_down() tells messages that have left the channel of a peer that it is dead. */
void detach_peer_down(struct nic_peer *peer);

/* ---- invoke.c: messages in no channel ---- */

/* invoke_advance() goes on with what was invoked; true if anything moved. invoke_waits() is
 * true while somebody must do so without being told. */
bool invoke_advance_all(struct nic *nic);
static inline bool invoke_advance(struct nic *nic)
{
    return unlikely(!list_empty(&nic->invoked)) && invoke_advance_all(nic);
}
bool invoke_waits(const struct nic *nic);
/* invoke_stir() says that a handler of one that waits has ended. */
void invoke_stir(struct rx *rx);
/* invoke_any() asks each message of an NI that is in no channel; true if any says so. */
bool invoke_any(struct ni *ni, bool (*ask)(struct rx *rx));
/* invoke_cut() gives up what refers to an NI that is being closed. */
void invoke_cut(struct ni *ni);
/* invoke_free() forgets the rest, when no NI is left. */
void invoke_free(struct nic *nic);

/* ---- timer.c ---- */

/* timers_end() forgets the timers of an NI, timers_end_entry() those of an entry; ticks that have
 * begun go on. timers_advance() lets begin what is due; true if anything was. */
void timers_end(struct ni *ni);
void timers_end_entry(struct le *le);
bool timers_advance(struct nic *nic);

/* ---- blocks.c, hpu_memory.c, telemetry.c ---- */

/* blocks_end() forgets an entry whose messages take blocks of a kind, or of none; block_give()
 * takes a message's block back, if it has one. */
void blocks_end(struct nic *nic, unsigned kind);
void block_give(struct handler_run *run);

/* hpu_memory_free() ends a piece of HPU memory; hpu_memory_forget() unmaps what is kept for the
 * next ones. */
void hpu_memory_free(struct hpu_memory *m);
void hpu_memory_forget(struct nic *nic);
/* telemetry_begin() finds an execution context its place on the stats page, telemetry_end() gives
 * it back. */
void telemetry_begin(struct le *le);
void telemetry_end(struct nic *nic, struct handlers *h);

#endif
