/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor's time-stamp counter in virtual time: tsc CASE. What it prints is in nanoseconds.
 *
 *      reads     what a declared microsecond takes by rdtsc, by rdtscp, and from the one to
 *                clock_gettime(); then the counter itself at 1 us
 *      spins     reads that pass until 100 us are over
 *      flag      when rank 0 finds what rank 1 puts into its memory, in a loop that only reads it
 *      threads   what a microsecond takes in a thread, in a child, and in a program that is
 *                executed there
 *      faults    a fault of the program's own is its handler's, before and after reads
 *      dies      one without a handler
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { BITS = 1 };

static int *volatile nowhere = (int *)64;

static void wait_until_us(long us)
{
    struct timespec t = {1000, 1000 * us};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static unsigned long long clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static unsigned long long microsecond(void)
{
    unsigned long long begin = __rdtsc();
    PtlSimCompute(1000);
    return __rdtsc() - begin;
}

static int reads(void)
{
    unsigned processor = 7;
    unsigned long long one = microsecond(), begin = __rdtscp(&processor);
    PtlSimCompute(1000);
    unsigned long long two = __rdtscp(&processor) - begin;
    begin = __rdtsc();
    unsigned long long clocks = clock_now() - begin;
    wait_until_us(10);
    printf("%llu %llu %u %llu %llu\n", one, two, processor, clocks, (unsigned long long)__rdtsc());
    return 0;
}

static int spins(void)
{
    unsigned count = 0;
    wait_until_us(10);
    unsigned long long end = UINT64_C(1000000110000);
    while (__rdtsc() < end) {
        count++;
    }
    printf("%u\n", count);
    return 0;
}

static int flag(void)
{
    static volatile uint64_t word;
    static const uint64_t one = 1;
    struct start s;
    start(&s, 2, 2);
    ptl_handle_me_t handle;
    ptl_me_t me = entry((void *)&word, sizeof(word), BITS, PTL_CT_NONE);
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    ptl_handle_ct_t sent = counter(&s);
    ptl_handle_md_t md = source(&s, &one, sizeof(one), sent);
    meet(&s);
    wait_until_us(20);
    if (s.rank == 1) {
        check(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_id(0), INDEX, BITS, 0, NULL, 0), "PtlPut");
    } else {
        unsigned long long now;
        do {
            now = __rdtsc();
        } while (word == 0);
        printf("%llu\n", now - UINT64_C(1000000020000));
    }
    return finish(&s, 0);
}

static void *thread(void *arg)
{
    *(unsigned long long *)arg = microsecond();
    return NULL;
}

static int threads(char *self)
{
    pthread_t id;
    unsigned long long found = 0;
    char *argv[] = {self, (char *)"one", NULL};
    pid_t pid;
    int status = 1;
    pthread_create(&id, NULL, thread, &found);
    pthread_join(id, NULL);
    printf("%llu\n", found);
    fflush(stdout);
    if ((pid = fork()) == 0) {
        printf("%llu\n", microsecond());
        fflush(stdout);
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    if (status == 0 && posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0) {
        waitpid(pid, &status, 0);
    }
    status |= system("exit 0");
    status |= execv("/nowhere", argv) != -1;
    printf("%d %llu\n", status, microsecond());
    return status;
}

static sigjmp_buf back;
static volatile int faults_seen;

static void on_fault(int number)
{
    faults_seen += number == SIGSEGV;
    siglongjmp(back, 1);
}

static void touch_nothing(void)
{
    if (sigsetjmp(back, 1) == 0) {
        *nowhere = 1;
    }
}

static int faults(void)
{
    struct sigaction a = {.sa_handler = on_fault}, before, after;
    unsigned long long one = microsecond();
    sigaction(SIGSEGV, &a, &before);
    touch_nothing();
    one += microsecond();
    touch_nothing();
    sigaction(SIGSEGV, &before, &after);
    printf("%d %d %d %llu\n", faults_seen, before.sa_handler == SIG_DFL,
           after.sa_handler == on_fault, one);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "reads") == 0) {
        return reads();
    }
    if (strcmp(what, "spins") == 0) {
        return spins();
    }
    if (strcmp(what, "flag") == 0) {
        return flag();
    }
    if (strcmp(what, "threads") == 0) {
        return threads(argv[0]);
    }
    if (strcmp(what, "faults") == 0) {
        return faults();
    }
    if (strcmp(what, "dies") == 0) {
        printf("%llu\n", microsecond());
        fflush(stdout);
        *nowhere = 1;
    }
    printf("%llu\n", microsecond());
    return 0;
}
