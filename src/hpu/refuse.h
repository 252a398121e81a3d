/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a handler was ended: which call it made, what it gave, what it might have given; which
 * memory it left, from where. Twins tell in their own words (twin_run.c), with what is said here
 * of their calls in them; for native handlers it is all here. One line a handler that ended.
 */
#ifndef HPU_REFUSE_H
#define HPU_REFUSE_H

#include "hpu/exec.h"

/* call_refuse() ends the handler that calls one of our functions, with SEGV or FAIL. */
_Noreturn void call_refuse(struct hpu_exec *exec, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* call_refuse_place() does that for `length` bytes at `offset` of a host range, which are not
 * all in it, or for options that name none. */
_Noreturn void call_refuse_place(struct hpu_exec *exec, ptl_size_t offset, ptl_size_t length,
                                 unsigned options) __attribute__((cold));

/* hpu_refuse_fault() tells of a native handler that a fault has ended. */
void hpu_refuse_fault(const struct hpu_exec *exec) __attribute__((cold));

#endif
