/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several NICs of one process, each driven by threads of its own, exchange
 * everything that there is; see exchange.h. What races between processes races
 * here between threads, where ThreadSanitizer sees it.
 *
 *     litmus_nics [OPS]
 */
#include "exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NICS = 3 };

static struct exchange node[NICS];
static pthread_barrier_t barrier;
static atomic_int done, failed;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void complain(int i, const char *what)
{
    fprintf(stderr, "node %d, seed %llu: %s (%llu of %llu arrived, %llu of %llu answered)\n", i,
            (unsigned long long)node[i].seed, what, (unsigned long long)node[i].arrivals,
            (unsigned long long)node[i].expected, (unsigned long long)node[i].answers,
            (unsigned long long)node[i].answered);
    atomic_store(&failed, 1);
}

static void *drive(void *arg)
{
    int i = (int)(intptr_t)arg;
    struct exchange *x = &node[i];
    uint64_t missing, still = now_ms(), seen = 0;
    const char *failure = exchange_open(x);
    pthread_barrier_wait(&barrier);
    failure = failure != NULL ? failure : exchange_start(x);
    bool over = false;
    while (failure == NULL && !over && atomic_load(&failed) == 0) {
        over = exchange_serve(x, &failure);
        if (x->arrivals + x->answers != seen) {
            seen = x->arrivals + x->answers;
            still = now_ms();
        }
        if (now_ms() - still > 10 * EXCHANGE_PATIENCE_MS) {
            failure = "nothing moves any more";
        }
    }
    if (failure != NULL) {
        complain(i, failure);
    }
    atomic_fetch_add(&done, 1);
    pthread_barrier_wait(&barrier);
    failure = atomic_load(&failed) == 0 ? exchange_check(x, &missing) : NULL;
    if (failure != NULL) {
        complain(i, failure);
    }
    return NULL;
}

/* Another thread at the same NIC, which makes progress and nothing else. */
static void *poll_nic(void *arg)
{
    struct exchange *x = arg;
    ptl_handle_ct_t ct;
    ptl_ct_event_t value;
    ptl_size_t mark = 1;
    unsigned which;
    if (PtlCTAlloc(x->ni, &ct) != PTL_OK) {
        atomic_store(&failed, 1);
        return NULL;
    }
    while (atomic_load(&done) < NICS) {
        PtlCTPoll(&ct, &mark, 1, 5, &value, &which);
        PtlCTGet(ct, &value);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t driver[NICS], poller[NICS];
    unsigned ops = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2,127.0.0.3", 1);
    setenv("PINWHEEL_PACKET_SIZE", "512", 1);
    if (PtlInit() != PTL_OK) {
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, NICS);
    for (unsigned i = 0; i < NICS; i++) {
        struct exchange *x = &node[i];
        ptl_process_t id;
        x->me = (int)i;
        x->nodes = NICS;
        x->ops = ops;
        x->seed = 7;
        x->packet = 512;
        if (PtlNIInit(PTL_IFACE_DEFAULT + i, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
                      NULL, &x->ni) != PTL_OK ||
            PtlGetPhysId(x->ni, &id) != PTL_OK) {
            fprintf(stderr, "interface %u cannot be opened\n", i);
            return 1;
        }
        for (unsigned other = 0; other < NICS; other++) {
            node[other].id[i] = id;
        }
    }
    for (intptr_t i = 0; i < NICS; i++) {
        pthread_create(&driver[i], NULL, drive, (void *)i);
        pthread_create(&poller[i], NULL, poll_nic, &node[i]);
    }
    for (int i = 0; i < NICS; i++) {
        pthread_join(driver[i], NULL);
        pthread_join(poller[i], NULL);
    }
    for (int i = 0; i < NICS; i++) {
        if (PtlNIFini(node[i].ni) != PTL_OK) {
            complain(i, "PtlNIFini fails");
        }
        exchange_close(&node[i]);
    }
    PtlFini();
    pthread_barrier_destroy(&barrier);
    printf("%s %d NICs, %u messages of each\n", atomic_load(&failed) == 0 ? "ok    " : "FAILED",
           NICS, ops);
    return atomic_load(&failed);
}
