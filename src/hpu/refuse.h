/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a handler was ended: which call it made, what it gave, what it might have given; which
 * memory it left, from where. Device code tells in its own words (device_run.c), with what is said
 * here of their calls in them; for native handlers it is all here. One line a handler that ended,
 * unless it does so again and again.
 */
#ifndef HPU_REFUSE_H
#define HPU_REFUSE_H

#include "hpu/exec.h"

/* hpu_tell() logs that the handler of a call was ended, and why. Lines of one handler with one
 * `cause`, for example the place in its code, appear as often as log_again() allows. */
void hpu_tell(const struct hpu_exec *exec, uint64_t cause, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* call_refuse() ends the handler that has called our function `name`, with SEGV or FAIL. It is a
 * macro for that function itself, or one inlined there: by the return address the log names the
 * place in the handler. */
#define call_refuse(exec, name, ...)                                                               \
    call_refuse_from(exec, name, __builtin_return_address(0), __VA_ARGS__)
_Noreturn void call_refuse_from(struct hpu_exec *exec, const char *name, const void *caller,
                                int result, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

/* call_refuse_place_from() does that for `length` bytes at `offset` of a host range, which are not
 * all in it, or for options that name none. */
_Noreturn void call_refuse_place_from(struct hpu_exec *exec, const char *name, const void *caller,
                                      ptl_size_t offset, ptl_size_t length, unsigned options)
    __attribute__((cold));

/* hpu_refuse_late() tells of a native handler whose time is over: in our function `name` for
 * `caller`, or, if that is NULL, where its guard says. */
void hpu_refuse_late(const struct hpu_exec *exec, const char *name, const void *caller)
    __attribute__((cold));

/* hpu_refuse_code() tells of a handler that has returned what its kind may not. */
void hpu_refuse_code(const struct hpu_exec *exec, int result) __attribute__((cold));

/* hpu_refuse_fault() tells of a native handler that a fault has ended. */
void hpu_refuse_fault(const struct hpu_exec *exec) __attribute__((cold));

#endif
