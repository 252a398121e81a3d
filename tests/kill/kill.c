/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of the kill tests: for every labelled point of the protocols, every
 * exchange and several passes, a process dies there; see kill.h for the actors.
 *
 *     kill [-g GROUP] [-p PASSES] [-l LABEL] [-v] SOURCES    the matrix
 *     kill -c SOURCES                                        coverage: every label is met
 *     kill -x SOURCES                                        many deaths, few slots
 *
 * SOURCES is the folder that is searched for KILL_POINT("..."), so that a new
 * label is tested, and missed where nothing meets it, without a list here.
 */
#include "kill.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LABELS_MAX = 64, RUN_MS = 60000, KIB = 1024, DISCOVERY_US = 600000 };

struct stage *stage;
const struct scenario *scenario;

static const struct scenario scenarios[] = {
    {"small put", KILL_PUT, 8, true, "auto", WAY_PLAIN},
    {"small put", KILL_PUT, 8, false, "auto", WAY_PLAIN},
    {"inline put", KILL_PUT, KIB, true, "auto", WAY_PLAIN},
    {"inline put", KILL_PUT, KIB, false, "auto", WAY_PLAIN},
    {"small get", KILL_GET, 8, true, "auto", WAY_PLAIN},
    {"small get", KILL_GET, 8, false, "auto", WAY_PLAIN},
    {"small ask", KILL_ASK, 8, true, "auto", WAY_PLAIN},
    {"small ask", KILL_ASK, 8, false, "auto", WAY_PLAIN},
    {"put through cells", KILL_PUT, 256 * KIB, true, "cells", WAY_PLAIN},
    {"put through cells", KILL_PUT, 256 * KIB, false, "cells", WAY_PLAIN},
    {"get through cells", KILL_GET, 256 * KIB, true, "cells", WAY_PLAIN},
    {"get through cells", KILL_GET, 256 * KIB, false, "cells", WAY_PLAIN},
    {"put by reference", KILL_PUT, 256 * KIB, true, "vm", WAY_PLAIN},
    {"put by reference", KILL_PUT, 256 * KIB, false, "vm", WAY_PLAIN},
    {"get by reference", KILL_GET, 256 * KIB, true, "vm", WAY_PLAIN},
    {"get by reference", KILL_GET, 256 * KIB, false, "vm", WAY_PLAIN},
    {"small atomic", KILL_ATOMIC, 8, true, "auto", WAY_PLAIN},
    {"small atomic", KILL_ATOMIC, 8, false, "auto", WAY_PLAIN},
    {"small fetch", KILL_FETCH, 8, true, "auto", WAY_PLAIN},
    {"small fetch", KILL_FETCH, 8, false, "auto", WAY_PLAIN},
    {"small swap", KILL_SWAP, 8, true, "auto", WAY_PLAIN},
    {"small swap", KILL_SWAP, 8, false, "auto", WAY_PLAIN},
    {"atomic through cells", KILL_ATOMIC, 4 * KIB, true, "cells", WAY_PLAIN},
    {"atomic through cells", KILL_ATOMIC, 4 * KIB, false, "cells", WAY_PLAIN},
    {"fetch through cells", KILL_FETCH, 4 * KIB, true, "cells", WAY_PLAIN},
    {"fetch through cells", KILL_FETCH, 4 * KIB, false, "cells", WAY_PLAIN},
    {"small put to the overflow list", KILL_PUT, 8, true, "auto", WAY_OVERFLOW},
    {"small put to the overflow list", KILL_PUT, 8, false, "auto", WAY_OVERFLOW},
    {"fetch from the overflow list", KILL_FETCH, 8, true, "auto", WAY_OVERFLOW},
    {"put through cells to the overflow list", KILL_PUT, 256 * KIB, true, "cells", WAY_OVERFLOW},
    {"put through cells to the overflow list", KILL_PUT, 256 * KIB, false, "cells", WAY_OVERFLOW},
    {"put by reference to the overflow list", KILL_PUT, 256 * KIB, true, "vm", WAY_OVERFLOW},
    {"put by reference to the overflow list", KILL_PUT, 256 * KIB, false, "vm", WAY_OVERFLOW},
    {"get through cells from the overflow list", KILL_GET, 256 * KIB, true, "cells", WAY_OVERFLOW},
    {"put in parts through cells", KILL_PUT, 256 * KIB, true, "cells", WAY_PARTS},
    {"put in parts through cells", KILL_PUT, 256 * KIB, false, "cells", WAY_PARTS},
    {"get in parts through cells", KILL_GET, 256 * KIB, true, "cells", WAY_PARTS},
    {"get in parts through cells", KILL_GET, 256 * KIB, false, "cells", WAY_PARTS},
    {"put in parts by reference", KILL_PUT, 256 * KIB, true, "vm", WAY_PARTS},
    {"put in parts by reference", KILL_PUT, 256 * KIB, false, "vm", WAY_PARTS},
    {"get in parts by reference", KILL_GET, 256 * KIB, true, "vm", WAY_PARTS},
    {"get in parts by reference", KILL_GET, 256 * KIB, false, "vm", WAY_PARTS},
    {"put by reference to handlers", KILL_PUT, 256 * KIB, true, "vm", WAY_HANDLERS},
    {"put by reference to handlers on HPU threads", KILL_PUT, 256 * KIB, true, "vm", WAY_HPUS},
#ifdef KILL_RV32 /* there is a compiler for them */
    {"put by reference to handlers on RV32", KILL_PUT, 256 * KIB, true, "vm", WAY_RV32},
#endif
    {"put by reference to handlers", KILL_PUT, 256 * KIB, false, "vm", WAY_HANDLERS},
    {"put by reference to handlers on HPU threads", KILL_PUT, 256 * KIB, false, "vm", WAY_HPUS},
    {"put through cells to handlers", KILL_PUT, 256 * KIB, true, "cells", WAY_HANDLERS},
    {"fetch in parts", KILL_FETCH, KIB, true, "auto", WAY_PARTS},
    {"fetch in parts", KILL_FETCH, KIB, false, "auto", WAY_PARTS},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static char labels[LABELS_MAX][32];
static int label_count, hits[LABELS_MAX];
static char directory[64];
static bool verbose;
static int failures, runs, torn;

int kill_slow(void)
{
    const char *text = getenv("PTEST_SLOWDOWN");
    if (text != NULL && atoi(text) > 0) {
        return atoi(text);
    }
#if defined(__SANITIZE_ADDRESS__)
    return 3;
#else
    return 1;
#endif
}

uint64_t kill_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- labels ---- */

static void note_label(const char *name, size_t length)
{
    for (int i = 0; i < label_count; i++) {
        if (strlen(labels[i]) == length && memcmp(labels[i], name, length) == 0) {
            return;
        }
    }
    if (label_count < LABELS_MAX && length < sizeof(labels[0])) {
        memcpy(labels[label_count++], name, length);
    }
}

static int read_source(const char *path, const struct stat *st, int type, struct FTW *where)
{
    size_t length = strlen(path);
    FILE *f = NULL;
    if (type == FTW_F && length > 2 && strcmp(path + length - 2, ".c") == 0) {
        f = fopen(path, "r");
    }
    char line[512];
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *at = strstr(line, "KILL_POINT(\"");
        if (at != NULL) {
            at += strlen("KILL_POINT(\"");
            note_label(at, strcspn(at, "\""));
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return 0;
}

/* ---- processes ---- */

enum { PEER, BYSTANDER, VICTIM, SECOND, ACTORS };
static pid_t actor[ACTORS];

static void start(int who, const char *point, const char *peers)
{
    fflush(NULL);
    actor[who] = fork();
    if (actor[who] != 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("PINWHEEL_SHM_DIR", directory, 1);
    setenv("PINWHEEL_SHM_LARGE", scenario->large, 1);
    setenv("PINWHEEL_SHM_PEERS", peers, 1);
    setenv("PINWHEEL_CONNECT_MS", who == PEER ? "50" : "2000", 1);
    setenv("PINWHEEL_LOG", "error", 1);
    setenv("PINWHEEL_SHM_CELLS", "16", 1); /* a few puts fill the first ones often enough */
    setenv("PINWHEEL_SHM_CELLS_FIRST", "2", 1);
    /* A peer that sleeps whenever it can has to be woken all the time. */
    setenv("PINWHEEL_SPIN_US", who == PEER ? "0" : "20", 1);
    setenv("PINWHEEL_YIELD_US", who == PEER ? "0" : "100", 1);
    setenv("PINWHEEL_HPUS", scenario->way == WAY_HPUS ? "2" : "0", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "20000", 1); /* it is not patience that ends an ask */
    setenv("PINWHEEL_HPU", scenario->way == WAY_RV32 ? "rv32" : "native", 1);
    if (point != NULL) {
        setenv("PINWHEEL_KILL_POINT", point, 1);
    }
    switch (who) {
    case PEER:
        run_peer();
        break;
    case BYSTANDER:
        run_bystander();
        break;
    default:
        run_victim(who - VICTIM);
    }
    exit(0);
}

/* Takes note of who has ended: false if one of them should not have. */
static bool reap(int *victim_status)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (int i = 0; i < ACTORS; i++) {
            if (actor[i] != pid) {
                continue;
            }
            actor[i] = 0;
            if (i == VICTIM) {
                *victim_status = status;
            }
            bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && i == VICTIM;
            if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
                static const char *const names[] = {"peer", "bystander", "victim", "second victim"};
                fprintf(stderr, "    the %s ended with %s %d\n", names[i],
                        WIFSIGNALED(status) ? "signal" : "status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                return false;
            }
        }
    }
    return true;
}

static void end_all(void)
{
    for (int i = 0; i < ACTORS; i++) {
        if (actor[i] > 0) {
            kill(actor[i], SIGKILL);
            waitpid(actor[i], NULL, 0);
            actor[i] = 0;
        }
    }
}

/* Waits for `what`, while nobody fails. */
static bool until(bool (*done)(long), long argument, int *victim_status, const char *what)
{
    uint64_t end = kill_now_ms() + (uint64_t)(RUN_MS * kill_slow());
    while (!done(argument)) {
        if (!reap(victim_status)) {
            fprintf(stderr, "    while the driver waited for %s\n", what);
            return false;
        }
        if (kill_now_ms() > end) {
            fprintf(stderr, "    %s: not within %d s\n", what, RUN_MS / 1000 * kill_slow());
            for (int i = 0; i < ACTORS; i++) {
                const char *place = atomic_load(&stage->place[i]);
                fprintf(stderr, "        actor %d (%s) at: %s\n", i,
                        actor[i] > 0 ? "alive" : "gone", place != NULL ? place : "-");
            }
            return false;
        }
        usleep(300);
    }
    return true;
}

static bool is_ready(long who)
{
    return atomic_load(&stage->ready[who]) != 0;
}

static bool ready_or_gone(long who)
{
    return is_ready(who) || actor[who] == 0;
}

static bool is_gone(long who)
{
    return actor[who] == 0;
}

static bool all_gone(long unused)
{
    return actor[PEER] == 0 && actor[BYSTANDER] == 0 && actor[SECOND] == 0;
}

static bool rounds_reach(long rounds)
{
    return atomic_load(&stage->rounds) >= rounds;
}

static bool is_settled(long unused)
{
    return atomic_load(&stage->settled) != 0;
}

/* Two more rounds of the peer and the bystander. */
static bool goes_on(int *status)
{
    return until(rounds_reach, atomic_load(&stage->rounds) + 3, status,
                 "the peer and the bystander to go on");
}

/* Nothing is left in the folder of segments. */
static bool nothing_left(void)
{
    DIR *d = opendir(directory);
    bool clean = true;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            char path[sizeof(directory) + sizeof(e->d_name) + 1];
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
            fprintf(stderr, "    left behind: %s\n", path);
            unlink(path);
            clean = false;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return clean;
}

/* Another victim or some, before the one that is to be served. Between them
 * the peer has time to find out. */
static bool more_deaths(const char *point, int deaths, int *status)
{
    for (int i = 1; i < deaths; i++) {
        usleep(DISCOVERY_US);
        start(VICTIM, point, "3");
        if (!until(is_gone, VICTIM, status, "another victim's end")) {
            return false;
        }
    }
    return true;
}

/* One run: true if all went as it must; *hit tells whether the victim died. */
static bool play(const char *point, int deaths, bool *hit)
{
    int status = 0;
    memset(stage, 0, sizeof(*stage));
    start(PEER, NULL, "3");
    bool good = until(is_ready, PEER, &status, "the peer");
    start(BYSTANDER, NULL, "3");
    good = good && until(rounds_reach, 2, &status, "the first rounds");
    if (good) {
        start(VICTIM, point, "3");
        good = until(ready_or_gone, VICTIM, &status, "the victim");
        atomic_store(&stage->phase, PHASE_WORK);
    }
    good = good && until(is_gone, VICTIM, &status, "the victim's end") &&
           more_deaths(point, deaths, &status);
    *hit = WIFSIGNALED(status);
    atomic_store(&stage->phase, PHASE_DEAD);
    good = good && until(is_settled, 0, &status, "the peer to settle") && goes_on(&status);
    if (good) {
        start(SECOND, NULL, "3");
        good = until(is_ready, SECOND, &status, "the second victim");
        atomic_store(&stage->phase, PHASE_AGAIN);
        good =
            good && until(is_gone, SECOND, &status, "the second victim's end") && goes_on(&status);
        atomic_store(&stage->phase, PHASE_STOP);
    }
    good = good && until(all_gone, 0, &status, "everybody's end");
    end_all();
    return nothing_left() && good;
}

static bool run_one(const struct scenario *s, int label, int pass, int deaths)
{
    char point[64];
    bool hit;
    snprintf(point, sizeof(point), "%.31s:%d", labels[label], pass);
    scenario = s;
    uint64_t before = kill_now_ms();
    bool good = play(point, deaths, &hit);
    runs++;
    failures += !good;
    hits[label] += hit;
    torn += atomic_load(&stage->torn);
    if (!good || verbose) {
        printf("%s %s, victim %s, %s: %s (%d ms)\n", good ? "ok    " : "FAILED", s->name,
               s->victim_asks ? "asks" : "is asked", point, hit ? "died" : "did not pass it",
               (int)(kill_now_ms() - before));
        fflush(stdout);
    }
    return hit;
}

/* ---- what is run ---- */

/* Points that only who asks passes, or is asked, have names that say so. */
static bool may_pass(const struct scenario *s, int label)
{
    return strncmp(labels[label], "ask-", 4) != 0 || s->act == KILL_ASK;
}

static bool in_group(const struct scenario *s, const char *group)
{
    const char *mine = s->way >= WAY_HANDLERS ? "handlers" : s->length <= KIB ? "small" : s->large;
    return group == NULL || strcmp(group, mine) == 0;
}

static void matrix(const char *group, int passes, const char *only)
{
    for (int l = 0; l < label_count; l++) {
        if (only != NULL && strcmp(only, labels[l]) != 0) {
            continue;
        }
        for (int s = 0; s < SCENARIOS; s++) {
            bool hit = in_group(&scenarios[s], group) && may_pass(&scenarios[s], l);
            /* 1, 2, 4, 8...: first contact, the middle, the end */
            for (int pass = 1; hit && pass <= passes; pass *= 2) {
                hit = run_one(&scenarios[s], l, pass, 1);
            }
        }
    }
}

/* Every label is met by something. */
static void coverage(void)
{
    for (int l = 0; l < label_count; l++) {
        for (int s = 0; s < SCENARIOS && hits[l] == 0; s++) {
            const struct scenario *next = &scenarios[(s + 6) % SCENARIOS];
            if (may_pass(next, l)) {
                run_one(next, l, 1, 1);
            }
        }
        if (hits[l] == 0) {
            printf("FAILED no exchange passes the point \"%s\"\n", labels[l]);
            failures++;
        }
    }
}

/* More deaths at one point than the peer has slots. */
static void exhaust(const char *only)
{
    for (int l = 0; l < label_count; l++) {
        if (may_pass(&scenarios[0], l) && (only == NULL || strcmp(only, labels[l]) == 0)) {
            run_one(&scenarios[0], l, 1, 4);
        }
    }
}

int main(int argc, char **argv)
{
    const char *group = NULL, *only = NULL;
    int passes = 2, option;
    bool covers = false, exhausts = false;
    while ((option = getopt(argc, argv, "g:p:l:cxv")) != -1) {
        group = option == 'g' ? optarg : group;
        only = option == 'l' ? optarg : only;
        passes = option == 'p' ? atoi(optarg) : passes;
        covers |= option == 'c';
        exhausts |= option == 'x';
        verbose |= option == 'v';
    }
    if (optind + 1 != argc || nftw(argv[optind], read_source, 16, FTW_PHYS) != 0 ||
        label_count == 0) {
        fprintf(stderr,
                "usage: kill [-g small|cells|vm|handlers] [-p PASSES] [-l LABEL] [-c] [-x] [-v] "
                "SOURCES (with KILL_POINT labels in them)\n");
        return 2;
    }
    snprintf(directory, sizeof(directory), "/dev/shm/pinwheel-kill-XXXXXX");
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || mkdtemp(directory) == NULL) {
        perror("a folder in /dev/shm");
        return 2;
    }
    if (covers) {
        coverage();
    } else if (exhausts) {
        exhaust(only);
    } else {
        matrix(group, passes, only);
    }
    rmdir(directory);
    int deaths = 0;
    for (int l = 0; l < label_count; l++) {
        deaths += hits[l];
    }
    printf("%d labels, %d runs, %d deaths (%d within a claimed message), %d failures\n",
           label_count, runs, deaths, torn, failures);
    return failures != 0;
}
