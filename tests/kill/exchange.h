/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of an exchange: what the actors of a kill test have in common.
 *
 * Victim and peer are alike: each has a region that the other puts to or gets
 * from, of 2 x KILL_OPS pieces, so that nothing of the first victim's exchange
 * can be taken for the second's. Whatever is told to have succeeded is compared
 * byte by byte; whatever has not must say PTL_NI_UNDELIVERABLE.
 *
 * With an overflow list the target appends use-once entries for the messages as
 * these come: for one that is there and for the next, which may be coming in.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "../ok.h"
#include "kill.h"

#include "portals4.h"

enum {
    BOUND_MS = 10000, /* within which everything outstanding must have ended */
    PIECES = 2 * KILL_OPS,
    PT_EXCHANGE = 0,
    PT_PING = 1,
    PT_ASKING = 2,
    PING_MAX = 20000
};

extern ptl_handle_ni_t ni;
extern ptl_handle_me_t exchange_entry[PIECES]; /* those that there are, the others invalid */
extern ptl_handle_md_t source_md, ping_md;
extern ptl_handle_ct_t counter;
extern unsigned char ping_out[PING_MAX];

/* What has become of the operations that this process started. */
extern struct exchange_op {
    int sends, answers, failed;
} op[PIECES + 2];
/* What has become of the operations that others started here. */
extern struct exchange_served {
    int good, failed;
} served[2];
extern long pings, echoes, ping_acks;
/* and with an overflow list of the entries for its messages. */
extern struct exchange_claim {
    ptl_handle_me_t handle;
    bool appended;
    int taken, unlinked; /* events */
} claim[PIECES];

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void fill(unsigned char *b, size_t n, unsigned seed);
bool to_overflow(void);
void append_exchange(void);
void bind_source(void);
ptl_process_t address(ptl_pid_t pid);
void open_end(int who, ptl_pid_t pid);
void close_end(void);
size_t ping_length(long i);
/* start_op() starts one operation, on piece `i`. */
void start_op(unsigned i, ptl_pid_t target);
/* await() serves until `done` is true; it must be so in time. */
void await(bool (*done)(int), int argument, const char *what);
bool phase_is(int wanted);
/* ask() starts the operations of one life and waits for their ends. */
void ask(int life, ptl_pid_t target, const char *what);
bool all_served(int life);

#endif
