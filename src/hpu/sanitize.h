/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Annotations for tools that must know when the stack changes: AddressSanitizer (which stack is in
 * use), ThreadSanitizer (a context is a fiber) and valgrind (which memory is a stack). Without
 * these tools they do nothing.
 */
#ifndef HPU_SANITIZE_H
#define HPU_SANITIZE_H

#include <stddef.h>

#include "base/tsan.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifndef ASAN
#define ASAN 0
#endif

#if ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

#if TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

/* asan_leave() announces the switch to the stack at `bottom`; *fake keeps the frames that ASan
 * holds elsewhere, and NULL frees them for good. The other stack calls asan_arrive() after the
 * switch, and gets the bounds of the stack that was left. */
static inline void asan_leave(void **fake, const void *bottom, size_t size)
{
#if ASAN
    __sanitizer_start_switch_fiber(fake, bottom, size);
#else
    (void)fake;
    (void)bottom;
    (void)size;
#endif
}

static inline void asan_arrive(void *fake, const void **bottom, size_t *size)
{
#if ASAN
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#else
    (void)fake;
    (void)bottom;
    (void)size;
#endif
}

/* asan_forget() clears the marks that abandoned frames have left on a stack. */
static inline void asan_forget(const void *bottom, size_t size)
{
#if ASAN
    __asan_unpoison_memory_region(bottom, size);
#else
    (void)bottom;
    (void)size;
#endif
}

static inline void *fiber_current(void)
{
#if TSAN
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

static inline void *fiber_create(void)
{
#if TSAN
    return __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static inline void fiber_destroy(void *fiber)
{
#if TSAN
    __tsan_destroy_fiber(fiber);
#else
    (void)fiber;
#endif
}

static inline void fiber_switch(void *fiber)
{
#if TSAN
    __tsan_switch_to_fiber(fiber, 0);
#else
    (void)fiber;
#endif
}

static inline unsigned valgrind_stack_register(void *low, size_t size)
{
#ifdef VALGRIND_STACK_REGISTER
    return VALGRIND_STACK_REGISTER(low, (char *)low + size);
#else
    (void)low;
    (void)size;
    return 0;
#endif
}

static inline void valgrind_stack_deregister(unsigned id)
{
#ifdef VALGRIND_STACK_DEREGISTER
    VALGRIND_STACK_DEREGISTER(id);
#else
    (void)id;
#endif
}

#endif
