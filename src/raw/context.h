/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Execution contexts: handlers, the HPU memory that they share, and the messages whose frames they
 * run on. Frames of a message are those of a set whose id words are equal; a frame of a set without
 * an end is a message of its own.
 *
 *      first frame ──► header handler ──PROCESS_DATA──► payload handler for each frame, the first
 *                          │ DROP: all frames are          │          and the last included
 *                          │ dropped                       ▼ last frame, or none for too long
 *                          └ PROCEED: all go to         completion handler
 *                            the kernel
 *
 * A handler that leaves its memory or its time is ended, that frame is dropped and counted, and the
 * context goes on; so do others, which have memory and stacks of their own.
 *
 * Invariants:
 *  - Each frame ends once, by the source's done().
 *  - A header handler runs before all payload handlers of its message, the completion handler after
 *    them; each once a message. That of a message which ended by its age gets
 *    flow_control_triggered.
 *  - A message is in the table and in the list of ages, or in neither; the list is in the order of
 *    the messages' last frames.
 */
#ifndef RAW_CONTEXT_H
#define RAW_CONTEXT_H

#include "raw/source/source.h"

#include "base/list.h"
#include "hpu/shared.h"

/* What became of the frames and messages of a context. Each frame is counted in one of
 * those from `replied` to `no_room`. */
struct raw_counts {
    uint64_t frames;
    uint64_t replied, consumed, passed; /* consumed: the handler has succeeded, and kept it */
    uint64_t dropped;                   /* by a handler's return code */
    uint64_t faults, timeouts, failed;  /* their handler was ended, or returned FAIL */
    uint64_t no_room;                   /* their message would have been one too many */
    uint64_t messages, ended, aged;     /* begun; ended by their last frame; ended by their age */
    uint64_t sent;                      /* frames that handlers have made */
};

struct raw_context_options {
    const char *name, *image,
        *prefix;              /* handlers PREFIX_header, PREFIX_payload, PREFIX_completion */
    size_t state;             /* bytes of HPU memory */
    int64_t budget_us;        /* of a handler */
    uint64_t age_ns;          /* of a message without a frame */
    unsigned messages;        /* unfinished ones, at most */
    unsigned priority, share; /* lower goes first; frames a turn, 1 to RAW_BATCH */
    const char *timing;       /* of RV32 images */
};

struct raw_message;

struct raw_context {
    struct raw_context_options options;
    char name[RAW_NAME];
    struct raw_counts counts;
    bool device, has[3]; /* by enum hpu_call */
    /* private */
    void *library;
    void *handler[3];
    struct hpu_device *code_device;
    struct hpu_device_code code[3];
    struct hpu_mem *state;
    struct hpu_pool *pool;
    struct hpu_watchdog *watchdog;
    struct hpu_exec *exec;
    struct raw_message *single; /* that of a set without an end */
    struct raw_message *table;
    struct list ages;
    unsigned unfinished;
    void (*waits)(void *owner); /* raw_context_host() */
    void *waits_for;
    /* the frame whose handler runs */
    struct raw_source *source;
    const struct raw_frame *frame;
    struct raw_message *message;
    enum raw_fate fate;
    uint32_t reply;
};

/* raw_context_open() loads an image, ELF for this machine (a shared object) or for RV32. -1 with
 * the error set; raw_context_close() is to be called all the same. */
int raw_context_open(struct raw_context *c, const struct raw_context_options *options,
                     char error[RAW_ERROR]);
void raw_context_close(struct raw_context *c);

/* raw_context_host() gives handlers memory of the host (PTL_HANDLER_HOST_MEM), before the first
 * frame. `waits` is called whenever a handler yields, and may tell the host of requests there. */
void raw_context_host(struct raw_context *c, void *memory, size_t length,
                      void (*waits)(void *owner), void *owner);

/* raw_context_frame() runs the handlers of a frame, and ends it. */
void raw_context_frame(struct raw_context *c, struct raw_source *source,
                       const struct raw_rules *rules, const struct raw_frame *frame);

/* raw_context_age() ends messages whose last frame came too long before `now`; with `all` those
 * that are there. */
void raw_context_age(struct raw_context *c, struct raw_source *source, uint64_t now, bool all);

#endif
