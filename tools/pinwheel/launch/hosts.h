/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's side of other hosts: a remote shell for each, and at its end an agent
 * (agent.c), which has the host's ranks.
 *
 *     pinwheel run ── pipes ── ssh HOST ── encrypted ── sshd ── pipes ── pinwheel run --agent
 *
 * All that passes between launcher and ranks, their PMI-1, their output, the job's secret,
 * goes through that one connection as frames: whoever may log in has been asked for by ssh,
 * so no port is opened and nothing has to be proved a second time. It is also what tells
 * each side that the other has gone.
 *
 *     HOST_STARTING --greeting--> HOST_UP --FRAME_DONE--> HOST_OVER
 *     HOST_STARTING, HOST_UP --the shell's end, bytes that are no frames--> HOST_OVER (lost)
 */
#ifndef PINWHEEL_HOSTS_H
#define PINWHEEL_HOSTS_H

#include "children.h"
#include "frames.h"
#include "host_list.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct service;

enum host_state { HOST_STARTING, HOST_UP, HOST_OVER };

struct host {
    const char *name;
    int first, count; /* its ranks */
    int running;      /* of these, ranks that have not exited */
    enum host_state state;
    int to, from; /* pipes to the shell; -1 */
    struct frames in, out;
    int64_t since;  /* ms: when the shell was started, or the host last said something */
    bool ended;     /* it was told to clean up */
    int shell_code; /* waitid()'s si_code once the shell has exited; else 0 */
    int shell_status;
};

/* The upcalls by which the launcher is told. */
struct hosts_upcalls {
    void *arg;
    void (*output)(void *arg, int rank, bool error, const void *bytes, size_t length);
    /* The rank could not be started: what failed, errno. */
    void (*failed)(void *arg, int rank, int error, const char *step);
    /* As waitid() says. */
    void (*exited)(void *arg, int rank, int code, int status);
    /* The rank left processes behind, which are ended, or, `stays`, do not end. */
    void (*left)(void *arg, int rank, bool stays);
    /* A host is gone with all its ranks; the text says why and what to do. */
    void (*lost)(void *arg, const char *text);
};

struct hosts {
    struct host *at;
    int count;
    struct children shells;
    struct service *pmi;
    struct hosts_upcalls up;
    const char *command; /* that which runs here and, as a default, there */
    int input_room;      /* bytes of input that rank 0 may get before it takes some; -1: no more */
    int64_t alive_at;    /* ms: when hosts are told next that we live */
};

/* The part of a job that an agent is told. */
struct hosts_job {
    const struct host_list *list;
    const char *shell;   /* words of the command that reaches a host; NULL: ssh */
    const char *command; /* pinwheel on the other hosts; NULL: where it is here */
    char **argv;
    char **environment;
    int environment_count;
    const char *key, *id;
    int bind; /* enum launch_bind */
};

/* hosts_open() starts the shells. `h` has `pmi` and `up`. 0, or -1 after a line on stderr. */
int hosts_open(struct hosts *h, const struct hosts_job *job);

/* The descriptors to wait for, two a host; `reading`: what hosts send is wanted. */
void hosts_poll(struct hosts *h, struct pollfd *fds, bool reading);
void hosts_work(struct hosts *h, const struct pollfd *fds);

/* hosts_look() notes shells that have exited, and hosts that do not answer. */
void hosts_look(struct hosts *h);

/* hosts_signal() signals all ranks. A host that has not answered yet is given up. */
void hosts_signal(struct hosts *h, int signal);

/* hosts_input() passes input on to rank 0, at most input_room bytes; 0: its end. */
void hosts_input(struct hosts *h, const void *bytes, size_t length);

/* hosts_end() has all hosts clean up; hosts_over() says that they have. */
void hosts_end(struct hosts *h);
bool hosts_over(const struct hosts *h);

/* hosts_running() counts the ranks that have not exited. */
int hosts_running(const struct hosts *h);

/* When hosts_look() wants to be called, in ms. */
int64_t hosts_deadline(const struct hosts *h);

/* hosts_close() ends shells that are left. */
void hosts_close(struct hosts *h);

#endif
