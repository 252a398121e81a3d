/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The common part of the functions that handlers call.
 *
 * Each begins with call_enter() and ends with call_leave() or, when the handler left its
 * memory, with call_refuse(), which does not return. What is said then names the function and who
 * called it, which costs calls that succeed nothing: helpers that may end a handler are inlined
 * into the function, whose name is their constant. In between, a fault would be ours
 * and is not contained: so every pointer that came from the handler is followed by nic_copy()
 * and its atomics only.
 */
#ifndef HPU_CALLS_H
#define HPU_CALLS_H

#include <inttypes.h>

#include "base/nic_copy.h"
#include "base/vector.h"
#include "hpu/device.h"
#include "hpu/exec.h"
#include "hpu/refuse.h"

/* call_enter() is the call whose handler calls us, or NULL outside of handlers. */
static inline struct hpu_exec *call_enter(void)
{
    struct hpu_exec *exec = hpu_exec_current();
    if (exec != NULL) {
        hpu_ctx_set_expendable(exec->ctx, 0);
    }
    return exec;
}

#define CALL_INLINE static inline __attribute__((always_inline))

/* call_leave(): a handler whose time ran out in here ends here. Device code's time is its core's.
 * Where a helper is not inlined, `caller` is who called the function; else NULL. */
_Noreturn void call_end_late(struct hpu_exec *exec, const char *name, const void *caller)
    __attribute__((cold));
CALL_INLINE void call_leave_from(struct hpu_exec *exec, const char *name, const void *caller)
{
    if (exec->core != NULL) {
        return;
    }
    hpu_ctx_set_expendable(exec->ctx, 1);
    if (hpu_ctx_overdue(exec->ctx)) {
        call_end_late(exec, name, caller != NULL ? caller : __builtin_return_address(0));
    }
}
CALL_INLINE void call_leave(struct hpu_exec *exec, const char *name)
{
    call_leave_from(exec, name, NULL);
}

/* call_copy() copies to or from the handler's memory. */
CALL_INLINE void call_copy_from(struct hpu_exec *exec, const char *name, const void *caller,
                                void *dst, const void *src, size_t length)
{
    if (nic_copy(dst, src, length) != 0) {
        call_refuse_from(exec, name, caller != NULL ? caller : __builtin_return_address(0), SEGV,
                         "%zu bytes of the handler's are not there", length);
    }
}
CALL_INLINE void call_copy(struct hpu_exec *exec, const char *name, void *dst, const void *src,
                           size_t length)
{
    call_copy_from(exec, name, NULL, dst, src, length);
}

/* call_end_transfer() ends a handler of which a transfer has failed: it tells by `local`, its own
 * memory, whose fault that was (exec->host_fault). */
_Noreturn void call_end_transfer(struct hpu_exec *exec, const char *name, const void *caller,
                                 const void *local, size_t length, bool write)
    __attribute__((cold));

/* A place in one of the two host ranges: at `base`, or in `vector` behind `skip` bytes. */
struct call_place {
    void *base;
    const struct vector *vector;
    uint64_t skip;
};

/* call_place() is where `length` bytes at `offset` of a host range are, which may be nowhere:
 * what leaves the range ends the handler. A range may be the whole address space, so neither sum
 * may wrap. */
CALL_INLINE struct call_place call_place_from(struct hpu_exec *exec, const char *name,
                                              const void *caller, ptl_size_t offset,
                                              ptl_size_t length, unsigned options)
{
    const struct hpu_env *env = &exec->env;
    bool me = options == PTL_ME_HOST_MEM;
    if (!me && options != PTL_HANDLER_HOST_MEM) {
        call_refuse_place_from(exec, name, caller != NULL ? caller : __builtin_return_address(0),
                               offset, length, options);
    }
    uintptr_t base = (uintptr_t)(me ? env->me_base : env->host_base);
    size_t size = me ? env->me_length : env->host_length;
    const struct vector *vector = me ? env->me_vector : env->host_vector;
    uintptr_t start, end;
    if (offset > size || length > size - offset ||
        (vector == NULL && (__builtin_add_overflow(base, offset, &start) ||
                            __builtin_add_overflow(start, length, &end)))) {
        call_refuse_place_from(exec, name, caller != NULL ? caller : __builtin_return_address(0),
                               offset, length, options);
    }
    return vector != NULL ? (struct call_place){NULL, vector, offset}
                          : (struct call_place){(void *)start, NULL, 0};
}

CALL_INLINE struct call_place call_place(struct hpu_exec *exec, const char *name, ptl_size_t offset,
                                         ptl_size_t length, unsigned options)
{
    return call_place_from(exec, name, NULL, offset, length, options);
}

/* call_read_host() copies from there, call_write_host() to there. */
CALL_INLINE void call_read_host(struct hpu_exec *exec, const char *name, void *to,
                                const struct call_place *from, size_t length)
{
    struct vector_cursor cursor = {0, 0};
    if (from->vector == NULL ? nic_copy(to, from->base, length) != 0
                             : vector_gather(to, from->vector, &cursor, from->skip, length) != 0) {
        call_end_transfer(exec, name, __builtin_return_address(0), to, length, true);
    }
}

CALL_INLINE void call_write_host(struct hpu_exec *exec, const char *name,
                                 const struct call_place *to, const void *from, size_t length)
{
    struct vector_cursor cursor = {0, 0};
    if (to->vector == NULL ? nic_copy(to->base, from, length) != 0
                           : vector_scatter(to->vector, &cursor, to->skip, from, length) != 0) {
        call_end_transfer(exec, name, __builtin_return_address(0), from, length, false);
    }
}

/* call_element_from() is the address of one element for an atomic; in a range of parts it must
 * lie in one of them. */
CALL_INLINE void *call_element_from(struct hpu_exec *exec, const char *name, const void *caller,
                                    ptl_size_t offset, size_t size, unsigned options)
{
    struct call_place place = call_place_from(exec, name, caller, offset, size, options);
    struct vector_cursor cursor = {0, 0};
    struct iovec piece;
    uint64_t found;
    if (place.vector == NULL) {
        return place.base;
    }
    if (vector_pieces(place.vector, &cursor, place.skip, size, &piece, 1, &found) != 1 ||
        found != size) {
        call_refuse_from(exec, name, caller, SEGV,
                         "offset %" PRIu64 ": the element is not in one of the parts", offset);
    }
    return piece.iov_base;
}

struct hpu_text;

/* call_print() prints what the handler says (output.h): PTL_OK, PTL_ARG_INVALID, or -EFAULT, which
 * ends it. *length is that of the line. */
int call_print(struct hpu_exec *exec, struct hpu_text *from, uint64_t format, size_t *length);

#endif
