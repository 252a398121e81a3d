/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From handles to objects, with the codes that a bad one gives. Each function
 * of the interface begins with one of these.
 */
#ifndef PORTALS_API_H
#define PORTALS_API_H

#include "base/killpoint.h"
#include "nic/process.h"
#include "nic/progress.h"

struct le_setup;

/* api_ni() finds the NI that a handle of any kind names: PTL_OK, PTL_NO_INIT or
 * PTL_ARG_INVALID. Its memory stays an NI's, and its NIC's a NIC's (invariant set 7). */
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

/* api_ni_only() is api_ni() for a handle that must be an NI's own. */
static inline int api_ni_only(ptl_handle_ni_t handle, struct ni **ni)
{
    struct process *p = process_current();
    *ni = p != NULL ? __atomic_load_n(&p->nis[handle_ni(handle)], __ATOMIC_ACQUIRE) : NULL;
    if (likely(*ni != NULL && (*ni)->handle == handle)) {
        PAUSE_POINT("found");
        return PTL_OK; /* there are none before PtlInit() and after PtlFini() */
    }
    return p == NULL || p->users == 0 ? PTL_NO_INIT : PTL_ARG_INVALID;
}

/* api_table() is the NI's table of a handle's kind, NULL if it has none. */
static inline struct table *api_table(struct ni *ni, ptl_handle_any_t handle)
{
    unsigned i = (unsigned)handle_kind(handle) - HANDLE_EQ;
    return i < NI_TABLES ? &ni->tables[i] : NULL;
}

/* api_object() finds the object of a kind that a handle names, and its NI. Without the lock that
 * was true a moment ago; what was found stays an object of its kind, and may be looked at. */
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

/* The functions below are for calls whose time does not count. They tell the log what they refuse,
 * by the name of the call. */

/* api_find() and api_find_ni() are api_object() and api_ni_only(). */
int api_find(const char *call, ptl_handle_any_t handle, enum handle_kind kind, struct ni **ni,
             void *object);
int api_find_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni);

/* The object that a handle has named may be gone, and another one in its place, before the lock is
 * taken: only a look under it counts (invariant set 7). api_lock() takes the lock of the NIC of an
 * NI that was found by its handle; false: it is gone, and the lock is not held. */
bool api_lock(const char *call, struct ni *ni, ptl_handle_ni_t handle);

/* api_lock_ni() and api_lock_object() are api_find_ni() and api_find() with that look. With
 * PTL_OK the lock is held, else it is not. */
int api_lock_ni(const char *call, ptl_handle_ni_t handle, struct ni **ni);
int api_lock_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind,
                    struct ni **ni, void *object);

/* api_timeout() is a time in the nanoseconds of ni_wait_abort(). */
static inline int64_t api_timeout(ptl_time_t timeout)
{
    return timeout == PTL_TIME_FOREVER ? -1 : (int64_t)timeout * 1000000;
}

/* api_lock_ni_for() is api_lock_ni() for a call that writes to `to`, its argument of that name. */
int api_lock_ni_for(const char *call, ptl_handle_ni_t handle, struct ni **ni, const char *name,
                    const void *to);

/* api_unlock() gives the lock, and returns the code that it is given. */
int api_unlock(struct ni *ni, int rc);

/* A function that tells of a refusal is on no path of a call that succeeds. */
#define REFUSAL __attribute__((cold, noinline))
/* api_refuse_state() tells why a call is refused, in words that begin with its name, and returns
 * its code; api_refuse_call() is that for PTL_ARG_INVALID. Of lines that are the same, as of a call
 * in a loop, the log has ten and then one a second. */
REFUSAL __attribute__((format(printf, 2, 3))) int api_refuse_state(int rc, const char *format, ...);
#define api_refuse_call(...) api_refuse_state(PTL_ARG_INVALID, __VA_ARGS__)
/* api_refuse_null() tells which is the first NULL of the pointers behind `names`, one for each word
 * of these: PTL_ARG_INVALID, or PTL_OK if there is none. */
REFUSAL int api_refuse_null(const char *call, const char *names, ...);

/* api_refuse_object() tells that a handle names nothing of a kind, or something of an interface
 * that it must not be of: PTL_ARG_INVALID, or, untold, PTL_NO_INIT. */
REFUSAL int api_refuse_object(const char *call, ptl_handle_any_t handle, enum handle_kind kind);

/* api_refuse_entry() tells that an entry to append, or the place for its handle, is NULL. */
REFUSAL int api_refuse_entry(const char *call, const struct le_setup *setup, const void *handle);

/* api_refuse_increment() tells that success and failure cannot both be counted up. */
REFUSAL int api_refuse_increment(const char *call, ptl_handle_ct_t ct_handle,
                                 ptl_ct_event_t increment);

/* api_refuse_space() tells that a limit of the interface, or memory, is used up; PTL_NO_SPACE. */
REFUSAL int api_refuse_space(const char *call, const char *limit, int most);

/* When a thread found something by a handle that it has remembered since: to look handles up is
 * most of the work of a call that finds nothing new. */
struct api_when {
    uint64_t epoch;                /* 0: never */
    const struct process *process; /* that the thread was in, as process_thread has it */
};

/* api_now() is to be called before the look. */
static inline struct api_when api_now(void)
{
    return (struct api_when){atomic_load(&process_epoch), process_thread};
}

/* True if the NI and all event queues that were there at api_now() are still there. For an object
 * of another kind the caller compares its handle, which the object's memory keeps. */
static inline bool api_still(const struct api_when *w)
{
    return atomic_load_explicit(&process_epoch, memory_order_acquire) == w->epoch &&
           process_thread == w->process;
}

/* api_eq_ref() and api_ct_ref() turn a handle, which may be ..._NONE, into a
 * reference of an object of `ni`. Where nothing is `needed`, programs leave anything in the handle
 * of a counter: what names none is as good as none. */
int api_eq_ref(const char *call, struct ni *ni, ptl_handle_eq_t handle, struct eq_ref *ref);
int api_ct_ref(const char *call, struct ni *ni, ptl_handle_ct_t handle, bool needed,
               struct ct_ref *ref);

/* api_vector() copies the parts of a PTL_IOVEC descriptor or entry, and adds up their
 * bytes. */
int api_vector(const char *call, struct ni *ni, const void *parts, ptl_size_t count,
               struct vector *vector, uint64_t *length);

/* api_find_pt() is api_pt(), which is inline. */
int api_find_pt(const char *call, struct ni *ni, ptl_pt_index_t index, struct pt **pt);

/* api_pt() checks an index; the entry must be allocated. */
static inline int api_pt(struct ni *ni, ptl_pt_index_t index, struct pt **pt)
{
    *pt = ni_pt(ni, index);
    return likely(*pt != NULL && (*pt)->allocated) ? PTL_OK : PTL_ARG_INVALID;
}

/* Where a data movement leaves from and goes to, as the program names it. */
struct api_sides {
    ptl_handle_md_t md; /* or the only one */
    ptl_size_t offset;
    ptl_handle_md_t get_md; /* of OP_FETCH */
    ptl_size_t get_offset;
};

/* api_request() checks the arguments of a data movement and completes it. */
int api_request(struct ni *ni, struct request *r, const struct api_sides *sides);

/* api_refuse() tells the log why a data movement has failed those checks; PTL_ARG_INVALID. */
REFUSAL int api_refuse(struct ni *ni, const struct request *r, const struct api_sides *sides);

/* api_refuse_handle() tells that the handle names nothing at all: PTL_ARG_INVALID or, untold,
 * PTL_NO_INIT; api_refuse_operation() that a call has no such operation, api_refuse_operand() that
 * the operand of one cannot be read. */
REFUSAL int api_refuse_handle(const struct request *r, ptl_handle_md_t handle);
REFUSAL int api_refuse_operation(const struct request *r, enum atomic_call call);
REFUSAL int api_refuse_operand(const struct request *r);

/* api_explain_operation() writes what is wrong with the operation or the data type of an atomic
 * that is not legal, api_explain_atomic() that or what is wrong with its length. */
void api_explain_operation(const struct request *r, enum atomic_call call, char *text, size_t size);
void api_explain_atomic(const struct ni *ni, const struct request *r, enum atomic_call call,
                        char *text, size_t size);

/* api_start() starts a data movement, once there is room for it. */
int api_start(struct request *r, const struct api_sides *sides);

/* api_fill() makes the request of a call from its arguments, in the order in which the
 * calls have them. It leaves alone what only some kinds have: clearing all of a request costs
 * a small put more than the rest. */
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

/* api_check_fetch() checks that the operation is one of PtlFetchAtomic's or of PtlSwap's, and reads
 * its operand, if it has one, into the request. */
int api_check_fetch(struct request *r, enum atomic_call call, const void *operand,
                    ptl_handle_md_t put_md);

/* api_check_entry() checks the arguments of an entry to append or to search with, and
 * copies its parts if it has some; the lock is held. */
int api_check_entry(const char *call, struct ni *ni, ptl_pt_index_t pt_index,
                    struct le_setup *setup);

/* api_make_handlers() checks handlers and sets them up for an entry; the lock is
 * held. */
int api_make_handlers(const char *call, struct ni *ni, const ptl_handlers_t *h,
                      struct handlers **result);

#endif
