/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of entries under random traffic; see lists.h.
 *
 *     soak_lists SEED ROUNDS [PROCESSES [THREADS]]
 *
 * THREADS lanes begin in each process. Thread t of every process has the lanes whose number is t
 * modulo THREADS: it draws and models them all, and makes the calls that are its process's.
 */
#include "lists.h"
#include "children.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t rounds, round_number;

static struct shared {
    struct meeting meeting;
    pthread_barrier_t meet_threads;
    atomic_bool failed;
} * shared;

void fail(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!atomic_exchange(&shared->failed, true)) {
        fprintf(stderr, "seed %llu, round %llu, process %d: %s\n", (unsigned long long)seed,
                (unsigned long long)round_number, me, text);
    }
    _exit(1);
}

/* ---- rounds ---- */

static void meet(void)
{
    pthread_barrier_wait(&shared->meet_threads);
    if (atomic_load(&shared->failed)) {
        _exit(1);
    }
}

static void each_lane(unsigned thread, void (*what)(struct lane *l))
{
    for (unsigned i = thread; i < lanes; i += threads) {
        what(&lane[i]);
    }
}

static void choose(struct lane *l)
{
    l->target = (int)splitmix_below(&l->random, processes);
    l->kind = splitmix_below(&l->random, KINDS);
}

static void *run_thread(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        if (thread == 0) {
            round_number = i;
        }
        each_lane(thread, choose);
        each_lane(thread, change_site);
        meet();
        each_lane(thread, send_messages);
        each_lane(thread, check_initiator);
        meet(); /* all messages have arrived */
        each_lane(thread, check_target);
        meet();
        if (thread == 0) {
            check_registers();
        }
    }
    return NULL;
}

static void run(int number)
{
    me = number;
    pthread_t others[THREADS_MAX];
    open_all(&shared->meeting);
    for (unsigned t = 1; t < threads; t++) {
        if (pthread_create(&others[t], NULL, run_thread, (void *)(uintptr_t)t) != 0) {
            fail("no thread: %s", strerror(errno));
        }
    }
    run_thread(NULL);
    for (unsigned t = 1; t < threads; t++) {
        pthread_join(others[t], NULL);
    }
    pthread_barrier_wait(&shared->meeting.meet);
    PtlFini();
}

static void prepare_shared(void)
{
    pthread_barrierattr_t attr;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pthread_barrierattr_init(&attr) != 0 ||
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&shared->meeting.meet, &attr, processes) != 0 ||
        pthread_barrier_init(&shared->meet_threads, &attr, processes * threads) != 0) {
        perror("soak_lists");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    pid_t child[PROCESSES_MAX];
    seed = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    processes = argc > 3 ? (unsigned)atoi(argv[3]) : processes;
    threads = argc > 4 ? (unsigned)atoi(argv[4]) : threads;
    if (rounds == 0 || processes - 1 >= PROCESSES_MAX || threads - 1 >= THREADS_MAX) {
        fprintf(stderr, "usage: %s SEED ROUNDS [PROCESSES(1-%d) [THREADS(1-%d)]]\n", argv[0],
                PROCESSES_MAX, THREADS_MAX);
        return 2;
    }
    lanes = processes * threads;
    prepare_shared();
    for (unsigned i = 0; i < processes; i++) {
        child[i] = child_begin((int)i, run);
    }
    return children_wait(child, processes) != 0;
}
