/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow half of lock.h: taking the bias away, spinning, sleeping, waking. */
#include "base/lock.h"

#include "base/mutex.h"
#include "base/thread.h"

#define SPINS 40      /* pauses before a waiting thread sleeps: about the time of a system call */
#define BIAS_AFTER 64 /* times that a thread must take the lock in a row to get the bias */

bool lock_asymmetric;
__thread uint32_t lock_slot __attribute__((tls_model("initial-exec"))) = LOCK_SLOTS;

/* Owner slots in use, a bit each. Slot 0 counts as in use, but belongs to no thread. */
static _Atomic uint32_t slots = 1;
static pthread_key_t slot_key; /* its destructor gives the owner slot of a thread back */
static struct once slot_once;
static bool slot_key_works;

_Static_assert(LOCK_SLOTS <= 32, "slots are the bits of a word");

static void leave_slot(void *slot)
{
    lock_slot = LOCK_SLOTS;
    atomic_fetch_and(&slots, ~(1u << (uintptr_t)slot));
}

static void make_slot_key(void)
{
    slot_key_works = thread_key_create(&slot_key, leave_slot) == 0;
}

uint32_t lock_take_slot(void)
{
    once(&slot_once, make_slot_key);
    uint32_t taken = atomic_load(&slots);
    while (lock_slot == LOCK_SLOTS && slot_key_works && taken != (1ull << LOCK_SLOTS) - 1) {
        uint32_t slot = (uint32_t)__builtin_ctz(~taken);
        if (atomic_compare_exchange_weak(&slots, &taken, taken | 1u << slot)) {
            if (thread_key_set(slot_key, (void *)(uintptr_t)slot) == 0) {
                lock_slot = slot;
            } else {
                atomic_fetch_and(&slots, ~(1u << slot));
            }
            break;
        }
    }
    return lock_slot;
}

void lock_setup(void)
{
    bool asymmetric = membarrier_own_register() == 0 && membarrier_own() == 0;
    if (asymmetric != lock_asymmetric) {
        /* written only if it changes: other threads may be reading it */
        lock_asymmetric = asymmetric;
    }
}

void lock_fork(void)
{
    atomic_store(&slots, lock_slot == LOCK_SLOTS ? 1 : 1 | 1u << lock_slot);
}

/* The calling thread has taken the lock by setting `held` and has earned the bias: it now has the
 * lock by the bias, and `held` stays 1. */
static void grant_bias(struct lock *l)
{
    uint32_t slot = lock_take_slot();
    if (slot == LOCK_SLOTS) {
        return;
    }
    l->by_bias = true;
    atomic_store_explicit(&l->inside[slot], 1, memory_order_relaxed);
    atomic_store_explicit(&l->bias, slot, memory_order_release);
    compiler_fence();
    /* A thread that began to wait just now may not have seen the bias, and would not be woken by a
     * thread that leaves by the bias: then the bias is taken back. */
    if (atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0 &&
        atomic_exchange(&l->bias, 0) == slot) {
        l->by_bias = false;
        atomic_store_explicit(&l->inside[slot], 0, memory_order_release);
    }
}

/* Called when the calling thread has taken the lock by `held`: counts how often it has done so in a
 * row, and grants it the bias after BIAS_AFTER times. */
static void taken(struct lock *l)
{
    uintptr_t self = (uintptr_t)&lock_slot;
    l->by_bias = false;
    if (l->last != self) {
        l->last = self;
        l->streak = 0;
    } else if (++l->streak >= BIAS_AFTER) {
        l->streak = 0;
        if (lock_asymmetric && atomic_load_explicit(&l->waiters, memory_order_relaxed) == 0) {
            grant_bias(l);
        }
    }
}

/* Takes the lock from the thread that has the bias. After the barrier either that thread has seen
 * that it lost the bias, or this one sees its `inside` set, and waits until it is reset; without
 * sleeping, since sections are short. */
static bool take_bias_away(struct lock *l)
{
    uint32_t slot = atomic_load_explicit(&l->bias, memory_order_relaxed);
    if (slot == 0 || (slot = atomic_exchange(&l->bias, 0)) == 0) {
        return false; /* no thread has the bias, or another thread has taken it away first */
    }
    membarrier_own();
    for (int i = 0; atomic_load_explicit(&l->inside[slot], memory_order_acquire) != 0; i++) {
        if (i < SPINS) {
            cpu_pause();
        } else {
            sys_yield();
        }
    }
    return true;
}

bool lock_retake(struct lock *l)
{
    uint32_t free = 0;
    if (atomic_compare_exchange_strong_explicit(&l->held, &free, 1, memory_order_acquire,
                                                memory_order_relaxed) ||
        take_bias_away(l)) {
        taken(l);
        return true;
    }
    return false;
}

void lock_wait(struct lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        if (lock_retake(l)) {
            return;
        }
        cpu_pause();
    }
    atomic_fetch_add(&l->waiters, 1);
    if (lock_asymmetric) {
        membarrier_own();
    }
    while (!lock_retake(l)) {
        futex_wait(&l->held, 1, -1);
    }
    atomic_fetch_sub(&l->waiters, 1);
}

void lock_give_held(struct lock *l)
{
    atomic_store_explicit(&l->held, 0, memory_order_release);
    if (lock_asymmetric) {
        compiler_fence();
    } else {
        full_fence();
    }
    if (atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0) {
        futex_wake_one(&l->held);
    }
}
