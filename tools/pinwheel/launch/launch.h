/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher: starts the ranks of a job, serves them PMI-1, and stays until
 * the last of them and of their children is gone. run.c parses what it is told.
 */
#ifndef PINWHEEL_LAUNCH_H
#define PINWHEEL_LAUNCH_H

#include <stdbool.h>

struct host_list;

/* Where ranks run: each waits on a core of its own (cores.h); rank i only on the
 * i-th allowed core, modulo their number; anywhere. */
enum launch_bind { LAUNCH_BIND_HOME, LAUNCH_BIND_CORE, LAUNCH_BIND_NONE };

struct launch {
    int size;
    char **argv;        /* the program and its arguments */
    char **environment; /* NAME=VALUE for all ranks, on top of our own */
    int environment_count;
    enum launch_bind bind;
    bool label;
    bool keep_going;               /* a rank that fails does not end the job */
    long timeout_seconds;          /* 0: none */
    const struct host_list *hosts; /* NULL: this one; else `size` is the ranks of all */
    const char *shell;             /* the command that reaches a host; NULL: ssh */
    const char *remote;            /* pinwheel on the other hosts; NULL: where it is here */
};

enum {
    LAUNCH_TIMED_OUT = 124,
    LAUNCH_CANNOT_EXECUTE = 126,
    LAUNCH_NOT_FOUND = 127,
    LAUNCH_SIGNAL = 128, /* plus the signal's number */
};

/* launch_run() runs the job and returns the exit status for the launcher: 0, or
 * the status of the first failure, of which it has then said one line on
 * stderr. Signals that end the launcher end the job first. */
int launch_run(const struct launch *launch);

#endif
