/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the files of libpinwheel-firehose: the table and its lock, requests that
 * are no hit without the lock, and messages.
 *
 * The lock guards the engine and all lists; a thread holds it for a bounded number of steps, and
 * never in a callback of the client. A thread that waits (for the winner of the paper's section 4,
 * or for another thread's pin) sleeps on `changed`; a thread that may have ended such a wait wakes
 * all of them.
 */
#ifndef FIREHOSE_INSIDE_H
#define FIREHOSE_INSIDE_H

#include "base/list.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "pin/pin.h"
#include "pinwheel_firehose.h"

#include <stdatomic.h>

/* State of a request, in its internal[0]. */
enum { R_FREE, R_FAST, R_HELD, R_AWAITED };

/* A call: a request that was no hit without the lock. */
struct call {
    struct pin_request engine;
    struct pw_firehose_request *user; /* NULL: the call gives up units that were revoked */
    pw_firehose_completed completed;
    void *context;
    struct list link;  /* in the list `due`, or in `asked` while it waits for its remote callback */
    struct list alive; /* in the list of all calls */
    unsigned flags;
    int error;
    /* local: a pin of this node's memory, whose caller waits until the call is done */
    bool local, done;
    bool local_hit, asked; /* asked: a message has asked the peer for the remote callback */
    uint64_t token;        /* token of that message */
    size_t args_length;
    unsigned char args[PW_FIREHOSE_ARGS];
    uint64_t addr, len;  /* remote: as asked, to begin the request anew */
    unsigned long polls; /* since it began anew */
    /* in the list `restarts`: the request was begun again and gathers; it has to yield */
    bool began, yields;
};

/* A call of pw_firehose_forget() whose memory is still pinned. */
struct forgetting {
    struct list link;
    uint64_t addr, len, when;
    pw_firehose_forgotten done;
    void *context;
};

/* Counts of hits and releases without the lock, by the kind of call that hit. A thread with an
 * owner slot (base/lock.h) has the stripe of that number, which no other thread writes; all other
 * threads share the last one. */
enum { COUNT_PIN, COUNT_TRY, COUNT_PARTIAL, COUNT_RELEASE, COUNTS };
struct stripe {
    _Alignas(64) _Atomic uint64_t count[COUNTS][2]; /* of this node's memory, of that of peers */
};

/* A remote callback that this node has to run for a peer, and perhaps an answer to send. */
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
    uint32_t units_most;    /* units of the largest remote request */
    uint64_t max_local_pin; /* bytes */
    struct pin *pin;
    struct mutex lock;
    struct condition changed;
    unsigned sleepers;
    /* lists of struct call, but for `callbacks`, of struct served */
    struct list alive, due, asked, callbacks;
    /* calls that gave up revoked units; remote calls that begin anew; struct forgetting */
    struct list giving, restarts, forgets;
    /* How many watchers have seen that memory changes, and have not said where yet: meanwhile no
     * pin is begun or served. */
    _Atomic unsigned alarms;
    struct watch *watch;
    _Atomic bool told_version;
    _Atomic unsigned later;       /* how many `restarts` and `forgets` there are */
    _Atomic bool short_of_memory; /* a step of forget.c must be tried again in the next poll */
    _Atomic bool work;            /* firehose_run() has something to do */
    uint64_t token, request_alloc;
    bool verbose;
    struct stripe stripes[LOCK_SLOTS + 1];
};

/* set in tokens of messages that only ask for a remote callback */
#define TOKEN_CALLBACK (UINT64_C(1) << 63)

/* messages.c */
extern _Thread_local unsigned firehose_in_callback __attribute__((tls_model("initial-exec")));
void firehose_wake(struct pw_firehose *f);
void firehose_ended(struct pw_firehose *f, struct list *ended);
int firehose_move(struct pw_firehose *f, const struct pw_firehose_region *unpins, size_t u,
                  struct pw_firehose_region *pins, size_t n);
void *firehose_move_message(struct pw_firehose *f, struct call *c, size_t *length);
void firehose_send(struct pw_firehose *f, unsigned node, const void *bytes, size_t length);
void firehose_send_move(struct pw_firehose *f, unsigned node, void *bytes, size_t length);
void firehose_run(struct pw_firehose *f);
void firehose_complete(struct pw_firehose *f, struct call *c);

/* forget.c */
bool firehose_forget_step(struct pw_firehose *f);
bool firehose_forget_ended(struct pw_firehose *f);
void firehose_restart(struct pw_firehose *f, struct call *c);
int firehose_take_revoke(struct pw_firehose *f, unsigned node, const struct pin_range *ranges,
                         uint32_t count);
void firehose_forget_free(struct pw_firehose *f);

/* watch.c */
/* Starts the watcher; returns what it notices (PW_FIREHOSE_WATCHED_...). */
unsigned firehose_watch_open(struct pw_firehose *f);
/* Registers memory, which is going to be pinned, for the events of the watcher, if there is one. */
void firehose_watch(struct pw_firehose *f, const struct pw_firehose_region *regions, size_t n);
void firehose_watch_close(struct pw_firehose *f);

/* wire.c */
enum message_type {
    MESSAGE_MOVE = 1,
    MESSAGE_ANSWER,
    MESSAGE_CALLBACK,
    MESSAGE_CALLED,
    MESSAGE_REVOKE
};
struct message {
    enum message_type type;
    bool callback;
    uint64_t token;
    int error;
    uint32_t unpin_count, pin_count, args_length;
    const unsigned char *unpins, *pins, *args; /* point into the message */
};
/* wire_size() returns the bytes of a message with so many units and arguments. */
size_t wire_size(const struct message *m);
/* wire_write() writes the header and returns where it ends; there wire_put() writes the units. */
unsigned char *wire_write(unsigned char *at, const struct message *m);
unsigned char *wire_put(unsigned char *at, const struct pin_range *range, bool handle);
const unsigned char *wire_get(const unsigned char *at, struct pin_range *range, bool handle);
int wire_read(const void *bytes, size_t length, struct message *m);
/* wire_version() returns the version of a message of the library, else 0; `own` is this one's. */
unsigned wire_version(const void *bytes, size_t length, unsigned *own);

/* calls.c */
void call_free(struct call *c);
void firehose_wait(struct pw_firehose *f);

#endif
