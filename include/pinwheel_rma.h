/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel_rma.h: remote memory access over Portals 4. A process registers memory and gives others
 * a key of it; with the key they put to that memory, get from it and change it by atomic
 * operations, while its process does something else.
 *
 *      target                                    origin
 *      pw_rma_register(), pw_rma_key_pack()      pw_rma_key_open()
 *           │   PW_RMA_KEY bytes, by any means      ▲
 *           └───────────────────────────────────────┘
 *                                                pw_rma_put(), ..., pw_rma_flush()
 *
 * - Completion. A call returns when its operation has begun. The local buffer is the library's
 * until the operation is over, which a flush tells for all of a peer's operations, and a request
 * for one. An operation that is over is done at the target as well.
 * - Order. Atomic operations of one process on one region are done in the order of their calls.
 * Puts and gets are ordered by flushes only.
 * - Atomicity. Atomic operations on one region are atomic for each element of the same type.
 * - Limits. Operations may have any length: longer ones than the interface takes are cut.
 * - Errors. Functions that return int return 0 or a negative errno; an error that a call returns
 * has changed nothing. An operation that fails later gives its request, or else the next flush:
 *       -EPIPE    the peer has ended, or cannot be reached
 *       -ESTALE   the region is not registered any more, or the key is of an earlier process
 *       -EACCES   the region does not allow this; -EPERM: not to this user
 *       -EFAULT   memory at one of the two ends cannot be accessed
 *       -ENOBUFS  the target has no room for a notice (pinwheel_notify.h)
 *       -EIO      the target's interface refused it for another reason
 *       -ENOMEM   this process's interface did not take it
 *   A peer that is only stopped is waited for.
 * - Threads. Any thread may make any call at any time, but each object (a struct pw_rma, a region,
 *   a key, a request) must be closed by one thread when no other one uses it.
 * - Ownership. Requests and buffers are the caller's. The interfaces stay the caller's, too, and
 *   must be open until pw_rma_close().
 *
 * docs/rma.md has an example and the protocols.
 */
#ifndef PINWHEEL_RMA_H
#define PINWHEEL_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PW_RMA_EXPORT __attribute__((visibility("default")))
#else
#define PW_RMA_EXPORT
#endif

struct pw_rma;
struct pw_rma_region;
struct pw_rma_key;
struct pw_rma_peer;

/* ---- Opening ---- */

#define PW_RMA_INTERFACES 8u /* interfaces of a struct pw_rma, at most */
#define PW_RMA_ANY_USER 1u   /* regions can be accessed by processes of any user */

/* `interfaces` are matching interfaces, all of them logical or all physical, and `limits` what
 * PtlNIInit() has stored for each. All processes have equally many, in the same order: a region is
 * at one of them, which its key names, and is accessed through the origin's of the same place. */
struct pw_rma_config {
    unsigned count;
    const ptl_handle_ni_t *interfaces;
    const ptl_ni_limits_t *limits;
    unsigned flags; /* PW_RMA_ANY_USER */
};

/* pw_rma_open() prepares for remote memory access: a portal table entry, an event queue and 16
 * counters at each interface. The first region with PW_RMA_NOTIFY takes a second entry and queue.
 *   -EINVAL  count is 0 or above PW_RMA_INTERFACES; a flag is unknown; an interface is none or not
 *            matching, or takes no atomic of 32 bytes; logical interfaces beside physical ones
 *   -ENOSPC  the interface has no such object left; -ENOMEM */
PW_RMA_EXPORT int pw_rma_open(const struct pw_rma_config *config, struct pw_rma **rma);

/* pw_rma_close() waits until all operations are over, and frees all that belongs to `rma`.
 *   -EBUSY  a region is registered, or a key is open */
PW_RMA_EXPORT int pw_rma_close(struct pw_rma *rma);

/* ---- Regions and keys ---- */

/* What others may do with a region. */
#define PW_RMA_READ 1u   /* get */
#define PW_RMA_WRITE 2u  /* put, accumulate; and with PW_RMA_READ what does both */
#define PW_RMA_PAIRS 4u  /* with PW_RMA_WRITE: atomic operations on pairs, too, by handlers */
#define PW_RMA_NOTIFY 8u /* with another one: notified access, too (pinwheel_notify.h) */

/* pw_rma_register() lets other processes access the `length` bytes at `start`, which must remain
 * mapped; no bytes are a region, too. Regions may overlap. Those of several interfaces are spread
 * over them.
 *   -EINVAL  an access right is unknown or there is none; PW_RMA_PAIRS without PW_RMA_WRITE;
 *            PW_RMA_NOTIFY alone; the range wraps
 *   -ENOSPC  the interface has no entry left; -ENOMEM */
PW_RMA_EXPORT int pw_rma_register(struct pw_rma *rma, void *start, size_t length, unsigned access,
                                  struct pw_rma_region **region);

/* pw_rma_unregister() ends all access to a region. Operations that come later give their origin
 * -ESTALE.
 *   -EBUSY   an operation is in progress: call it again. Meanwhile no other one begins
 *   -EINVAL  a request of pw_notify_open() is open: nothing has changed */
PW_RMA_EXPORT int pw_rma_unregister(struct pw_rma_region *region);

/* ---- Memory that peers of this host map ---- */

/* pw_rma_allocate() takes zeroed memory for a region and registers it; pw_rma_unregister() frees
 * it. Processes of the same user on this host, in the same network namespace, map it by
 * themselves at their first operation with its key: from then on puts, gets and atomic operations
 * on integers and reals of up to 8 bytes at natural alignment are done by the calls that begin
 * them, without a message. They are atomic towards those that come by messages and towards the
 * owner's atomic instructions. A flush makes what was stored visible to all before its caller's
 * later loads. What cannot be mapped goes by messages. All pages are taken at once.
 *   -ENOMEM  neither MemAvailable nor a cgroup's limit may be passed by it
 * and as pw_rma_register(). */
PW_RMA_EXPORT int pw_rma_allocate(struct pw_rma *rma, size_t length, unsigned access, void **start,
                                  struct pw_rma_region **region);

/* pw_rma_room() finds out whether so much memory may be taken: processes of one host that are about
 * to allocate together ask for the sum of all, and none allocates if one of them is told -ENOMEM.
 * Each looks at its own cgroups. */
PW_RMA_EXPORT int pw_rma_room(uint64_t bytes);

#define PW_RMA_KEY 64 /* bytes of a key */

/* pw_rma_key_pack() writes the key of a region. It is the same wherever it is sent.
 *   -ERANGE  `size` is below PW_RMA_KEY */
PW_RMA_EXPORT int pw_rma_key_pack(const struct pw_rma_region *region, void *bytes, size_t size);

/* pw_rma_key_open() makes a key of the bytes that its target has packed. It sends nothing: whether
 * the region is still registered the first operation tells.
 *   -EPROTO   the bytes are no key, or one of another version of this library
 *   -EBADMSG  the bytes are damaged, or no process can have packed them
 *   -ENXIO    the key is for an interface that this process has not opened, or one of the other
 *             kind of addresses
 *   -ENOMEM */
PW_RMA_EXPORT int pw_rma_key_open(struct pw_rma *rma, const void *bytes, size_t size,
                                  struct pw_rma_key **key);

/* pw_rma_key_close() frees a key; operations that were begun with it go on. */
PW_RMA_EXPORT void pw_rma_key_close(struct pw_rma_key *key);

/* pw_rma_key_length() returns the bytes of the region, pw_rma_key_access() its rights, and
 * pw_rma_key_peer() its process: the same for all keys of one struct pw_rma there, and valid until
 * the last of them is closed. */
PW_RMA_EXPORT uint64_t pw_rma_key_length(const struct pw_rma_key *key);
PW_RMA_EXPORT unsigned pw_rma_key_access(const struct pw_rma_key *key);
PW_RMA_EXPORT struct pw_rma_peer *pw_rma_key_peer(const struct pw_rma_key *key);

/* pw_rma_map() stores where a region is mapped in this process: valid, and never given up, until
 * the key is closed; or it returns why operations go by messages, a negative errno: -ENOTSUP the
 * memory is not the library's; -ECONNREFUSED the owner is not on this host (or network namespace);
 * -EPERM it is another user; -ETIMEDOUT it does not answer; -EMFILE no descriptor is left there or
 * here; -E2BIG the bound (PINWHEEL_RMA_MAP) is reached and nothing may be mapped in parts
 * (PINWHEEL_RMA_LAZY); -ECANCELED the path was limited; -ESTALE
 * the region or its process is gone; -EAGAIN another thread is about to find out. */
PW_RMA_EXPORT int pw_rma_map(struct pw_rma_key *key, void **start);

/* pw_rma_key_memory() says that the program has mapped a region itself, all of it, at `start`, and
 * keeps it there until the key is closed: operations with this key are as with memory that this
 * library has mapped, but nobody looks whether the owner is still there. To be called before the
 * first operation with the key. -EINVAL  no address; -EBUSY  the region is mapped already, or it is
 * known that it cannot be; -ECANCELED  the path was limited */
PW_RMA_EXPORT int pw_rma_key_memory(struct pw_rma_key *key, void *start);

/* ---- Requests ---- */

/* A request stands for one operation, from the call that is given it until pw_rma_test() or
 * pw_rma_wait() has said that it is over; until then its memory stays where it is. It needs no
 * preparation, and may be used again afterwards. */
struct pw_rma_request {
    uint64_t internal[3];
};

/* pw_rma_test() sets *over to whether the operation is over, and returns its error if it is.
 * pw_rma_wait() waits for that. Neither consumes the request: they may be called again.
 * -ECANCELED as below: then the operation is not over. */
PW_RMA_EXPORT int pw_rma_test(struct pw_rma_request *request, bool *over);
PW_RMA_EXPORT int pw_rma_wait(struct pw_rma_request *request);

/* ---- Puts and gets ---- */

/* `request` may be NULL in all of the operations: then a flush tells the end. An operation of no
 * bytes is over at once. They return
 *   -EINVAL     `offset` and the length are not within the region, or the local range wraps
 *   -EACCES     the region does not allow it
 *   -ECANCELED  PtlAbort() was called, or the interface is closed */

/* pw_rma_put() writes `length` bytes to the region, from its byte `offset` on. */
PW_RMA_EXPORT int pw_rma_put(struct pw_rma_key *key, const void *from, size_t length,
                             uint64_t offset, struct pw_rma_request *request);

/* pw_rma_get() reads `length` bytes of the region. */
PW_RMA_EXPORT int pw_rma_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset,
                             struct pw_rma_request *request);

/* ---- Atomic operations ---- */

enum pw_rma_op {
    PW_RMA_MIN,
    PW_RMA_MAX,
    PW_RMA_SUM,
    PW_RMA_PROD,
    PW_RMA_LOR,
    PW_RMA_LAND,
    PW_RMA_BOR,
    PW_RMA_BAND,
    PW_RMA_LXOR,
    PW_RMA_BXOR,
    PW_RMA_REPLACE,
    PW_RMA_NO_OP, /* changes nothing: get_accumulate and fetch_op read by it */
    /* of pairs: the one with the smaller (larger) value, of two equal ones with the smaller index
     */
    PW_RMA_MINLOC,
    PW_RMA_MAXLOC,
    /* no operations of these calls, but pw_rma_path() takes them */
    PW_RMA_COMPARE_SWAP = 32,
    PW_RMA_PUT = 64,
    PW_RMA_GET
};

/* The types of Portals, with its numbers; and pairs of a value and an index, in the layout that C's
 * structs of these two members have: struct { double value; int32_t index; } and so on. Pairs have
 * the operations MINLOC, MAXLOC, REPLACE and NO_OP. */
enum pw_rma_type {
    PW_RMA_INT8,
    PW_RMA_UINT8,
    PW_RMA_INT16,
    PW_RMA_UINT16,
    PW_RMA_INT32,
    PW_RMA_UINT32,
    PW_RMA_FLOAT,
    PW_RMA_INT64,
    PW_RMA_UINT64,
    PW_RMA_DOUBLE,
    PW_RMA_FLOAT_COMPLEX,
    PW_RMA_DOUBLE_COMPLEX,
    PW_RMA_LONG_DOUBLE,
    PW_RMA_LONG_DOUBLE_COMPLEX,
    PW_RMA_FLOAT_INT = 16,
    PW_RMA_DOUBLE_INT,
    PW_RMA_LONG_INT, /* int64_t and int32_t */
    PW_RMA_INT_INT,
    PW_RMA_SHORT_INT,
    PW_RMA_LONG_DOUBLE_INT,
    PW_RMA_FLOAT_FLOAT,
    PW_RMA_DOUBLE_DOUBLE
};

/* pw_rma_type_size() returns the bytes of an element; 0 if there is no such type. */
PW_RMA_EXPORT size_t pw_rma_type_size(enum pw_rma_type type);

/* How an operation on a region is done. */
enum pw_rma_path {
    PW_RMA_NONE,     /* it is not there for this type: calls give -EOPNOTSUPP */
    PW_RMA_NATIVE,   /* by the target's interface */
    PW_RMA_HANDLER,  /* by handlers at the target: pairs, if the region has PW_RMA_PAIRS */
    PW_RMA_DIRECT,   /* by loads, stores and atomic instructions of this process */
    PW_RMA_TWO_SIDED /* by the target's library: pairs, if its interface has no handlers for them */
};

/* pw_rma_path() tells how an operation, PW_RMA_COMPARE_SWAP, PW_RMA_PUT or PW_RMA_GET, is done on a
 * type in this region. Atomic operations that are PW_RMA_DIRECT take the native path where they are
 * not aligned, and while others on the region are under way by messages, so that their order is
 * kept. */
PW_RMA_EXPORT enum pw_rma_path pw_rma_path(const struct pw_rma_key *key, enum pw_rma_op op,
                                           enum pw_rma_type type);

/* pw_rma_key_limit() keeps operations with this key from a better path than the given one, from
 * PW_RMA_DIRECT, the best, by PW_RMA_NATIVE and PW_RMA_HANDLER to PW_RMA_TWO_SIDED;
 * PINWHEEL_RMA_PATH does so for all. -EINVAL  there is no such path; -EBUSY  the memory is mapped
 * already */
PW_RMA_EXPORT int pw_rma_key_limit(struct pw_rma_key *key, enum pw_rma_path path);

/* The calls below take elements at byte `offset` of the region, which need not be aligned; those
 * that are, of up to 8 bytes, are also atomic towards atomic instructions of the target's
 * processor. They return what pw_rma_put() does, and -EOPNOTSUPP. Those that fetch need both access
 * rights. `from` is not looked at with PW_RMA_NO_OP. */

/* pw_rma_accumulate() combines `count` elements of the region with those at `from`. */
PW_RMA_EXPORT int pw_rma_accumulate(struct pw_rma_key *key, const void *from, size_t count,
                                    uint64_t offset, enum pw_rma_op op, enum pw_rma_type type,
                                    struct pw_rma_request *request);

/* pw_rma_get_accumulate() also stores what was there before at `result`, which must not overlap
 * `from`. pw_rma_fetch_op() does it for one element. */
PW_RMA_EXPORT int pw_rma_get_accumulate(struct pw_rma_key *key, const void *from, void *result,
                                        size_t count, uint64_t offset, enum pw_rma_op op,
                                        enum pw_rma_type type, struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_fetch_op(struct pw_rma_key *key, const void *from, void *result,
                                  uint64_t offset, enum pw_rma_op op, enum pw_rma_type type,
                                  struct pw_rma_request *request);

/* pw_rma_compare_swap() stores the element at `value` in the region if the element there has the
 * same bits as the one at `compare`, which the call reads; `result`, unless NULL, gets what was
 * there before. */
PW_RMA_EXPORT int pw_rma_compare_swap(struct pw_rma_key *key, const void *value,
                                      const void *compare, void *result, uint64_t offset,
                                      enum pw_rma_type type, struct pw_rma_request *request);

/* ---- Blocks and vectors ---- */

/* One operation on many blocks of a region, with one request. If one of them is refused, none is
 * done. Each block is a message. */

/* A list has blocks anywhere. Lengths are bytes; of atomic operations they are whole elements. */
struct pw_rma_block {
    void *local;     /* what is put or combined, or where what is got goes */
    void *result;    /* of get_accumulate: where the old values go */
    uint64_t offset; /* in the region */
    size_t length;
};

/* A vector has `count` blocks of `length` bytes, which begin `stride` bytes behind each other. */
struct pw_rma_vector {
    void *local, *result;
    ptrdiff_t local_stride, result_stride;
    uint64_t offset;
    ptrdiff_t stride;
    size_t length, count;
};

PW_RMA_EXPORT int pw_rma_put_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks,
                                    size_t count, struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_get_blocks(struct pw_rma_key *key, const struct pw_rma_block *blocks,
                                    size_t count, struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_accumulate_blocks(struct pw_rma_key *key,
                                           const struct pw_rma_block *blocks, size_t count,
                                           enum pw_rma_op op, enum pw_rma_type type,
                                           struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_get_accumulate_blocks(struct pw_rma_key *key,
                                               const struct pw_rma_block *blocks, size_t count,
                                               enum pw_rma_op op, enum pw_rma_type type,
                                               struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_put_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                                    struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_get_vector(struct pw_rma_key *key, const struct pw_rma_vector *vector,
                                    struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_accumulate_vector(struct pw_rma_key *key,
                                           const struct pw_rma_vector *vector, enum pw_rma_op op,
                                           enum pw_rma_type type, struct pw_rma_request *request);
PW_RMA_EXPORT int pw_rma_get_accumulate_vector(struct pw_rma_key *key,
                                               const struct pw_rma_vector *vector,
                                               enum pw_rma_op op, enum pw_rma_type type,
                                               struct pw_rma_request *request);

/* ---- Flushes ---- */

/* pw_rma_flush() returns when all operations on regions of this peer are over that were begun
 * before. It returns the first error of those without a request since the flush before, which
 * counts as told then; or -ECANCELED. pw_rma_flush_all() does so for all peers; it leaves each
 * peer's error for that peer's own flush. */
PW_RMA_EXPORT int pw_rma_flush(struct pw_rma_peer *peer);
PW_RMA_EXPORT int pw_rma_flush_all(struct pw_rma *rma);

/* pw_rma_flush_local() and pw_rma_flush_local_all() return when the buffers of all these operations
 * are the caller's again, which may be earlier; they tell no errors. */
PW_RMA_EXPORT void pw_rma_flush_local(struct pw_rma_peer *peer);
PW_RMA_EXPORT void pw_rma_flush_local_all(struct pw_rma *rma);

/* ---- Statistics ---- */

struct pw_rma_statistics {
    uint64_t direct;   /* operations, or blocks of them, without a message; of several threads that
                        * use one peer at once some are missed */
    uint64_t messages; /* that were begun, those to handlers among them */
    uint64_t handler;  /* messages to handlers */
    uint64_t mapped;   /* bytes of peers' memory that are mapped now */
    /* of regions that are mapped in buckets: operations that found theirs mapped, that mapped it,
     * and buckets that gave way */
    uint64_t bucket_hits, bucket_maps, bucket_evictions;
};

PW_RMA_EXPORT void pw_rma_statistics(struct pw_rma *rma, struct pw_rma_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
