/* SPDX-License-Identifier: BSD-3-Clause */
/* From handles to objects, with the codes that a bad handle gives. Each function of the interface
 * begins with one of these. */
#ifndef PORTALS_API_H
#define PORTALS_API_H

#include "base/killpoint.h"
#include "nic/process.h"
#include "nic/progress.h"

struct le_setup;

/* api_ni() finds the NI that a handle of any kind names: PTL_OK, PTL_NO_INIT or PTL_ARG_INVALID. If
 * another thread closes the NI meanwhile, `*ni` still points to the memory of an NI, closed or new
 * (invariant set 7). */
static inline int api_ni(ptl_handle_any_t handle, struct ni **ni)
{
    struct process *p = process_current();
    if (unlikely(p == NULL || p->users == 0)) {
        return PTL_NO_INIT;
    }
    *ni = __atomic_load_n(&p->nis[handle_ni(handle)], __ATOMIC_ACQUIRE);
    if (unlikely(*ni == NULL || (handle_kind(handle) == HANDLE_NI && (*ni)->handle != handle))) {
        return PTL_ARG_INVALID;
    }
    PAUSE_POINT("found");
    return PTL_OK;
}

/* api_ni_only() is api_ni() for a handle that must be one of an NI, and not of an object in it. */
static inline int api_ni_only(ptl_handle_ni_t handle, struct ni **ni)
{
    struct process *p = process_current();
    *ni = p != NULL ? __atomic_load_n(&p->nis[handle_ni(handle)], __ATOMIC_ACQUIRE) : NULL;
    if (likely(*ni != NULL && (*ni)->handle == handle)) {
        PAUSE_POINT("found");
        /* before PtlInit() and after PtlFini() no handle names an NI, so PTL_NO_INIT need not be
         * tested here */
        return PTL_OK;
    }
    return p == NULL || p->users == 0 ? PTL_NO_INIT : PTL_ARG_INVALID;
}

/* api_table() returns the table of an NI for the kind of a handle, NULL if there is none. */
static inline struct table *api_table(struct ni *ni, ptl_handle_any_t handle)
{
    unsigned i = (unsigned)handle_kind(handle) - HANDLE_EQ;
    return i < NI_TABLES ? &ni->tables[i] : NULL;
}

/* api_object() finds the object of a kind that a handle names, and its NI. Without the lock,
 * another thread may free the object at any time; its memory stays that of an object of this kind,
 * and may be read. */
static inline int api_object(ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni,
                             void *object)
{
    int rc = api_ni(handle, ni);
    if (rc != PTL_OK) {
        return rc;
    }
    void *found = handle_kind(handle) == kind ? table_get(api_table(*ni, handle), handle) : NULL;
    *(void **)object = found;
    return found != NULL ? PTL_OK : PTL_ARG_INVALID;
}

/* The functions below are for calls whose time does not count. They log what they refuse, with the
 * name of the call. */

/* api_find() and api_find_ni() are api_object() and api_ni_only(). */
int api_find(const char *call, ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni,
             void *object);
int api_find_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni);
/* api_find_all() finds the NI of objects, one at least; all of them must be of the same NI. */
int api_find_all(const char *call, const ptl_handle_any_t *handles, unsigned size,
                 enum handle_kind kind, struct ni **ni);

/* Before a call has the lock, another thread may free the object that a handle named, and make a
 * new one in its place: so the call looks again under the lock (invariant set 7). api_lock() takes
 * the lock of the NIC of an NI that was found by its handle; false: the NI is gone, and the lock is
 * not held. */
bool api_lock(const char *call, struct ni *ni, ptl_handle_ni_t handle);

/* api_lock_ni() and api_lock_object() are api_find_ni() and api_find() with this second look. On
 * PTL_OK the caller holds the lock, else not. */
int api_lock_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni);
int api_lock_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind,
                    struct ni **ni, void *object);

/* api_timeout() converts a time of the program to the nanoseconds of ni_wait_abort(). */
static inline int64_t api_timeout(ptl_time_t timeout)
{
    return timeout == PTL_TIME_FOREVER ? -1 : (int64_t)timeout * 1000000;
}

/* api_lock_ni_for() is api_lock_ni() for a call that writes to `to`, its argument called `name`. */
int api_lock_ni_for(const char *call, ptl_handle_ni_t handle, struct ni **ni, const char *name,
                    const void *to);

/* api_unlock() releases the lock, and returns `rc`. */
int api_unlock(struct ni *ni, int rc);

/* A function that logs a refusal is on no path of a call that succeeds. */
#define REFUSAL __attribute__((cold, noinline))
/* api_refuse_state() logs why a call is refused, in words that begin with the call's name, and
 * returns its code; api_refuse_call() does so with PTL_ARG_INVALID. Of equal lines, as of a call in
 * a loop, the log gets ten and then one a second. */
REFUSAL __attribute__((format(printf, 2, 3))) int api_refuse_state(int rc, const char *format, ...);
#define api_refuse_call(...) api_refuse_state(PTL_ARG_INVALID, __VA_ARGS__)
/* api_refuse_null() logs which of the pointers, whose names are the words of `names`, is the first
 * NULL: PTL_ARG_INVALID; or returns PTL_OK if none is. */
REFUSAL int api_refuse_null(const char *call, const char *names, ...);

/* api_refuse_object() logs that a handle names no object of a kind, or one of an NI that the call
 * does not allow: PTL_ARG_INVALID; before PtlInit it logs nothing: PTL_NO_INIT. */
REFUSAL int api_refuse_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind);

/* api_refuse_entry() logs that the entry to append, or the place for its handle, is NULL. */
REFUSAL int api_refuse_entry(const char *call, const struct le_setup *setup, const void *handle);

/* api_refuse_increment() logs that an increment has both success and failure. */
REFUSAL int api_refuse_increment(const char *call, ptl_handle_ct_t ct_handle,
                                 ptl_ct_event_t increment);

/* api_refuse_space() logs that a limit of the NI, or memory, is used up; PTL_NO_SPACE. */
REFUSAL int api_refuse_space(const char *call, const char *limit, int most);

/* When a thread found the object that it remembers with its handle. To look handles up is most of
 * the work of a call that finds nothing new, so threads remember the last one. */
struct api_when {
    uint64_t epoch;                /* 0: never */
    const struct process *process; /* that the thread was in: process_thread */
};

/* api_now() returns the present; a thread calls it before it looks the handle up. */
static inline struct api_when api_now(void)
{
    return (struct api_when){atomic_load(&process_epoch), process_thread};
}

/* True if the NI and all event queues that existed at api_now() still exist. For an object of
 * another kind the caller also compares the handle that is kept in the object's memory. */
static inline bool api_still(const struct api_when *w)
{
    return atomic_load_explicit(&process_epoch, memory_order_acquire) == w->epoch &&
           process_thread == w->process;
}

/* api_eq_ref() and api_ct_ref() make a reference to an object of `ni` from a handle, which may be
 * ..._NONE. Programs leave anything in the handle of a counter that they do not use: unless it is
 * `needed`, a handle that names no counter is taken as ..._NONE. */
int api_eq_ref(const char *call, struct ni *ni, ptl_handle_eq_t handle, struct eq_ref *ref);
int api_ct_ref(const char *call, struct ni *ni, ptl_handle_ct_t handle, bool needed,
               struct ct_ref *ref);

/* api_vector() copies the parts of a PTL_IOVEC descriptor or entry, and sums up their bytes. */
int api_vector(const char *call, struct ni *ni, const void *parts, ptl_size_t count,
               struct vector *vector, uint64_t *length);

/* api_find_pt() is api_pt(), which is inline. */
int api_find_pt(const char *call, struct ni *ni, ptl_pt_index_t index, struct pt **pt);

/* api_pt() finds the portal table entry with an index; it must be allocated. */
static inline int api_pt(struct ni *ni, ptl_pt_index_t index, struct pt **pt)
{
    *pt = ni_pt(ni, index);
    return likely(*pt != NULL && (*pt)->allocated) ? PTL_OK : PTL_ARG_INVALID;
}

/* The local memory of a data movement, as the program names it. */
struct api_sides {
    ptl_handle_md_t md; /* of the payload; of a get, where the reply goes */
    ptl_size_t offset;
    ptl_handle_md_t get_md; /* of OP_FETCH: where the reply goes */
    ptl_size_t get_offset;
};

/* api_request() checks the arguments of a data movement, and completes the request: its MDs and
 * memory. */
int api_request(struct ni *ni, struct request *r, const struct api_sides *sides);

/* api_refuse() logs why a data movement has failed those checks; PTL_ARG_INVALID. */
REFUSAL int api_refuse(struct ni *ni, const struct request *r, const struct api_sides *sides);

/* api_refuse_handle() logs that a handle names no object at all: PTL_ARG_INVALID, or PTL_NO_INIT
 * without a line. api_refuse_operation() logs that a call does not take this operation,
 * api_refuse_operand() that the operand cannot be read. */
REFUSAL int api_refuse_handle(const struct request *r, ptl_handle_md_t handle);
REFUSAL int api_refuse_operation(const struct request *r, enum atomic_call call);
REFUSAL int api_refuse_operand(const struct request *r);

/* api_explain_operation() writes what is wrong with operation or data type of an atomic that is not
 * legal; api_explain_atomic() writes that, or what is wrong with its length. */
void api_explain_operation(const struct request *r, enum atomic_call call, char *text, size_t size);
void api_explain_atomic(const struct ni *ni, const struct request *r, enum atomic_call call,
                        char *text, size_t size);

/* api_start() checks and starts a data movement; it waits until the queue has room for it. */
int api_start(struct request *r, const struct api_sides *sides);

/* api_fill() makes the request of a call from its arguments, in their order. It leaves out the
 * fields that only some kinds use: clearing all of a request would cost a small put more than the
 * rest does. */
static inline void api_fill(struct request *r, enum op_kind kind, ptl_size_t length,
                            ptl_ack_req_t ack, ptl_process_t target, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_op_t op, ptl_datatype_t datatype)
{
    r->kind = kind;
    r->origin = FROM_PROGRAM;
    r->length = length;
    r->ack = ack;
    r->target = target;
    r->pt_index = pt_index;
    r->match_bits = match_bits;
    r->remote_offset = remote_offset;
    r->hdr_data = hdr_data;
    r->user_ptr = user_ptr;
    r->op = op;
    r->datatype = datatype;
    r->eq = (struct eq_ref){NULL, 0};
    r->owned = NULL;
}

/* api_check_fetch() checks that PtlFetchAtomic or PtlSwap takes the operation, and reads the
 * operand, if there is one, into the request. */
int api_check_fetch(struct request *r, enum atomic_call call, const void *operand,
                    ptl_handle_md_t put_md);

/* api_check_entry() checks the arguments of an entry to append or to search with, and copies its
 * parts if it has PTL_IOVEC; the caller holds the lock. */
int api_check_entry(const char *call, struct ni *ni, ptl_pt_index_t pt_index,
                    struct le_setup *setup);

/* api_make_handlers() checks the handlers of an entry and makes their object; the caller holds the
 * lock. */
int api_make_handlers(const char *call, struct ni *ni, const ptl_handlers_t *h,
                      struct handlers **result);

#endif
