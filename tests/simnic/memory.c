/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that make no call for long; one a scene:
 *
 *      spins       looks at memory that nobody changes, for ever
 *      thread      looks at memory that another thread of it would change, if it got a turn
 *      computes    computes for a number of rounds, tells how long that took, and ends
 *      counts      looks at memory for ever, and counts
 *      rests       sleeps for 20 ms of virtual time a thousand times, and tells the time
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int flag;

__attribute__((noinline)) static int await_flag(void)
{
    while (flag == 0) {
    }
    return flag;
}

static void of_spins(void)
{
    printf("%d\n", await_flag());
}

static void *sets(void *unused)
{
    flag = 2;
    return NULL;
}

static void of_thread(void)
{
    pthread_t t;
    pthread_create(&t, NULL, sets, NULL);
    printf("%d\n", await_flag());
    pthread_join(t, NULL);
}

static uint64_t most = 1000000000; /* rounds: some seconds */

static void of_computes(void)
{
    struct timespec began, now;
    uint64_t x = 1, rounds = 0;
    volatile uint64_t kept = 0;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (; rounds < most; rounds++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
    }
    kept = x;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%d %ld\n", kept != 0,
           (now.tv_sec - began.tv_sec) * 1000000000l + now.tv_nsec - began.tv_nsec);
}

static void of_counts(void)
{
    uint64_t n = 0;
    while (flag == 0) {
        n++;
        __asm__ volatile("" : "+r"(n));
    }
    printf("%d\n", n != 0);
}

static void of_rests(void)
{
    struct timespec now;
    for (int i = 0; i < 1000; i++) {
        nanosleep(&(struct timespec){0, 20000000}, NULL);
        if (i == 500) {
            printf("half\n");
            fflush(stdout);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%ld\n", (long)now.tv_sec);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"spins", of_spins},
                  {"thread", of_thread},
                  {"computes", of_computes},
                  {"counts", of_counts},
                  {"rests", of_rests}};
    most = argc > 2 ? strtoul(argv[2], NULL, 10) : most;
    for (size_t i = 0; argc > 1 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            return 0;
        }
    }
    fprintf(stderr, "%s: no such scene\n", argc > 1 ? argv[1] : "none");
    return 2;
}
