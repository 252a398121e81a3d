/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that a descriptor brings one after the other (a packet socket, a tap), sorted by rules in
 * this process: each context has a queue of its own, so that frames of a context that is slow take
 * no room from others.
 *
 *      descriptor ──read()──► slot ──rules──► queue of a context ──► receive() ──► done(): free
 *
 * Invariant: a slot is free, in the queue of one context, or with the caller. There are as many as
 * all queues and a batch hold, so reading always finds one.
 */
#ifndef RAW_SORTED_H
#define RAW_SORTED_H

#include "raw/source/source.h"

enum { SORTED_QUEUE = 128, SORTED_SLOT = 9216 };

struct raw_sorted;

struct raw_sorted_ops {
    /* read() reads a frame, up to SORTED_SLOT bytes, and returns its whole length; 0: it is none of
     * ours; -EAGAIN: none is there. */
    int (*read)(struct raw_sorted *s, uint8_t *to);
    /* write() sends a frame: 0 or -errno. */
    int (*write)(struct raw_sorted *s, const uint8_t *frame, uint32_t length);
    /* rules() puts rules into the kernel; NULL: there are none. */
    int (*rules)(struct raw_sorted *s, const struct raw_wanted *wanted, char error[RAW_ERROR]);
    /* counts() adds what the kernel counts; NULL: nothing. */
    void (*counts)(struct raw_sorted *s, struct raw_source_counts *counts);
    void (*close)(struct raw_sorted *s); /* what is beside the descriptor; NULL: nothing */
};

struct raw_sorted_queue {
    struct raw_frame frame[SORTED_QUEUE];
    unsigned first, count;
};

struct raw_sorted {
    struct raw_source source;
    const struct raw_sorted_ops *ops;
    int fd;
    unsigned ifindex;
    bool spin;
    struct raw_source_counts counts;
    uint64_t lost[RAW_CONTEXTS]; /* frames that found the queue of their context full */
    /* private */
    struct raw_rules *rules;
    struct raw_wanted wanted;
    uint8_t *memory; /* the slots, then one for a frame that is to be sent */
    uint32_t *free;
    unsigned free_count;
    struct raw_sorted_queue *queue; /* by context */
    unsigned idle;                  /* how often wait() was called that spins */
};

/* raw_sorted_open() makes queues and slots for the contexts of `wanted`. `s` has its ops and its
 * descriptor and may be the first member of more; raw_sorted_close() frees it. -ENOMEM. */
int raw_sorted_open(struct raw_sorted *s, const char *name, const struct raw_wanted *wanted);
void raw_sorted_close(struct raw_source *source);

#endif
