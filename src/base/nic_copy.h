/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory named by others: copies and atomics that survive a bad address.
 *
 * A remote offset is a raw pointer from the network, so that nobody can promise
 * that memory is there. These functions return -EFAULT where a plain access would
 * die of SIGSEGV or SIGBUS, provided that fault_install() was called.
 *
 * Under ThreadSanitizer they report their accesses, so that races with them are
 * found; the atomics as atomic ones.
 */
#ifndef BASE_NIC_COPY_H
#define BASE_NIC_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nic_copy() copies n bytes, which must not overlap, and returns 0; or -EFAULT, and
 * then a part of them may have been copied. */
int nic_copy(void *dst, const void *src, size_t n);

/* nic_cas64() atomically replaces *p with `desired` if it equals *expected, else
 * stores what it found in *expected; *swapped tells which. Returns 0, -EFAULT, or
 * -EINVAL if p is no multiple of 8. */
int nic_cas64(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped);

/* nic_fetch_add() atomically adds the integer *inc of `size` 1, 2, 4 or 8 bytes to
 * *p and stores what it was in *before. Returns 0, -EFAULT, or -EINVAL for another
 * size or if p is no multiple of it. */
int nic_fetch_add(void *p, const void *inc, void *before, size_t size);

#endif
