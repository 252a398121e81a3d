/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines about handlers that were ended: which call the handler made, with which arguments, and
 * which would have been legal; or which memory it left, and where in its code. device_run.c has the
 * lines about device code, with the reasons of this file for its calls; this file has all of those
 * about native handlers. Each end makes one line, unless a handler ends again and again.
 */
#ifndef HPU_REFUSE_H
#define HPU_REFUSE_H

#include "hpu/exec.h"

/* hpu_tell() logs that the handler of a call was ended, and why. Lines of one handler with the same
 * `cause`, for example a place in its code, are logged as often as log_again() allows. */
void hpu_tell(const struct hpu_exec *exec, uint64_t cause, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* call_refuse() ends, with SEGV or FAIL, the handler that has called the function `name`. It is a
 * macro to be used in that function itself, or in one inlined there: its return address is the
 * place in the handler's code that the log names. */
#define call_refuse(exec, name, ...)                                                               \
    call_refuse_from(exec, name, __builtin_return_address(0), __VA_ARGS__)
_Noreturn void call_refuse_from(struct hpu_exec *exec, const char *name, const void *caller,
                                int result, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

/* call_refuse_place_from() ends a handler whose range, `length` bytes at `offset`, is not all in
 * the host range, or whose options name no host range. */
_Noreturn void call_refuse_place_from(struct hpu_exec *exec, const char *name, const void *caller,
                                      ptl_size_t offset, ptl_size_t length, unsigned options)
    __attribute__((cold));

/* hpu_refuse_late() logs that the time of a native handler is over: in the function `name`, called
 * at `caller`; or, if that is NULL, at the place that its guard holds. */
void hpu_refuse_late(const struct hpu_exec *exec, const char *name, const void *caller)
    __attribute__((cold));

/* hpu_refuse_code() logs that a handler has returned a code that its kind may not return. */
void hpu_refuse_code(const struct hpu_exec *exec, int result) __attribute__((cold));

/* hpu_refuse_fault() logs that a fault has ended a native handler. */
void hpu_refuse_fault(const struct hpu_exec *exec) __attribute__((cold));

#endif
