/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel_firehose.h: Firehose, distributed page registration shared by the threads of a node.
 *
 * It decides which memory of this node and of its peers is pinned (registered with a network,
 * mapped, locked), and moves pins to where they are needed: "Firehose: An Algorithm for Distributed
 * Page Registration on Clusters of SMPs" (Bell, Nishtala, 2004). A remote pin that hits needs no
 * message; one that misses sends one move, which names the regions to unpin and those to pin. This
 * is the API of the paper's section 3, with one table for all threads, as in section 4.
 *
 * The client provides the network and pins memory (struct pw_firehose_ops). Messages may overtake
 * each other. Each must arrive once, or the client declares the peer dead (pw_firehose_peer_dead).
 *
 * - Shapes. Addresses and lengths are in bytes; what is pinned is a superset of what was asked,
 *   in whole pages. A node is 0 ... nodes - 1. All nodes have the same limits and variant.
 * - Ownership. Requests are the caller's memory, which stays where it is from the pin to the
 *   release; the library copies what else it is given. A handle is what the client's move() has
 *   written to the region; it is sent to the node that has asked for the pin.
 * - Threads. All calls but _init and _fini may be made by any thread at any time. Callbacks are
 *   made without a lock held, by any thread that is in a call. In a callback, and in
 *   pw_firehose_deliver(), only pw_firehose_release() is legal; pins give -EDEADLK.
 * - Waiting. A local pin returns when the memory is pinned; a remote pin returns when its message
 *   has left, and its callback is called by pw_firehose_poll() or by a pin that waits. A call that
 *   waits polls. A thread that holds pins while it waits for others may wait for itself: pin remote
 *   memory before local memory, all that an operation needs at once, and see `patience`.
 * - Errors. Functions that return int return 0, or a number given at the function, or a negative
 *   errno. A wrong call or message is counted (`refused`) and changes nothing.
 *
 * docs/firehose.md has an example.
 */
#ifndef PINWHEEL_FIREHOSE_H
#define PINWHEEL_FIREHOSE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PW_FIREHOSE_EXPORT __attribute__((visibility("default")))
#else
#define PW_FIREHOSE_EXPORT
#endif

/* Maximal bytes of a handle, of the arguments of a remote callback, and of the header of a
 * message. */
#define PW_FIREHOSE_HANDLE 32
#define PW_FIREHOSE_ARGS 128
#define PW_FIREHOSE_HEADER 40

struct pw_firehose;

struct pw_firehose_region {
    uint64_t addr, len;
    unsigned char handle[PW_FIREHOSE_HANDLE];
};

/* A request. It holds the range [addr, addr + len) of `node`; `handle` is the handle of its first
 * unit. The caller zeroes `internal` once, before the first use. */
struct pw_firehose_request {
    uint64_t addr, len;
    unsigned node, flags;
    unsigned char handle[PW_FIREHOSE_HANDLE];
    uint64_t internal[3];
};

struct pw_firehose_ops {
    /* Unpins `unpin_count` regions of this node, then pins `pin_count` and writes their handles.
     * Returns 0, or a negative errno: then all of the former are unpinned and none of the latter
     * is pinned, and the node that has asked for them gets the error. */
    int (*move)(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                struct pw_firehose_region *pins, size_t pin_count);
    /* Sends a message, which it copies, to a node, where the client gives it to
     * pw_firehose_deliver(). If it does not return 0 the peer counts as dead. May be NULL in a job
     * of one node. */
    int (*send)(void *client, unsigned node, const void *message, size_t length);
    /* Makes progress: receives messages. May be NULL. */
    void (*poll)(void *client);
    /* The remote callback, which runs at the target after the move and before the move's answer.
     * May be NULL. */
    void (*remote)(void *client, unsigned node, const struct pw_firehose_region *regions,
                   size_t count, const void *args, size_t length);
};

/* the region variant: units have any length up to a bound, and neighbours are joined */
#define PW_FIREHOSE_REGIONS 1u
#define PW_FIREHOSE_LOCAL_ONLY 2u /* there are no remote pins: all memory is for local pins */
#define PW_FIREHOSE_REDUCED 4u    /* accept limits below the minima, for tests */
#define PW_FIREHOSE_IN_HANDLER 8u /* pw_firehose_deliver() also pins and calls callbacks */
#define PW_FIREHOSE_NO_ENV 16u    /* environment variables are ignored */
/* A thread of the library notices when memory of this node that was pinned is unmapped, mapped
 * anew, moved (mremap), advised away or forked, by userfaultfd(2), and forgets it. What the kernel
 * does not let it notice, the client must tell; a line on standard error says so, and `watched` of
 * struct pw_firehose_info. */
#define PW_FIREHOSE_WATCH 32u

/* Sizes are in bytes; a value of 0 stands for the default in brackets. */
struct pw_firehose_config {
    unsigned nodes, self, flags;
    size_t page;           /* bytes of a bucket, a power of two [the system's page] */
    uint64_t max_pinnable; /* how much memory may be pinned on this node at all */
    uint64_t max_regions;  /* region variant: how many regions [unlimited] */
    uint64_t max_region;   /* region variant: the longest one [128 KiB] */
    size_t max_message;    /* the longest message [4096] */
    uint64_t m, maxvictim; /* the paper's M and MAXVICTIM [environment, else 3/4 and 1/4] */
    /* memory that is pinned already, in whole pages, and stays so */
    const struct pw_firehose_region *prepinned;
    size_t prepinned_count;
    unsigned da_limit;      /* polls after which a request declares deadlock [30] */
    unsigned long patience; /* polls after which a request gives up with -ETIMEDOUT [never] */
    const struct pw_firehose_ops *ops;
    void *client;
};

/* The limits that follow from a configuration. Where a number of regions is 0, the variant has no
 * such limit. */
struct pw_firehose_info {
    uint64_t m, maxvictim;                  /* bytes */
    uint64_t firehoses;                     /* f: units that may be pinned at each peer */
    uint64_t max_local_pin, max_remote_pin; /* bytes of one request */
    uint64_t max_local_regions, max_remote_regions;
    /* What the library notices by itself (PW_FIREHOSE_WATCHED_...); pw_firehose_limits() says 0. */
    unsigned watched;
};

/* unmapped, moved and advised memory; fork(), which the kernel tells only with CAP_SYS_PTRACE */
#define PW_FIREHOSE_WATCHED_MEMORY 1u
#define PW_FIREHOSE_WATCHED_FORK 2u

struct pw_firehose_counts {
    uint64_t pin, hit, pending, miss, try_hit, try_miss, partial_hit, partial_miss, release;
};

/* The counters of the paper's implementation, FH_LOCAL_PIN and its like. pin = hit + pending + miss
 * + pins that have failed or are not decided yet. */
struct pw_firehose_stats {
    struct pw_firehose_counts local, remote;
    uint64_t request_alloc;                /* requests for which the library has allocated memory */
    uint64_t moves, served, evicted;       /* moves sent; moves executed; units replaced */
    uint64_t deadlocks_avoided, rollbacks; /* as in section 4 of the paper */
    uint64_t failed, refused;
    uint64_t pinned; /* units that are pinned now */
    /* units of this node that were forgotten; units of peers that those have revoked; requests that
     * were begun anew because a unit of theirs was being forgotten, each counted again in `pin` */
    uint64_t forgotten, revoked, restarted;
};

/* pw_firehose_limits() computes what pw_firehose_init() would use, from the configuration and the
 * environment: GASNET_FIREHOSE_M, GASNET_FIREHOSE_MAXVICTIM_M, and in the region variant
 * GASNET_FIREHOSE_R, GASNET_FIREHOSE_MAXVICTIM_R, GASNET_FIREHOSE_MAXREGION_SIZE (MB, or with a
 * suffix B, KB, MB, GB; those in _R are numbers).
 *   -EINVAL  M + MAXVICTIM exceeds max_pinnable, is below the minimum (page variant: page * nodes *
 *            32 and page * 4096; region variant: page * nodes * 32 and page * 256), or leaves a
 * peer not one firehose; a value of the environment is none; the configuration is not sound */
PW_FIREHOSE_EXPORT int pw_firehose_limits(const struct pw_firehose_config *config,
                                          struct pw_firehose_info *info);

/* pw_firehose_init() makes a table. All nodes must make one, with the same limits. -EINVAL as
 * above; -EEXIST: prepinned ranges overlap; -ENOMEM. `info` may be NULL. */
PW_FIREHOSE_EXPORT int pw_firehose_init(const struct pw_firehose_config *config,
                                        struct pw_firehose **firehose,
                                        struct pw_firehose_info *info);

/* pw_firehose_fini() unpins all idle units and frees the table; no other call may be in progress.
 * It returns how many requests were not released, and with GASNET_FIREHOSE_VERBOSE=1 prints each of
 * them. */
PW_FIREHOSE_EXPORT int pw_firehose_fini(struct pw_firehose *firehose);

/* pw_firehose_poll() pins and unpins as peers have asked for, and calls callbacks that are due. */
PW_FIREHOSE_EXPORT void pw_firehose_poll(struct pw_firehose *firehose);

/* pw_firehose_local_pin() pins memory of this node, and returns when it is pinned.
 *   -EINVAL empty, or wraps; -EMSGSIZE more than max_local_pin; -EBUSY the request is in use;
 *   -EDEADLK called in a callback; -ETIMEDOUT; -ENOMEM; what move() returned */
PW_FIREHOSE_EXPORT int pw_firehose_local_pin(struct pw_firehose *firehose, uint64_t addr,
                                             uint64_t len, struct pw_firehose_request *request);

/* pw_firehose_try_local_pin() takes the range if all of it is pinned;
 * pw_firehose_partial_local_pin() takes the lowest part of the range that is pinned. -EAGAIN: there
 * is none. They never wait, send or pin. */
PW_FIREHOSE_EXPORT int pw_firehose_try_local_pin(struct pw_firehose *firehose, uint64_t addr,
                                                 uint64_t len, struct pw_firehose_request *request);
PW_FIREHOSE_EXPORT int pw_firehose_partial_local_pin(struct pw_firehose *firehose, uint64_t addr,
                                                     uint64_t len,
                                                     struct pw_firehose_request *request);

#define PW_FIREHOSE_RETURN_IF_PINNED 1u /* no callback if the pin is a hit */
/* ops->remote runs at the target, unless the pin is a hit */
#define PW_FIREHOSE_REMOTE_CALLBACK 2u
#define PW_FIREHOSE_LATER 1

/* Called once when a remote pin has succeeded or failed; after a failure the request holds nothing.
 * `local_hit`: nothing was sent, so no remote callback has run. */
typedef void (*pw_firehose_completed)(void *context, struct pw_firehose_request *request, int error,
                                      int local_hit);
/* Writes the arguments of the remote callback, PW_FIREHOSE_ARGS bytes at most; returns their
 * length. */
typedef size_t (*pw_firehose_args)(void *context, void *args);

/* pw_firehose_remote_pin() pins memory of a peer. It returns 0 if the pin was a hit: then
 * `completed` was called already, or, with PW_FIREHOSE_RETURN_IF_PINNED, is not called.
 * PW_FIREHOSE_LATER: `completed` will be called. `args` may be NULL.
 *   -EINVAL as above, or `node` is this one or none; -EMSGSIZE; -EPIPE the peer is dead; -EBUSY,
 *   -EDEADLK, -ETIMEDOUT, -ENOMEM as above. After an error `completed` is not called. */
PW_FIREHOSE_EXPORT int pw_firehose_remote_pin(struct pw_firehose *firehose, unsigned node,
                                              uint64_t addr, uint64_t len, unsigned flags,
                                              struct pw_firehose_request *request,
                                              pw_firehose_args args,
                                              pw_firehose_completed completed, void *context);
PW_FIREHOSE_EXPORT int pw_firehose_try_remote_pin(struct pw_firehose *firehose, unsigned node,
                                                  uint64_t addr, uint64_t len,
                                                  struct pw_firehose_request *request);
PW_FIREHOSE_EXPORT int pw_firehose_partial_remote_pin(struct pw_firehose *firehose, unsigned node,
                                                      uint64_t addr, uint64_t len,
                                                      struct pw_firehose_request *request);

/* pw_firehose_release() gives requests back; it may be called anywhere. -EALREADY: one of them
 * holds nothing; -EBUSY: one is still waiting for its pin. The other requests are released
 * nevertheless. */
PW_FIREHOSE_EXPORT int pw_firehose_release(struct pw_firehose *firehose,
                                           struct pw_firehose_request *const *requests,
                                           size_t count);

/* Called once when no unit of a forgotten range is pinned any more as it was. */
typedef void (*pw_firehose_forgotten)(void *context);

/* pw_firehose_forget() tells that memory of this node is gone, or about to go: unmapped, mapped
 * anew, moved, advised away, truncated, or copied by fork(). When it returns, no unit that touches
 * the range is a hit on this node. Each is unpinned in a poll after its last use has ended, here
 * and at all peers, which are told to give up their firehoses; pins of the range wait until then,
 * and pin the memory that is there then. It may be called anywhere; called before the memory goes,
 * the memory must not be pinned again until it has gone. It returns 0 if nothing of the range is
 * pinned: then `done` is not called. PW_FIREHOSE_LATER: `done`, which may be NULL, will be called
 * by a call that polls. After an error nothing was forgotten.
 *   -EINVAL  the range is empty or wraps; -EBUSY  part of it is prepinned; -ENOMEM */
PW_FIREHOSE_EXPORT int pw_firehose_forget(struct pw_firehose *firehose, uint64_t addr, uint64_t len,
                                          pw_firehose_forgotten done, void *context);

/* pw_firehose_deliver() takes a message that `node` has sent, and checks everything in it.
 *   -EPROTO  it is none of ours, of another version, or breaks the rules; its sender is told if it
 *            was a move; -ENOMEM  it is lost: declare its sender dead */
PW_FIREHOSE_EXPORT int pw_firehose_deliver(struct pw_firehose *firehose, unsigned node,
                                           const void *message, size_t length);

/* pw_firehose_peer_dead() ends all requests that wait for `node`, with -EPIPE, and unpins all that
 * it had pinned here; the node stays dead. -EINVAL: this is the own node, or none; -ENOMEM: call it
 * again. */
PW_FIREHOSE_EXPORT int pw_firehose_peer_dead(struct pw_firehose *firehose, unsigned node);

PW_FIREHOSE_EXPORT void pw_firehose_stats(struct pw_firehose *firehose,
                                          struct pw_firehose_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
