/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel_notify.h: notified access. A put or get of pinwheel_rma.h carries a tag, and when it is
 * done the region's own process finds a notice of it: one message brings data and tells of it.
 *
 *      origin                                target
 *      pw_notify_put(..., tag) ──► region    pw_notify_wait(): a request that wants this tag
 *
 * - A notice tells that all bytes of its operation are in the region, or were read from it. It says
 *   nothing of other operations.
 * - A request wants a number of notices of one region: from one process or any, with one tag or
 * any. Notices that no request has taken are kept, and taken the oldest first. Those of one process
 *   come in the order of its calls.
 * - None is lost. At a struct pw_rma's interface PW_NOTIFY_UNSEEN notices may come between two
 * looks of the target, and PW_NOTIFY_ROOM wait for requests that take them. An operation that finds
 * no room ends with -ENOBUFS and has done nothing; before that the target's interface holds it back
 *   for PINWHEEL_FLOWCTRL_MS.
 * - A failed operation leaves no notice.
 *
 * Threads, ownership and errors are as in pinwheel_rma.h. docs/rma.md has an example.
 */
#ifndef PINWHEEL_NOTIFY_H
#define PINWHEEL_NOTIFY_H

#include "pinwheel_rma.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PW_NOTIFY_ROOM 8192u
#define PW_NOTIFY_UNSEEN 4096u
#define PW_NOTIFY_TAG_MAX 0xffffu
#define PW_NOTIFY_TAG_ANY UINT32_MAX

/* ---- Origins ---- */

/* pw_notify_put() does what pw_rma_put() does, and pw_notify_get() what pw_rma_get() does, with a
 * notice at the target: also with no bytes. The region needs PW_RMA_NOTIFY. What is longer than the
 * interface's max_msg_size waits for its first parts before the last one goes. They return what
 * pw_rma_put() does, -EINVAL for a tag above PW_NOTIFY_TAG_MAX, too. */
PW_RMA_EXPORT int pw_notify_put(struct pw_rma_key *key, const void *from, size_t length,
                                uint64_t offset, uint32_t tag, struct pw_rma_request *request);
PW_RMA_EXPORT int pw_notify_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset,
                                uint32_t tag, struct pw_rma_request *request);

/* ---- Targets ---- */

struct pw_notify;

struct pw_notice {
    ptl_process_t source; /* who put or got, as the interface names it */
    uint32_t tag;
    bool get;        /* it was a get */
    uint64_t offset; /* in the region; of what was longer than max_msg_size, the last part's */
    uint64_t length;
};

/* pw_notify_open() makes a request for `count` notices of a region that is registered with
 * PW_RMA_NOTIFY. `source` may have PTL_RANK_ANY, or PTL_NID_ANY and PTL_PID_ANY; NULL is any
 * process. `tag` may be PW_NOTIFY_TAG_ANY. It asks for nothing until pw_notify_start().
 *   -EINVAL  the region has no notices, count is 0, or the tag is too large; -ENOMEM */
PW_RMA_EXPORT int pw_notify_open(struct pw_rma_region *region, const ptl_process_t *source,
                                 uint32_t tag, uint32_t count, struct pw_notify **notify);

/* pw_notify_start() begins, or begins again. pw_notify_test() takes notices and sets *over to
 * whether there were enough; pw_notify_wait() waits for that. `last`, unless NULL, becomes the last
 * one that was taken. A request that was not started, or is over, is over at once.
 *   -EINVAL     (start) it is started, and not over
 *   -EPIPE      (wait) its one source has ended, and all that it has sent was taken
 *   -ENOBUFS    there is room for no more notices, and none of those that wait fits
 *   -ECANCELED  PtlAbort() was called, or the interface is closed */
PW_RMA_EXPORT int pw_notify_start(struct pw_notify *notify);
PW_RMA_EXPORT int pw_notify_test(struct pw_notify *notify, bool *over, struct pw_notice *last);
PW_RMA_EXPORT int pw_notify_wait(struct pw_notify *notify, struct pw_notice *last);

/* pw_notify_close() frees a request: before its region is unregistered. What it has taken is gone.
 */
PW_RMA_EXPORT void pw_notify_close(struct pw_notify *notify);

#ifdef __cplusplus
}
#endif

#endif
