/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher starts the ranks of a job, serves them PMI-1, and stays until the last of them and
 * of their children has ended. run.c parses its command line.
 */
#ifndef PINWHEEL_LAUNCH_H
#define PINWHEEL_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

struct host_list;

/* Where ranks run: each has a home, a core of its own while it polls (cores.h); rank i runs only on
 * the i-th allowed core, modulo their number; or anywhere. */
enum launch_bind { LAUNCH_BIND_HOME, LAUNCH_BIND_CORE, LAUNCH_BIND_NONE };

struct launch {
    int size;
    char **argv;        /* the program and its arguments */
    char **environment; /* NAME=VALUE for all ranks, added to the launcher's environment */
    int environment_count;
    char ***rank_environment; /* by rank, ends with NULL: more of it for that rank; NULL: none */
    enum launch_bind bind;
    bool label;
    bool keep_going;      /* a rank that fails does not end the job */
    long timeout_seconds; /* 0: none */
    /* NULL: this host; else `size` is the number of ranks on all hosts */
    const struct host_list *hosts;
    const char *shell;  /* the command that reaches a host; NULL: ssh */
    const char *remote; /* path of pinwheel on the other hosts; NULL: the same as here */
    /* given the launcher's ends of two pipes for a rank's standard output and error, before the
     * rank starts; -1 with errno set: it does not start. NULL: the rank has the launcher's own */
    int (*piped)(void *context, int rank, int out, int err);
    /* told that a rank runs; NULL: nobody is */
    void (*started)(void *context, int rank, int pid);
    /* told that a rank has ended, `well` if with status 0; NULL: nobody is */
    void (*exited)(void *context, int rank, bool well);
    /* asked whenever ranks are judged: writes why the job is to end, and gives the status, or -1;
     * NULL: nobody is. A SIGCHLD to the launcher has it ask. */
    int (*verdict)(void *context, char *why, size_t size);
    /* whether a rank's end was asked for, and so is no failure; NULL: none is */
    bool (*excused)(void *context, int rank);
    void *context;
};

enum {
    LAUNCH_TIMED_OUT = 124,
    LAUNCH_CANNOT_EXECUTE = 126,
    LAUNCH_NOT_FOUND = 127,
    LAUNCH_SIGNAL = 128, /* plus the signal's number */
};

/* launch_run() runs the job and returns the launcher's exit status: 0, or that of the first
 * failure, about which it has printed a line on stderr. A signal that ends the launcher ends the
 * job first. */
int launch_run(const struct launch *launch);

#endif
