/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of libpinwheel-firehose: the table, its lock, requests beyond the first hit, messages.
 *
 * The lock guards the engine and all lists; it is held for a bounded number of steps, and never in
 * a callback. Who waits (for a winner of section 4, or for another thread's pin) sleeps on
 * `changed`, which everybody signals who may have changed what is waited for.
 */
#ifndef FIREHOSE_INSIDE_H
#define FIREHOSE_INSIDE_H

#include "base/list.h"
#include "base/mutex.h"
#include "pin/pin.h"
#include "pinwheel_firehose.h"

#include <stdatomic.h>

enum { STRIPES = 64 };

/* internal[0] of a request. */
enum { R_FREE, R_FAST, R_HELD, R_AWAITED };

/* A request that was not a hit without the lock. */
struct call {
    struct pin_request engine;
    struct pw_firehose_request *user;
    pw_firehose_completed completed;
    void *context;
    struct list link;  /* among those that are due, or whose remote callback is awaited */
    struct list alive; /* among all */
    unsigned flags;
    int error;
    bool local, done;      /* a local pin, whose caller waits until it is done */
    bool local_hit, asked; /* asked: its remote callback has been asked for by a message */
    uint64_t token;        /* of that message */
    size_t args_length;
    unsigned char args[PW_FIREHOSE_ARGS];
};

/* Hits without the lock, counted by stripes, as threads have them. */
struct stripe {
    _Alignas(64) _Atomic uint64_t local, remote, local_release, remote_release;
};

/* An answer, or a remote callback to run, that is due. */
struct served {
    struct list link;
    unsigned node;
    uint64_t token;
    bool callback, only_callback;
    size_t count, args_length;
    unsigned char args[PW_FIREHOSE_ARGS];
    struct pw_firehose_region regions[];
};

struct pw_firehose {
    struct pw_firehose_config config;
    struct pw_firehose_ops ops;
    uint32_t units_most;    /* of a remote request */
    uint64_t max_local_pin; /* bytes */
    struct pin *pin;
    struct mutex lock;
    struct condition changed;
    unsigned sleepers;
    struct list alive, due, asked, callbacks; /* calls; the last: struct served */
    _Atomic bool work;                        /* something is due */
    uint64_t token, request_alloc;
    bool verbose;
    struct stripe stripes[STRIPES];
};

#define TOKEN_CALLBACK (UINT64_C(1) << 63) /* of messages that ask for a remote callback only */

/* messages.c */
extern _Thread_local unsigned firehose_in_callback;
void firehose_wake(struct pw_firehose *f);
void firehose_ended(struct pw_firehose *f, struct list *ended);
int firehose_move(struct pw_firehose *f, const struct pw_firehose_region *unpins, size_t u,
                  struct pw_firehose_region *pins, size_t n);
void *firehose_move_message(struct pw_firehose *f, struct call *c, size_t *length);
void firehose_send_move(struct pw_firehose *f, unsigned node, void *bytes, size_t length);
void firehose_run(struct pw_firehose *f);
void firehose_complete(struct pw_firehose *f, struct call *c);

/* wire.c */
enum message_type { MESSAGE_MOVE = 1, MESSAGE_ANSWER, MESSAGE_CALLBACK, MESSAGE_CALLED };
struct message {
    enum message_type type;
    bool callback;
    uint64_t token;
    int error;
    uint32_t unpin_count, pin_count, args_length;
    const unsigned char *unpins, *pins, *args; /* in the message */
};
/* The bytes of a message, by its number of units. */
size_t wire_size(const struct message *m);
/* wire_write() writes the header; the units follow by wire_range(). */
unsigned char *wire_write(unsigned char *at, const struct message *m);
unsigned char *wire_put(unsigned char *at, const struct pin_range *range, bool handle);
const unsigned char *wire_get(const unsigned char *at, struct pin_range *range, bool handle);
int wire_read(const void *bytes, size_t length, struct message *m);

/* calls.c */
void call_free(struct call *c);

#endif
