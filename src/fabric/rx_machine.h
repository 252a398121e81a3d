/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive machine: the progress of one message that does not end in one step. It is the same
 * for all sources of messages, which differ in where the bytes are (struct rx_source_ops).
 *
 *   IDLE ──begin──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                     │ RX_WAIT: suspended   │ RX_WAIT              │ RX_WAIT
 *                     │ RX_FIRST, not come   │ nothing has come     │ messages before it
 *                     │ RX_TURN              │ TURNS spans          │   are under way
 *                     └── stays              └── stays              └── stays
 *
 * Invariants:
 *   - The caller of each function of this file, and of a source, holds the NIC's lock. It is
 *     released only inside rx_header, rx_packet and rx_done, and in `here` of a source that copies
 *     from another process. A thread that goes on with a message sets `busy` before (of a source
 *     whose messages come in order, a flag of the channel): no other thread touches the message.
 *   - A message is suspended, `waiting`, when the NIC has returned RX_WAIT. It goes on when its
 *     source is polled again; the NIC sees to that when the reason to wait is gone. The reason is
 *     never missing data: a message that waits has all that its next step needs of the sender.
 *   - Each step raises `moved`, which never exceeds the length of the message, or the phase. So a
 *     call ends; and a message whose sender fills it as fast gives up its turn after TURNS spans.
 *   - After an error bytes still come, and are discarded; but not after FABRIC_UNDELIVERABLE. A
 *     packet in which a handler is suspended stays with the NIC until the handler has ended.
 *   - If the source dies, the NIC gets in HEADER a torn header, for which it runs no handler; in
 *     PAYLOAD the rest never comes. In each phase the message ends once, by rx_done with
 *     FABRIC_UNDELIVERABLE. A message that waits goes on first with what it has, until its handler
 *     has ended.
 *   - Messages of one peer and class begin (rx_header) and end (rx_done) in the order in which they
 *     were sent. One whose `behind` is set stays in DONE; its source clears that when those before
 *     it have ended. When a message is `matched`, the next one may begin. Messages behind
 *     one that was cut are cut as well, and end after it.
 *
 * A message that has come whole, and ends in rx_short, does not use the machine.
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
            bool busy;     /* a thread goes on with the message, perhaps without the lock */
        };
        /* both fields at once; 0: no message is in progress, and no thread works for the machine */
        uint16_t engaged;
    };
    bool waiting; /* the NIC has returned RX_WAIT */
    bool turn;    /* the NIC has returned RX_TURN, and no message has ended since */
    enum fabric_status status;
    struct fabric_rx *rx;
    const struct rx_source *source;
    uint64_t moved; /* bytes of payload that the NIC has, or that are done with */
    struct vector_cursor cursor;
};

/* Bytes of payload that follow each other in memory; `bytes` is 0 if there are none. `data` is NULL
 * if nothing is to be done with them: they are in their place already, or will never come. */
struct rx_span {
    uint8_t *data;
    uint64_t bytes;
};

struct rx_source_ops {
    /* Returns bytes that have come, from m->moved on, of a message of which some are left. With
     * `packets` they are for the NIC's handlers: whole packets, or all that is left. Sets m->status
     * if the sender could not read the payload, or to FABRIC_UNDELIVERABLE if no more will come. */
    struct rx_span (*here)(struct rx_machine *m, bool packets);
    /* The machine has done with the last n bytes before m->moved; with `kept`, it will be when the
     * NIC has raised rx->held beyond them. */
    void (*pass)(struct rx_machine *m, uint64_t n, bool kept);
    /* Takes back the packets that the NIC no longer keeps; true if there were any. */
    bool (*settle)(struct rx_machine *m);
    /* The message has ended. */
    void (*over)(struct rx_machine *m);
};

/* The source of a machine's messages: its functions, and the peer that they come from. */
struct rx_source {
    const struct rx_source_ops *ops;
    const struct fabric_upcalls *up;
    struct nic_peer *np;
    size_t packet_size;
};

/* rx_machine_begin() begins with the header of a message; the source has set rx->length and
 * m->status. */
void rx_machine_begin(struct rx_machine *m);
/* rx_machine_short() takes over a message for which rx_short has returned `step`; false: it has
 * ended. */
bool rx_machine_short(struct rx_machine *m, enum rx_step step);
/* rx_machine_go_on() goes on with a message as far as possible; returns whether it did. */
bool rx_machine_go_on(struct rx_machine *m);
/* rx_machine_cut() ends a message whose source is gone, unless it waits, or a thread works on it;
 * returns whether it has ended. rx_machine_sever() has it end so when it next goes on. */
bool rx_machine_cut(struct rx_machine *m);
void rx_machine_sever(struct rx_machine *m);

/* rx_machine_place() copies bytes of the message, from byte `at` on, to where the NIC wants them; a
 * source that does so itself gives the machine spans without data. */
void rx_machine_place(struct rx_machine *m, uint64_t at, const uint8_t *data, uint64_t n);

/* Whether the NIC keeps packets of the message. */
static inline bool rx_machine_keeps(const struct rx_machine *m)
{
    return m->phase != RX_IDLE && m->rx->held != FABRIC_HELD_NOTHING;
}

/* The state of a peer's messages, as its fabric reports it. */
enum rx_state {
    RX_BUSY = 1,    /* a message is in progress, or a thread works on one */
    RX_BLOCKED = 2, /* a message waits for this process, or the NIC keeps packets */
    /* a message can be driven on by others than threads of the NIC's own, which poll by
     * themselves */
    RX_OURS = 4,
    RX_AWAITS = 8 /* more data of a message are to come */
};

/* The source of a message that lies whole in the memory of this process, at `data`: of one that the
 * host starts, that has left its channel, or that the NIC sends to itself. */
struct rx_whole {
    struct rx_machine m;
    struct rx_source source;
    uint8_t *data;
};
/* rx_whole_init() makes a machine for such a message, in RX_IDLE; it sets the functions of
 * `from`. */
void rx_whole_init(struct rx_whole *w, struct rx_source from, struct fabric_rx *rx, uint8_t *data);

#endif
