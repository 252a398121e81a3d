/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with receiver-side matching, where the NICs do the rendezvous of long ones: the
 * programs post a send and a receive, and need not be there while it is done.
 *
 *      short, up to `eager` bytes:   data ──► matching entry (receive), or overflow list
 *
 *      long:    sender                                receiver
 *               source entry over the data            matching entry, landing entry
 *               ── "n bytes at source 17" ──────────► matching entry's header handler
 *               source entry's header handler ◄────── "to landing 23, m bytes at most"
 *               ── put from host ───────────────────► landing entry
 *
 * Both kinds match the same entries, so the order of messages is that of MPI, wildcards
 * included. What comes before its receive is posted waits in the overflow list, the long
 * ones as their announcement; then the receiver's program does what the handler would
 * have done (handlers do not run for it), and the sender's NIC does the rest.
 *
 * The data of a long message is put by the sender's NIC, where the sPIN paper (section
 * 5.1) has the receiver's NIC get it: the messages are as many and as long.
 */
#ifndef HANDLERS_RENDEZVOUS_H
#define HANDLERS_RENDEZVOUS_H

#include "portals4.h"
#include "spin.h"

enum { RENDEZVOUS_BUFFERS = 4 };

/* HPU memory of a matching entry and of a source entry: set by the host, constant. */
struct rendezvous_match_state {
    uint64_t room;    /* of the receive */
    uint64_t landing; /* match bits of its landing entry, at index */
    uint32_t index;
    uint32_t unused;
};

struct rendezvous_source_state {
    uint64_t length;
    uint64_t user; /* comes back in the ACK's user_ptr */
};

/* One end of all messages of a process. */
struct rendezvous {
    ptl_handle_ni_t ni;
    ptl_pt_index_t matching, data; /* indices, the same at all processes */
    ptl_handle_md_t md;            /* all of memory */
    ptl_process_t any;
    uint64_t eager;
    uint64_t next; /* match bits for source and landing entries */
    struct rendezvous_buffer {
        void *start;
        ptl_size_t length;
    } buffer[RENDEZVOUS_BUFFERS]; /* where messages wait for their receive */
};

/* A send or a receive under way: the program's, unchanged until `done`. */
struct rendezvous_request {
    bool done;
    ptl_ni_fail_t fail;    /* when done: PTL_NI_OK, or why not */
    uint64_t length;       /* bytes sent or received; of a receive at first its room */
    ptl_process_t source;  /* of what was received */
    ptl_match_bits_t bits; /* of what was received */
    void *start;
    ptl_handle_me_t entry; /* source or landing entry, while there is one */
    uint32_t awaited;      /* acknowledgements, of a send */
    uint64_t announced[2]; /* of a long send: length and source */
    struct rendezvous_source_state source_state;
    struct rendezvous_match_state match_state;
};

/* rendezvous_open() appends the overflow buffers and binds the MD. The two portal table
 * entries were allocated by the program, with event queue `eq`, which may be that of other
 * things too. The buffers are parts of `length` bytes of memory, and so many that come too
 * early may wait there: 4 times `eager` are the least (PTL_ARG_INVALID). Returns PTL_OK or
 * what Portals gave. */
int rendezvous_open(struct rendezvous *r, ptl_handle_ni_t ni, ptl_pt_index_t matching,
                    ptl_pt_index_t data, ptl_handle_eq_t eq, ptl_process_t any, uint64_t eager,
                    void *memory, uint64_t length);

/* rendezvous_send() sends `length` bytes, which stay unchanged until the request is done:
 * for a short message when it is in the receiver's memory or overflow buffer, for a long
 * one when it is received. */
int rendezvous_send(struct rendezvous *r, struct rendezvous_request *request, const void *start,
                    uint64_t length, ptl_process_t to, ptl_match_bits_t bits);

/* rendezvous_receive() posts a receive of up to `room` bytes from a process, or any, with
 * match bits but for those in `ignore`. A longer message is cut off. */
int rendezvous_receive(struct rendezvous *r, struct rendezvous_request *request, void *start,
                       uint64_t room, ptl_process_t from, ptl_match_bits_t bits,
                       ptl_match_bits_t ignore);

/* rendezvous_event() is to be given every event of the queue that is of one of the two
 * indices or of the MD; it completes requests. Returns PTL_OK, or what Portals gave. */
int rendezvous_event(struct rendezvous *r, const ptl_event_t *event);

#endif
