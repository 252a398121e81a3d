/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and atomics on memory that a peer or a program has named; they survive a bad address.
 *
 * A remote offset is a raw pointer from the network: no check tells whether memory is there. These
 * functions return -EFAULT where a plain access would die of SIGSEGV or SIGBUS, provided that
 * fault_install() was called.
 *
 * In a build with ThreadSanitizer they report their accesses, the atomics as atomic, so that it
 * finds races with them.
 */
#ifndef BASE_NIC_COPY_H
#define BASE_NIC_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tsan.h"

/* nic_copy() copies n bytes, which must not overlap if there are more than NIC_COPY_OVERLAP. It
 * returns 0, or -EFAULT, and then a part of them may have been copied. */
#define NIC_COPY_OVERLAP 128
static inline int nic_copy(void *dst, const void *src, size_t n);

/* The two implementations of nic_copy(): nic_copy_raw() is nic_copy_x86_64.S; nic_copy_told() calls
 * it and reports the accesses to ThreadSanitizer. */
int nic_copy_raw(void *dst, const void *src, size_t n, size_t rep_min, size_t wide_min);
int nic_copy_told(void *dst, const void *src, size_t n);

/* Copies of at least so many bytes use 32-byte registers. Set before main(). */
extern size_t nic_copy_wide_min;

/* Copies of at least so many bytes use the processor's string copy. In a cache of the own core it
 * is no slower than a loop, but it reads data that another core has just written at two thirds of a
 * loop's speed; so it is used for sizes at which memory is the limit. */
#define NIC_COPY_REP_MIN ((size_t)1 << 20)

static inline int nic_copy(void *dst, const void *src, size_t n)
{
    return TSAN ? nic_copy_told(dst, src, n)
                : nic_copy_raw(dst, src, n, NIC_COPY_REP_MIN, nic_copy_wide_min);
}

/*
 * Atomics on a word: an aligned integer of `size` 1, 2, 4 or 8 bytes, which the caller has checked.
 * The low bytes of `value` are the operand; *word gets the old value at p, widened with zeros. Each
 * of them writes to p, also if the value stays the same, so read-only memory always gives -EFAULT.
 *
 *   nic_add_raw    adds value
 *   nic_swap_raw   stores value
 *   nic_cas_raw    stores value if *word was at p, and only then leaves *word as it is
 *   nic_or_raw, nic_and_raw, nic_xor_raw   to the bits of p; these never touch *word
 *
 * nic_word() does one of them. Returns 0; or -EFAULT, and then *word has not changed.
 */
typedef int nic_word_raw(void *p, uint64_t value, uint64_t *word, size_t size);
nic_word_raw nic_add_raw, nic_swap_raw, nic_cas_raw, nic_or_raw, nic_and_raw, nic_xor_raw;

/* nic_word() in a build with ThreadSanitizer: it reports the access, too. */
int nic_word_told(nic_word_raw *raw, void *p, uint64_t value, uint64_t *word, size_t size);

static inline int nic_word(nic_word_raw *raw, void *p, uint64_t value, uint64_t *word, size_t size)
{
    return TSAN ? nic_word_told(raw, p, value, word, size) : raw(p, value, word, size);
}

/* nic_cas64() atomically replaces *p with `desired` if *p equals *expected, else stores the value
 * of *p in *expected; *swapped is true if it replaced. Returns 0, -EFAULT, or -EINVAL if p is no
 * multiple of 8. */
int nic_cas64(uint64_t *p, uint64_t *expected, uint64_t desired, bool *swapped);

/* nic_fetch_add() atomically adds the integer *inc of `size` 1, 2, 4 or 8 bytes to *p and stores
 * the old value of *p in *before. Returns 0, -EFAULT, or -EINVAL for another size or if p is no
 * multiple of it. */
int nic_fetch_add(void *p, const void *inc, void *before, size_t size);

#endif
