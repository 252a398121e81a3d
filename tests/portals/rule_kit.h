/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rules share besides the harness: puts that are over when the call returns,
 * and crowds, for the rules that need more than two processes or the death of one.
 *
 * A crowd is made by a BARE case. It forks `size` members; each opens an interface of the
 * case's kind with a queue for SUITE_PT, a queue for MDs and two counters, learns the ids
 * of all, and runs the body. Member 0 is the target of the others. The scene that a
 * member gets is filled as for SELF, but STEP() and suite_show() are for pairs:
 * members use crowd_step(), crowd_show() and crowd_look().
 */
#ifndef RULE_KIT_H
#define RULE_KIT_H

#include "suite.h"

/* rule_md() binds an MD that posts no SEND events. */
ptl_handle_md_t rule_md(struct scene *s, void *start, ptl_size_t length);

/* rule_put() puts the first `length` bytes of an MD of rule_md() to SUITE_PT; hdr_data are the
 * match bits, too. It returns behind the ACK, which must say `fail`. */
void rule_put(struct scene *s, ptl_handle_md_t md, ptl_size_t length, ptl_match_bits_t bits,
              ptl_ni_fail_t fail);

/* rule_nudge() lets the interface make progress for some time without taking an event. */
void rule_nudge(struct scene *s, int ms);

/* rule_await_stop() waits until a process has stopped (SIGSTOP), and what it sent so far has
 * been taken in. */
void rule_await_stop(struct scene *s, int pid);

/* rule_ends_as() says whether the last 64 bytes are those of suite_fill() of all of it; one
 * seed a process. */
bool rule_ends_as(const unsigned char *memory, size_t length, unsigned seed);

/* rule_self_id() sets this process's map if the interface is logical, for BARE cases, and
 * gives its id. */
ptl_process_t rule_self_id(struct scene *s);

/* rule_open() opens an interface in a BARE case and fills in what the helpers need. */
void rule_open(struct scene *s, const ptl_ni_limits_t *desired);
void rule_close(struct scene *s);

/* rule_some_limits() is a `desired` that asks for plenty; a case lowers what it is about. */
ptl_ni_limits_t rule_some_limits(void);

/* ---- Crowds ---------------------------------------------------------------- */

enum { CROWD = 6, CROWD_WORDS = 16 };

struct crowd {
    int rank, size;
    ptl_process_t id[CROWD];   /* as the interface names processes */
    ptl_process_t phys[CROWD]; /* physical ids */
    int pid[CROWD];            /* of the system */
};
extern struct crowd crowd;

/* rule_await_begin() lets a stopped process go on, little by little, until the first bytes of
 * its message from suite_fill() have come: a network may be slow to take them. */
void rule_await_begin(struct scene *s, int pid, const unsigned char *memory, unsigned seed);

/* rule_await_change() makes progress until a byte that a reply brings is no more what it was. */
void rule_await_change(struct scene *s, const unsigned char *byte, unsigned char from);

/* rule_meet() makes contact with a process, so that the next message to it leaves at once. */
void rule_meet(struct scene *s, ptl_process_t peer);

/* crowd_run() runs `member` in `size` processes that open an interface with these limits
 * (or null), and fails the case if one of them fails or dies that nobody killed. */
void crowd_run(struct scene *s, int size, unsigned pt_options, ptl_size_t events,
               const ptl_ni_limits_t *desired, void (*member)(struct scene *s));

void crowd_step(struct scene *s);
void crowd_show(int slot, uint64_t value);
uint64_t crowd_look(int rank, int slot);

/* crowd_await() makes progress until a word of another member has this value. */
void crowd_await(struct scene *s, int rank, int slot, uint64_t value);

/* crowd_kill() ends another member; it counts no more in crowd_step(). */
void crowd_kill(int rank);

#endif
