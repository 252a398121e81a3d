/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the functions that handlers call have in common.
 *
 * Each begins with call_enter(). It ends with call_leave(), or, if the handler has left its memory,
 * with call_refuse(), which does not return. The log line then names the function and the place of
 * its call; so helpers that may end a handler are inlined into the function, and have its name as a
 * constant, which costs successful calls nothing. Between enter and leave a fault would be one of
 * the NIC's code, which the handler's guard does not contain: so that code dereferences a pointer
 * from the handler only by nic_copy() and its atomics.
 */
#ifndef HPU_CALLS_H
#define HPU_CALLS_H

#include <inttypes.h>

#include "base/nic_copy.h"
#include "base/vector.h"
#include "hpu/device.h"
#include "hpu/exec.h"
#include "hpu/refuse.h"

/* call_enter() returns the handler call in which the calling code runs, or NULL outside of
 * handlers. */
static inline struct hpu_exec *call_enter(void)
{
    struct hpu_exec *exec = hpu_exec_current();
    if (exec != NULL) {
        hpu_ctx_set_expendable(exec->ctx, 0);
    }
    return exec;
}

#define CALL_INLINE static inline __attribute__((always_inline))

/* call_leave() ends a handler whose time ran out during the call. The time of device code is
 * counted by its core instead. `caller` is the place in the handler's code, where the function
 * itself is not inlined; else NULL. */
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

/* call_copy() copies to or from the handler's memory, and ends the handler if some of it is not
 * there. */
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

/* call_end_transfer() ends a handler of which a transfer has failed. By `local`, the handler's
 * memory, it finds out whether that or the host's was at fault (exec->host_fault). */
_Noreturn void call_end_transfer(struct hpu_exec *exec, const char *name, const void *caller,
                                 const void *local, size_t length, bool write)
    __attribute__((cold));

/* A place in one of the two host ranges: at `base`, or, with PTL_IOVEC, `skip` bytes into the parts
 * of `vector`. */
struct call_place {
    void *base;
    const struct vector *vector;
    uint64_t skip;
};

/* call_place() returns the place of `length` bytes at `offset` of a host range; that no memory need
 * be there is found out by the copy. It ends a handler that leaves the range. A range may be the
 * whole address space, so neither sum may wrap. */
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

/* call_read_host() copies from a place of the host, call_write_host() to one. */
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

/* call_element_from() returns the address of one element for an atomic. In a range of parts the
 * element must lie in a single part. */
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

/* call_print() prints a line of the handler (output.h): PTL_OK, PTL_ARG_INVALID, or -EFAULT, with
 * which the caller ends the handler. *length is the length of the line. */
int call_print(struct hpu_exec *exec, struct hpu_text *from, uint64_t format, size_t *length);

#endif
