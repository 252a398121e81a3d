/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow half of lock.h: taking the bias away, spinning, sleeping, waking. */
#include "base/lock.h"

#include "base/mutex.h"
#include "base/thread.h"

#define SPINS 40      /* pauses before a waiting thread sleeps: about the time of a system call */
#define BIAS_AFTER 64 /* times in a row that earn the bias */

bool lock_asymmetric;
__thread uint32_t lock_seat __attribute__((tls_model("initial-exec"))) = LOCK_SEATS;

/* Seats that are taken, as bits; 0 is nobody's. */
static _Atomic uint32_t seats = 1;
static pthread_key_t seat_key; /* its destructor gives the seat of a thread back */
static struct once seat_once;
static bool seat_key_works;

_Static_assert(LOCK_SEATS <= 32, "seats are the bits of a word");

static void leave_seat(void *seat)
{
    lock_seat = LOCK_SEATS;
    atomic_fetch_and(&seats, ~(1u << (uintptr_t)seat));
}

static void make_seat_key(void)
{
    seat_key_works = thread_key_create(&seat_key, leave_seat) == 0;
}

/* The thread's seat; it gets one if there is one left. */
static uint32_t sit_down(void)
{
    once(&seat_once, make_seat_key);
    uint32_t taken = atomic_load(&seats);
    while (lock_seat == LOCK_SEATS && seat_key_works && taken != (1ull << LOCK_SEATS) - 1) {
        uint32_t seat = (uint32_t)__builtin_ctz(~taken);
        if (atomic_compare_exchange_weak(&seats, &taken, taken | 1u << seat)) {
            if (thread_key_set(seat_key, (void *)(uintptr_t)seat) == 0) {
                lock_seat = seat;
            } else {
                atomic_fetch_and(&seats, ~(1u << seat));
            }
            break;
        }
    }
    return lock_seat;
}

void lock_setup(void)
{
    bool asymmetric = membarrier_own_register() == 0 && membarrier_own() == 0;
    if (asymmetric != lock_asymmetric) {
        lock_asymmetric = asymmetric; /* else others may be reading it */
    }
}

void lock_fork(void)
{
    atomic_store(&seats, lock_seat == LOCK_SEATS ? 1 : 1 | 1u << lock_seat);
}

/* The lock is ours, by `held`: from now on by the bias, which the thread has earned. */
static void grant_bias(struct lock *l)
{
    uint32_t seat = sit_down();
    if (seat == LOCK_SEATS) {
        return;
    }
    l->by_bias = true;
    atomic_store_explicit(&l->inside[seat], 1, memory_order_relaxed);
    atomic_store_explicit(&l->bias, seat, memory_order_release);
    compiler_fence();
    /* A thread that began to wait just now may have missed the bias; nobody would wake it. */
    if (atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0 &&
        atomic_exchange(&l->bias, 0) == seat) {
        l->by_bias = false;
        atomic_store_explicit(&l->inside[seat], 0, memory_order_release);
    }
}

/* The calling thread has taken the lock by `held`: counts how often it has in a row, and grants it
 * the bias after BIAS_AFTER times. */
static void taken(struct lock *l)
{
    uintptr_t self = (uintptr_t)&lock_seat;
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

/* After the barrier the thread with the bias either has seen that it lost it, or we see
 * it inside. Sections are short, so we wait for its way out without sleeping. */
static bool take_bias_away(struct lock *l)
{
    uint32_t seat = atomic_load_explicit(&l->bias, memory_order_relaxed);
    if (seat == 0 || (seat = atomic_exchange(&l->bias, 0)) == 0) {
        return false; /* none, or another one was faster */
    }
    membarrier_own();
    for (int i = 0; atomic_load_explicit(&l->inside[seat], memory_order_acquire) != 0; i++) {
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
