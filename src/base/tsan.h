/* SPDX-License-Identifier: BSD-3-Clause */
/* Annotations that tell ThreadSanitizer of accesses that it cannot see. In a build without it TSAN
 * is 0 and they do nothing. */
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#include <stddef.h>

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifndef TSAN
#define TSAN 0
#endif

/* TSAN_IGNORES marks a function that reads, as a mere hint, memory that other threads may write at
 * any time: ThreadSanitizer does not check its accesses. */
#if TSAN
#define TSAN_IGNORES __attribute__((no_sanitize("thread"), noinline))
#else
#define TSAN_IGNORES
#endif

#if TSAN
void __tsan_read_range(void *address, long size);
void __tsan_write_range(void *address, long size);
void __tsan_release(void *address);

static inline void tsan_read(const void *p, size_t n)
{
    __tsan_read_range((void *)p, (long)n);
}

static inline void tsan_wrote(void *p, size_t n)
{
    __tsan_write_range(p, (long)n);
}

/* tsan_release() tells ThreadSanitizer that all accesses of this thread so far happen before those
 * of a thread that reads the atomic *p from now on. */
static inline void tsan_release(void *p)
{
    __tsan_release(p);
}
#else
static inline void tsan_read(const void *p, size_t n)
{
    (void)p;
    (void)n;
}

static inline void tsan_wrote(void *p, size_t n)
{
    (void)p;
    (void)n;
}

static inline void tsan_release(void *p)
{
    (void)p;
}
#endif

#endif
