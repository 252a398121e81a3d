/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent (agent.c), inside: its state, what it says to the launcher, how it starts its ranks. */
#ifndef PINWHEEL_AGENT_START_H
#define PINWHEEL_AGENT_START_H

#include "children.h"
#include "cores.h"
#include "frames.h"

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum { FD_IN, FD_OUT, FD_SIGNALS, FD_INPUT, FD_RANKS };

enum source { SOURCE_PMI, SOURCE_OUT, SOURCE_ERR, SOURCES };

struct rank {
    int fd[SOURCES];      /* -1: closed */
    struct frames answer; /* bytes that its PMI connection is to get */
};

/* Entries for wait_some() and as many again for its use. */
static inline size_t fds_room(int ranks)
{
    return 2 * (FD_RANKS + SOURCES * (size_t)ranks);
}

struct texts {
    char **at; /* ends with NULL */
    int count;
};

struct agent {
    struct frames in, out;
    struct texts words, environment;
    char *folder, *key, *id;
    struct spawn spawn;
    cpu_set_t cores;
    struct cores homes;
    int count; /* ranks of this host */
    struct rank *ranks;
    struct children children;
    int input; /* to rank 0; -1 */
    struct frames input_bytes;
    bool input_ends; /* behind them */
    bool gone;       /* the launcher */
    bool stopped;    /* it has stopped the ranks, and may be stopped itself */
    int64_t heard;   /* ms: when it last said something */
    bool ending;     /* and in which step: */
    int step;        /* 0: what is left may go, 1: it got SIGTERM, 2: SIGKILL */
    int64_t next;    /* ms: when the next one is due */
    bool over;
    struct pollfd *fds; /* fds_room() of them */
};

/* texts_add() and texts_set() keep the text of a frame; false: memory is short. */
bool texts_add(struct texts *t, const struct frame *f);
bool texts_set(char **text, const struct frame *f);
void texts_free(struct texts *t);
/* close_end() closes a descriptor, if it is one. */
void close_end(int fd);
/* agent_start() does what FRAME_START asks for. False: a launcher does not ask for that, or there
 * is no memory for it. */
bool agent_start(struct agent *a, const struct frame *f);
/* agent_say() tells the launcher something of a rank. */
void agent_say(struct agent *a, enum frame_type type, int rank, const void *bytes, size_t length);
void agent_say_numbers(struct agent *a, enum frame_type type, int rank, int first, int second,
                       int count);

#endif
