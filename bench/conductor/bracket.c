/* SPDX-License-Identifier: BSD-3-Clause */
/* The bracket of a turn; see bracket.h. */
#include "bracket.h"

#include "harness/page.h"
#include "harness/raw.h"
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { RUNS = 9, TRIPS = 80 };

static struct {
    _Alignas(64) volatile uint64_t ping;
    _Alignas(64) volatile uint64_t pong;
    _Alignas(64) _Atomic uint32_t call; /* futex: brackets so far; the last ends the partner */
    _Atomic uint32_t answer;
    _Atomic uint32_t closing;
    pthread_t partner;
    uint64_t number;
} bracket;

static void *serve(void *arg)
{
    uint64_t number = 0;
    for (uint32_t seen = 0;; seen++) {
        while (atomic_load(&bracket.call) == seen) {
            page_sleep(&bracket.call, seen, 1000);
        }
        if (atomic_load(&bracket.closing)) {
            return NULL;
        }
        atomic_store(&bracket.answer, seen + 1);
        pingpong_raw(&bracket.pong, &bracket.ping, false, RUNS * TRIPS, &number);
    }
}

static int bind_thread(pthread_t thread, int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return pthread_setaffinity_np(thread, sizeof(one), &one);
}

int bracket_open(const int core[2])
{
    int error = bind_thread(pthread_self(), core[0]);
    error = error != 0 ? error : pthread_create(&bracket.partner, NULL, serve, NULL);
    error = error != 0 ? error : bind_thread(bracket.partner, core[1]);
    return -error;
}

static void call_partner(void)
{
    atomic_fetch_add(&bracket.call, 1);
    page_wake(&bracket.call);
}

double bracket_measure(void)
{
    double times[RUNS];
    call_partner();
    while (atomic_load(&bracket.answer) != atomic_load(&bracket.call)) {
    }
    for (int i = 0; i < RUNS; i++) {
        double start = turn_now();
        pingpong_raw(&bracket.ping, &bracket.pong, true, TRIPS, &bracket.number);
        times[i] = (turn_now() - start) * 1e9 / (2 * TRIPS);
    }
    return stats_summary(times, RUNS).median;
}

void bracket_close(void)
{
    atomic_store(&bracket.closing, 1);
    call_partner();
    pthread_join(bracket.partner, NULL);
}
