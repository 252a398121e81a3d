/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's side of other hosts. For each host it starts a remote shell, and through that an
 * agent (agent.c), which runs the host's ranks.
 *
 *     pinwheel run ── pipes ── ssh HOST ── encrypted ── sshd ── pipes ── pinwheel run --agent
 *
 * All data between launcher and ranks (PMI-1, output, the job key) goes through that one
 * connection, as frames. ssh has authenticated it, so no port is opened and no second
 * authentication is needed. Each side also learns from this connection that the other is gone.
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
    int first, count; /* first rank and number of ranks of the host */
    int running;      /* ranks of the host that have not exited */
    enum host_state state;
    int to, from; /* pipes to and from the shell; -1: closed */
    struct frames in, out;
    int64_t since;  /* ms: when the shell was started, or when the host last sent something */
    bool ended;     /* FRAME_END was sent */
    int shell_code; /* si_code of waitid() when the shell has exited; else 0 */
    int shell_status;
};

/* Functions that hosts.c calls to tell the launcher about ranks and hosts. */
struct hosts_upcalls {
    void *arg;
    void (*output)(void *arg, int rank, bool error, const void *bytes, size_t length);
    /* A rank could not be started: the step that failed, and errno. */
    void (*failed)(void *arg, int rank, int error, const char *step);
    /* A rank has exited; `code` and `status` are si_code and si_status of waitid(). */
    void (*exited)(void *arg, int rank, int code, int status);
    /* A rank has left processes behind, which the agent ends, or which, if `stays`, do not end. */
    void (*left)(void *arg, int rank, bool stays);
    /* A host is lost, with all its ranks; the text says why and what the user can do. */
    void (*lost)(void *arg, const char *text);
};

struct hosts {
    struct host *at;
    int count;
    struct children shells;
    struct service *pmi;
    struct hosts_upcalls up;
    const char *command; /* path of this command, and the default for that on the other hosts */
    /* bytes of input that may be sent to rank 0 before it takes some; -1: it takes no more */
    int input_room;
    int64_t alive_at; /* ms: when the next FRAME_ALIVE is due */
};

/* What an agent has to know of the job. */
struct hosts_job {
    const struct host_list *list;
    const char *shell;   /* words of the command that reaches a host; NULL: ssh */
    const char *command; /* path of pinwheel on the other hosts; NULL: the same as here */
    char **argv;
    char **environment;
    int environment_count;
    const char *key, *id;
    int bind; /* enum launch_bind */
};

/* hosts_open() starts the shells. The caller has set `pmi` and `up` of `h`. Returns 0, or -1 after
 * a line on stderr. */
int hosts_open(struct hosts *h, const struct hosts_job *job);

/* hosts_poll() sets the descriptors to wait for, two for each host; `reading`: the launcher can
 * take data from hosts. hosts_work() does what they allow. */
void hosts_poll(struct hosts *h, struct pollfd *fds, bool reading);
void hosts_work(struct hosts *h, const struct pollfd *fds);

/* hosts_look() notices shells that have exited, and hosts that do not answer. */
void hosts_look(struct hosts *h);

/* hosts_signal() signals all ranks. It gives up a host whose agent has not greeted yet. */
void hosts_signal(struct hosts *h, int signal);

/* hosts_input() sends input to rank 0, at most input_room bytes; a length of 0 is its end. */
void hosts_input(struct hosts *h, const void *bytes, size_t length);

/* hosts_end() makes all hosts end what their ranks have left; hosts_over() is true when they
 * have. */
void hosts_end(struct hosts *h);
bool hosts_over(const struct hosts *h);

/* hosts_running() counts the ranks that have not exited. */
int hosts_running(const struct hosts *h);

/* hosts_deadline() returns when hosts_look() must be called next, in ms. */
int64_t hosts_deadline(const struct hosts *h);

/* hosts_close() ends shells that still run. */
void hosts_close(struct hosts *h);

#endif
