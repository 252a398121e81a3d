/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with receiver-side matching. The NICs do the rendezvous of long messages: the programs
 * post a send and a receive, and need not make any call while the data are transferred.
 *
 *      short, up to `eager` bytes:   data ──► matching entry (receive), or overflow list
 *
 *      long:    sender                                receiver
 *               source entry over the data            matching entry, landing entry
 *               ── "n bytes at source 17" ──────────► matching entry's header handler
 *               source entry's header handler ◄────── "to landing 23, m bytes at most"
 *               ── put from host ───────────────────► landing entry
 *
 * Both kinds of messages match the same entries, so messages are ordered as in MPI, wildcards
 * included. A short message, or the announcement of a long one, that comes before its receive is
 * posted waits in the overflow list, where handlers do not run. Then the receiver's program does
 * the work of the header handler, and the sender's NIC does the rest.
 *
 * The sender's NIC puts the data of a long message; in the sPIN paper (section 5.1) the receiver's
 * NIC gets them. Both ways need equally many and equally long messages.
 */
#ifndef HANDLERS_RENDEZVOUS_H
#define HANDLERS_RENDEZVOUS_H

#include "portals4.h"
#include "spin.h"

enum { RENDEZVOUS_BUFFERS = 4 };

/* HPU memory of a matching entry and of a source entry: the host sets it, and it stays constant. */
struct rendezvous_match_state {
    uint64_t room;    /* bytes of the receive */
    uint64_t landing; /* match bits of the receive's landing entry, at portal table index `index` */
    uint32_t index;
    uint32_t unused;
};

struct rendezvous_source_state {
    uint64_t length;
    uint64_t user; /* user_ptr of the ACK */
};

/* The end of a process for all its messages. */
struct rendezvous {
    ptl_handle_ni_t ni;
    ptl_pt_index_t matching, data; /* portal table indices, the same at all processes */
    ptl_handle_md_t md;            /* MD over all memory */
    ptl_process_t any;
    uint64_t eager;
    uint64_t next; /* match bits of the next source or landing entry */
    struct rendezvous_buffer {
        void *start;
        ptl_size_t length;
    } buffer[RENDEZVOUS_BUFFERS]; /* overflow buffers, where messages wait for their receive */
};

/* A send or a receive in progress. It belongs to the program, which must not change it until
 * `done`. */
struct rendezvous_request {
    bool done;
    ptl_ni_fail_t fail; /* set when done: PTL_NI_OK, or the reason of the failure */
    /* bytes sent or received; of a receive, at first the room for the message */
    uint64_t length;
    ptl_process_t source;  /* sender of the message that was received */
    ptl_match_bits_t bits; /* match bits of that message */
    void *start;
    ptl_handle_me_t entry; /* source or landing entry, while it exists */
    uint32_t awaited;      /* of a send: acknowledgements that have not come yet */
    uint64_t announced[2]; /* of a long send: length, and match bits of the source entry */
    struct rendezvous_source_state source_state;
    struct rendezvous_match_state match_state;
};

/* rendezvous_open() appends the overflow buffers and binds the MD. The program has allocated the
 * two portal table entries, with the event queue `eq`, which it may also use for other purposes.
 * The buffers are parts of the `length` bytes at `memory`, in which messages wait that come
 * before their receives; PTL_ARG_INVALID: `length` is less than 4 times `eager`. Returns PTL_OK,
 * or what a Portals function returned. */
int rendezvous_open(struct rendezvous *r, ptl_handle_ni_t ni, ptl_pt_index_t matching,
                    ptl_pt_index_t data, ptl_handle_eq_t eq, ptl_process_t any, uint64_t eager,
                    void *memory, uint64_t length);

/* rendezvous_send() sends `length` bytes, which must not change until the request is done: a short
 * message is done when it is in the receiver's memory or overflow buffer, a long one when it was
 * received. */
int rendezvous_send(struct rendezvous *r, struct rendezvous_request *request, const void *start,
                    uint64_t length, ptl_process_t to, ptl_match_bits_t bits);

/* rendezvous_receive() posts a receive of up to `room` bytes from a process, or from any, with the
 * match bits `bits`, of which those in `ignore` are not compared. A longer message is truncated. */
int rendezvous_receive(struct rendezvous *r, struct rendezvous_request *request, void *start,
                       uint64_t room, ptl_process_t from, ptl_match_bits_t bits,
                       ptl_match_bits_t ignore);

/* rendezvous_event() must be called with each event of the queue that belongs to one of the two
 * portal table indices or to the MD; it completes requests. Returns PTL_OK, or what a Portals
 * function returned. */
int rendezvous_event(struct rendezvous *r, const ptl_event_t *event);

#endif
