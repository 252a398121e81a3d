/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs in virtual time, without Portals but for `puts`; one a scene, each prints times since
 * its beginning, in microseconds, looks at the clock left out:
 *
 *      pipe        a child writes to a pipe after 30 us; the parent reads
 *      wait        the parent waits for a child that ends after 40 us
 *      join        for a thread that ends after 50 us
 *      condition   for a condition that nobody signals, for 60 us; then for one that comes after 70
 *      polls       a thread sleeps for 100 us; another one looks at a pipe until it writes
 *      mutex       four threads take turns
 *      puts        two children, each with a NIC, exchange a put after a fork; and once more
 *      killed      a child is killed while it sleeps
 *      signal      a child ends another one's sleep
 *      outside     says that it reads standard input, and does, to the end
 *      stuck       waits for a thread that waits for a mutex for ever
 *      many        more children than --processes
 *      calls       makes calls that take no time until a thread has slept for 30 us
 */
#include "pinwheel_sim.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static struct timespec began;

static void now(struct timespec *t)
{
    clock_gettime(CLOCK_MONOTONIC, t);
}

static long us(void)
{
    struct timespec t;
    now(&t);
    return ((t.tv_sec - began.tv_sec) * 1000000000l + t.tv_nsec - began.tv_nsec) / 1000;
}

static void pause_us(long time)
{
    struct timespec t = {0, time * 1000};
    nanosleep(&t, NULL);
}

static pid_t child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    return pid;
}

static void tell(void)
{
    if (write(ends[1], "x", 1) != 1) {
        perror("write");
    }
}

static void of_pipe(void)
{
    char c;
    if (child() == 0) {
        pause_us(30);
        tell();
        pause_us(1000);
        _exit(0);
    }
    if (read(ends[0], &c, 1) == 1) {
        printf("%ld\n", us());
    }
    wait(NULL);
    printf("%ld\n", us());
}

static void of_wait(void)
{
    int status = 0;
    pid_t pid = child();
    if (pid == 0) {
        pause_us(40);
        _exit(7);
    }
    printf("%d", waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    printf(" %ld\n", us());
}

static void *sleeps(void *time)
{
    pause_us((long)time);
    tell();
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void of_join(void)
{
    pthread_t t;
    pthread_create(&t, NULL, sleeps, (void *)50);
    pthread_join(t, NULL);
    printf("%ld\n", us());
}

static void of_condition(void)
{
    struct timespec end;
    pthread_t t;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 60000;
    pthread_mutex_lock(&mutex);
    int rc = pthread_cond_timedwait(&condition, &mutex, &end);
    printf("%d %ld\n", rc == ETIMEDOUT, us());
    pthread_create(&t, NULL, sleeps, (void *)70);
    rc = pthread_cond_wait(&condition, &mutex);
    printf("%d %ld\n", rc, us());
    pthread_mutex_unlock(&mutex);
    pthread_join(t, NULL);
}

static void of_polls(void)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    pthread_t t;
    pthread_create(&t, NULL, sleeps, (void *)100);
    long looks = 0;
    while (poll(&p, 1, 0) == 0) {
        looks++;
    }
    printf("%ld %ld\n", us(), looks);
    pthread_join(t, NULL);
    char c;
    printf("%zd", read(ends[0], &c, 1));
    printf(" %d", poll(&p, 1, 3));
    printf(" %ld\n", us());
}

static void *takes_turns(void *number)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        pause_us(10);
        printf("%ld", (long)number);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void of_mutex(void)
{
    pthread_t t[4];
    for (long i = 0; i < 4; i++) {
        pthread_create(&t[i], NULL, takes_turns, (void *)i);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    printf(" %ld\n", us());
}

static void must(int rc, const char *what)
{
    if (rc != PTL_OK) {
        fprintf(stderr, "%s: %d\n", what, rc);
        _exit(1);
    }
}

/* One of two processes; they learn each other's address by pipes. */
static void puts_once(int to, int from, bool sends)
{
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_ct_event_t count;
    ptl_process_t own, other;
    ptl_pt_index_t pt;
    uint64_t word = sends ? 42 : 0;
    must(PtlInit(), "PtlInit");
    must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni),
         "PtlNIInit");
    must(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 3, &pt), "PtlPTAlloc");
    must(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    must(PtlGetPhysId(ni, &own), "PtlGetPhysId");
    ptl_me_t me = {.start = &word,
                   .length = sizeof(word),
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM};
    ptl_handle_me_t handle;
    must(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    if (write(to, &own, sizeof(own)) < 0 || read(from, &other, sizeof(other)) < 0) {
        _exit(1);
    }
    if (sends) {
        ptl_md_t range = {&word, sizeof(word), 0, PTL_EQ_NONE, ct};
        ptl_handle_md_t md;
        range.options = PTL_MD_EVENT_CT_ACK;
        must(PtlMDBind(ni, &range, &md), "PtlMDBind");
        must(PtlPut(md, 0, sizeof(word), PTL_CT_ACK_REQ, other, pt, 0, 0, NULL, 0), "PtlPut");
    }
    must(PtlCTWait(ct, 1, &count), "PtlCTWait");
    if (!sends) {
        printf("%d %d\n", word == 42,
               own.phys.nid == other.phys.nid && own.phys.pid != other.phys.pid);
    }
    must(PtlNIFini(ni), "PtlNIFini");
    PtlFini();
}

static void of_puts(void)
{
    for (int i = 0; i < 2; i++) {
        int one[2], two[2];
        if (pipe(one) != 0 || pipe(two) != 0) {
            exit(1);
        }
        if (child() == 0) {
            puts_once(one[1], two[0], true);
            exit(0);
        }
        if (child() == 0) {
            puts_once(two[1], one[0], false);
            exit(0);
        }
        wait(NULL);
        wait(NULL);
    }
}

static void of_killed(void)
{
    int status = 0;
    pid_t pid = child();
    if (pid == 0) {
        pause_us(900000);
        _exit(0);
    }
    pause_us(20);
    kill(pid, SIGKILL);
    printf("%d", waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    printf(" %ld\n", us());
}

static void wakes(int number)
{
}

static void of_signal(void)
{
    pid_t parent = getpid();
    struct sigaction a = {.sa_handler = wakes};
    sigaction(SIGUSR1, &a, NULL);
    if (child() == 0) {
        pause_us(25);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    struct timespec t = {5, 0};
    int rc = nanosleep(&t, NULL);
    printf("%d %ld\n", rc != 0 && errno == EINTR, us());
    wait(NULL);
}

static void *has_mutex(void *unused)
{
    pthread_mutex_lock(&mutex);
    return NULL;
}

static void of_stuck(void)
{
    pthread_t t;
    pthread_mutex_lock(&mutex);
    pthread_create(&t, NULL, has_mutex, NULL);
    pthread_join(t, NULL);
}

static void of_many(void)
{
    int made = 0;
    for (int i = 0; i < 4; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            pause_us(10);
            _exit(0);
        }
        made += pid > 0;
    }
    printf("%d", made);
    while (wait(NULL) > 0) {
    }
    made = 0;
    for (int i = 0; i < 50; i++) {
        if (child() == 0) {
            _exit(0);
        }
        made += wait(NULL) > 0;
    }
    printf(" %d\n", made);
}

static void of_outside(void)
{
    char text[8];
    puts("reads");
    fflush(stdout);
    while (read(STDIN_FILENO, text, sizeof(text)) > 0) {
    }
}

static _Atomic bool slept;

static void *sleeps_and_tells(void *unused)
{
    pause_us(30);
    slept = true;
    return NULL;
}

static void of_calls(void)
{
    pthread_t thread;
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    must(PtlInit(), "PtlInit");
    must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni),
         "PtlNIInit");
    pthread_create(&thread, NULL, sleeps_and_tells, NULL);
    while (!slept) {
        must(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
        must(PtlCTFree(ct), "PtlCTFree");
    }
    pthread_join(thread, NULL);
    printf("%ld\n", us());
    must(PtlNIFini(ni), "PtlNIFini");
    PtlFini();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"pipe", of_pipe},           {"wait", of_wait},     {"join", of_join},
                  {"condition", of_condition}, {"polls", of_polls},   {"mutex", of_mutex},
                  {"puts", of_puts},           {"killed", of_killed}, {"signal", of_signal},
                  {"outside", of_outside},     {"stuck", of_stuck},   {"many", of_many},
                  {"calls", of_calls}};
    now(&began);
    if (pipe(ends) != 0) {
        return 1;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            return 0;
        }
    }
    fprintf(stderr, "%s: no such scene\n", argc > 1 ? argv[1] : "none");
    return 2;
}
