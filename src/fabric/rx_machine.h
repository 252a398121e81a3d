/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive machine: the progress of one message that is not over in one step. It is the same
 * for all that brings messages; what differs is where their bytes lie (struct rx_source_ops).
 *
 *   IDLE ──begin──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                     │ RX_WAIT: suspended   │ RX_WAIT              │ RX_WAIT
 *                     │ RX_FIRST, not here   │ nothing is here      │ messages before it
 *                     │ RX_TURN              │ TURNS spans          │   are under way
 *                     └── stays              └── stays              └── stays
 *
 * Invariants:
 *   - The NIC's lock is held in every function here and in every function of a source. It is free
 *     meanwhile only inside rx_header, rx_packet and rx_done, and in `here` of a source that copies
 *     from another process. Whoever goes on with a message says so in `busy` before (a source
 *     whose messages stand in a row: in a flag of the row), and nobody else touches it.
 *   - A message is suspended, `waiting`, when the NIC said RX_WAIT. It goes on when its source is
 *     polled again: the NIC asks for that when what it waits for is there. What it waits for is
 *     never the sender's to give: a message that waits has all it needs for its next step.
 *   - Each step forward raises `moved`, which never passes the message's length, or the phase. So
 *     one call ends, and a message that is always refilled leaves the lock after TURNS spans.
 *   - After an error bytes still come, and are discarded, but for FABRIC_UNDELIVERABLE; a packet in
 *     which a handler is suspended is the NIC's until the handler is done with it.
 *   - The source dies: in HEADER the NIC is told a torn header, which runs no handler; in PAYLOAD
 *     the rest never comes; in each phase the message ends once, by rx_done with
 *     FABRIC_UNDELIVERABLE. One that waits is left to go on first, with what it has: its handler
 *     comes to its end.
 *   - Messages of one peer and class begin (rx_header) and end (rx_done) in the order in which they
 *     were sent. One whose `behind` is set stays in DONE; its source clears that when those before
 *     it have ended. The next one may begin when a message is `matched`. What follows one that
 *     was cut is cut as well, and ends after it.
 *
 * A message that is here whole and over in rx_short never comes here.
 */
#ifndef FABRIC_RX_MACHINE_H
#define FABRIC_RX_MACHINE_H

#include "base/vector.h"
#include "fabric/fabric.h"

enum rx_phase { RX_IDLE, RX_HEADER, RX_PAYLOAD, RX_DONE };

struct rx_machine {
    union {
        struct {
            uint8_t phase; /* enum rx_phase */
            bool busy;     /* a thread goes on with it, perhaps without the lock */
        };
        uint16_t engaged; /* 0: between messages, and no thread is with it */
    };
    bool waiting; /* the NIC said RX_WAIT */
    bool turn;    /* the NIC said RX_TURN, and no message has ended since */
    enum fabric_status status;
    struct fabric_rx *rx;
    const struct rx_source *source;
    uint64_t moved; /* bytes of payload that are the NIC's, or done with */
    struct vector_cursor cursor;
};

/* Bytes of payload that lie one behind the other; none where `bytes` is 0. `data` is NULL where
 * there is nothing to do for them: they are in their place already, or will never come. */
struct rx_span {
    uint8_t *data;
    uint64_t bytes;
};

struct rx_source_ops {
    /* Returns bytes that are here from m->moved on, of a message of which bytes are left. With
     * `packets` they are for the NIC's handlers: whole packets, or all that is left. Sets m->status
     * if the sender could not read it, or, FABRIC_UNDELIVERABLE, if nothing more will come. */
    struct rx_span (*here)(struct rx_machine *m, bool packets);
    /* The last n bytes before m->moved are done with; with `kept`, when the NIC has raised
     * rx->held beyond them. */
    void (*pass)(struct rx_machine *m, uint64_t n, bool kept);
    /* Takes back what the NIC keeps no longer; true if there was anything. */
    bool (*settle)(struct rx_machine *m);
    /* The message is over. */
    void (*over)(struct rx_machine *m);
};

/* Where messages come from, and whose they are. */
struct rx_source {
    const struct rx_source_ops *ops;
    const struct fabric_upcalls *up;
    struct nic_peer *np;
    size_t packet_size;
};

/* rx_machine_begin() begins with the header of a message whose rx->length and m->status are set. */
void rx_machine_begin(struct rx_machine *m);
/* rx_machine_short() takes up a message of which rx_short said `step`; false: it is over. */
bool rx_machine_short(struct rx_machine *m, enum rx_step step);
/* rx_machine_go_on() goes on with a message as far as it goes; true if it did. */
bool rx_machine_go_on(struct rx_machine *m);
/* rx_machine_cut() ends a message whose source is gone, unless it waits, or a thread is with it;
 * true if that was its end. rx_machine_sever() has it end so when it goes on next. */
bool rx_machine_cut(struct rx_machine *m);
void rx_machine_sever(struct rx_machine *m);

/* Whether the NIC has packets of the message. */
static inline bool rx_machine_keeps(const struct rx_machine *m)
{
    return m->phase != RX_IDLE && m->rx->held != FABRIC_HELD_NOTHING;
}

/* The state of what comes from a peer, as its fabric tells it. */
enum rx_state {
    RX_BUSY = 1,    /* a message is in progress, or a thread is with one */
    RX_BLOCKED = 2, /* a message waits for our own side, or packets are kept */
    RX_OURS = 4,    /* not only threads of the NIC's own, which will poll, can go on with one */
    RX_AWAITS = 8   /* more is to come of a message */
};

/* The source of a message that lies whole in this process's memory, at `data`: what the host
 * invokes, what has left its channel, what a NIC sends to itself. */
struct rx_whole {
    struct rx_machine m;
    struct rx_source source;
    uint8_t *data;
};
/* rx_whole_init() makes a machine for it, at rest; `from` needs no functions. */
void rx_whole_init(struct rx_whole *w, struct rx_source from, struct fabric_rx *rx, uint8_t *data);

#endif
