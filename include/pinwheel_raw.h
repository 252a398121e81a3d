/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel_raw.h: sPIN handlers on the frames of an Ethernet interface, a tap or a capture file, of
 * a program. What `pinwheel raw run` does, with HPU memory and a queue of requests that the program
 * serves. docs/raw-ethernet.md says what handlers and rules are.
 *
 *      pw_raw_new() ─► pw_raw_context() ... ─► pw_raw_rules() ─► pw_raw_open() ─►
 *           while (...) { pw_raw_turn(), pw_raw_wait() }  ─► pw_raw_close()
 *
 * - Shapes. Lengths are in bytes; a frame is from its destination address on, without checksum of
 *   the link: 14 to 9018. A context is 0, 1, ... in the order in which they were added, 16 at most.
 * - Ownership. All strings and structs that the program gives are copied. Memory that calls return
 *   is of the `struct pw_raw`, until pw_raw_close().
 * - Threads. A `struct pw_raw` belongs to one thread at a time. Another thread may take from and
 *   answer the queue of requests, and read HPU memory, meanwhile; natively handlers run in the
 *   thread that calls pw_raw_turn().
 * - Errors. Calls return 0 or a count, or a negative errno; pw_raw_error() has a line that names
 * the thing and the remedy. Nothing is printed but what handlers print.
 */
#ifndef PINWHEEL_RAW_H
#define PINWHEEL_RAW_H

#include <stddef.h>
#include <stdint.h>

#include "spin_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PW_RAW_EXPORT __attribute__((visibility("default")))
#else
#define PW_RAW_EXPORT
#endif

struct pw_raw;

/* Handlers, and what they have. What is 0 or NULL has its default. */
struct pw_raw_context {
    const char *name;   /* which rules name; may be NULL, if it is the only context */
    const char *image;  /* a shared object, or RV32 of `pinwheel cc --image` */
    const char *prefix; /* of the handlers PREFIX_header, _payload, _completion; "raw" */
    size_t state;       /* HPU memory; 65536 */
    unsigned budget_us; /* of a handler; 1000000 */
    unsigned age_ms;    /* of a message without a frame; 1000 */
    unsigned messages;  /* unfinished ones, at most; 4096 */
    unsigned priority;  /* the lowest has its turn first; 0 */
    unsigned share;     /* frames a turn, 64 at most; 64 */
    /* A queue of that many requests, a power of two, of so many bytes each. Its end, a struct
     * spin_queue_end, is at the beginning of the HPU memory. */
    unsigned slots, room;
};

enum {
    PW_RAW_SPIN = 1,    /* pw_raw_wait() does not sleep */
    PW_RAW_YES = 2,     /* also what may cut off the default route */
    PW_RAW_NATIVE = 4,  /* the program runs in the driver, or not at all */
    PW_RAW_SKB = 8,     /* it runs in the kernel behind the driver */
    PW_RAW_PACKET = 16, /* a packet socket in the place of AF_XDP */
    PW_RAW_OBSERVE = 32 /* with PW_RAW_PACKET: the kernel handles all frames as well */
};

/* Where frames come from: one of iface, tap, pcap and serve. */
struct pw_raw_source {
    const char *iface; /* an interface; it needs CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW to be opened */
    const char *tap;   /* an interface without a card, which is made */
    const char *pcap;  /* a capture file */
    const char *out;   /* with pcap: where frames that are sent go, or NULL */
    unsigned flags;    /* PW_RAW_... */
    /* The socket of `pinwheel raw serve`, which owns an interface: the program needs no capability,
     * and has frames as its policy allows. No frame can be passed on. */
    const char *serve;
    unsigned ring; /* with serve: slots of each context's ring; 0: as many as the policy allows */
};

/* What has become of the frames of a context; each is counted in one of those from `answered` to
 * `no_room`. */
struct pw_raw_counts {
    uint64_t frames, answered, kept, passed;
    uint64_t dropped, faults, timeouts, failed, no_room;
    uint64_t messages, ended, aged;
    uint64_t sent; /* frames that handlers have made */
    uint64_t lost; /* frames that the rules matched, and that found no room in the kernel */
};

/* pw_raw_new() makes what all else belongs to; -ENOMEM. pw_raw_close() ends it; the interface is as
 * before. NULL is nothing. */
PW_RAW_EXPORT int pw_raw_new(struct pw_raw **raw);
PW_RAW_EXPORT void pw_raw_close(struct pw_raw *raw);

/* pw_raw_error() returns what the last call that failed has to say, one line without its end. */
PW_RAW_EXPORT const char *pw_raw_error(const struct pw_raw *raw);

/* pw_raw_context() adds a context, before pw_raw_open(), and returns its number. -EINVAL: the image
 * or a value is wrong; -ENOSPC: there are 16; -EBUSY: it is open. */
PW_RAW_EXPORT int pw_raw_context(struct pw_raw *raw, const struct pw_raw_context *context);

/* pw_raw_rules() sets the rules: text, or one of the names "icmp-echo", "udp-echo", "slmp", "all".
 * While it is open they take the place of those before; each frame meets the one or the other.
 * -EINVAL: the rules are wrong, or name a context that is not there; those before stay. */
PW_RAW_EXPORT int pw_raw_rules(struct pw_raw *raw, const char *rules);

/* pw_raw_open() opens the source; rules and contexts must be there. -EIO: it cannot be opened, and
 * pw_raw_error() says why. Afterwards the program needs no capability, unless it sets rules again
 * or handlers pass frames on. With `serve` also -EACCES: the policy does not allow the rules;
 * -ENOSPC: not so much, or there is no room now; -ENOENT, -ECONNREFUSED: there is no owner.
 * pw_raw_again() opens the same source again, with the rules, HPU memory and queues as they are:
 * when the owner of the interface has gone (pw_raw_turn() or pw_raw_wait() returned -ECONNRESET),
 * or has ended the context (-ETIMEDOUT: its frames were not taken; -ESHUTDOWN). It is for `serve`.
 */
PW_RAW_EXPORT int pw_raw_open(struct pw_raw *raw, const struct pw_raw_source *source);
PW_RAW_EXPORT int pw_raw_again(struct pw_raw *raw);

/* pw_raw_turn() runs handlers on the frames that are there, some of each context, and returns their
 * number. -ENODATA: there will be no more; others end the source. pw_raw_wait() sleeps until there
 * are some, or for so long; -ENODEV: the interface is gone. */
PW_RAW_EXPORT int pw_raw_turn(struct pw_raw *raw);
PW_RAW_EXPORT int pw_raw_wait(struct pw_raw *raw, int milliseconds);

/* pw_raw_send() sends a frame. -EINVAL: its length is wrong; -ENOBUFS: there is no room now. */
PW_RAW_EXPORT int pw_raw_send(struct pw_raw *raw, const void *frame, size_t length);

/* pw_raw_state() returns the HPU memory of a context, of *length bytes; NULL: there is no such
 * context. */
PW_RAW_EXPORT void *pw_raw_state(struct pw_raw *raw, unsigned context, size_t *length);

/* pw_raw_queue() returns the queue of requests of a context (spin_queue.h), and in *fd an eventfd
 * that becomes readable when handlers have put requests into it; NULL: it has none. One thread
 * takes and answers. A handler that waits for an answer keeps the thread of pw_raw_turn() busy, so
 * another thread has to answer. */
PW_RAW_EXPORT struct spin_queue *pw_raw_queue(struct pw_raw *raw, unsigned context, int *fd);

/* pw_raw_counts() stores the counts of a context; -EINVAL: there is no such one. */
PW_RAW_EXPORT int pw_raw_counts(const struct pw_raw *raw, unsigned context,
                                struct pw_raw_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
