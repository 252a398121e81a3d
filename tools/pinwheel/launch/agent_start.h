/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of an agent (agent.c), how it reports to the launcher, and how it starts its ranks. */
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
    int fd[SOURCES];      /* pipes and PMI connection; -1: closed */
    struct frames answer; /* replies that the rank's PMI connection will get */
};

/* Entries of `fds`: those for wait_some(), and as many for its own use. */
static inline size_t fds_room(int ranks)
{
    return 2 * (FD_RANKS + SOURCES * (size_t)ranks);
}

struct texts {
    char **at; /* the last one is NULL */
    int count;
};

struct agent {
    struct frames in, out;
    struct texts words, environment;
    char *folder, *key, *id;
    struct spawn spawn;
    cpu_set_t cores;
    struct cores homes;
    int count; /* number of ranks of this host */
    struct rank *ranks;
    struct children children;
    int input; /* pipe to the standard input of rank 0; -1: none */
    struct frames input_bytes;
    bool input_ends; /* the input ends behind `input_bytes` */
    bool gone;       /* the launcher is gone */
    bool stopped;    /* the launcher has stopped the ranks, and may be stopped itself */
    int64_t heard;   /* ms: when the launcher last sent something */
    bool ending;     /* the agent ends what is left of the ranks, in the step `step` */
    int step;        /* 0: they may end by themselves; 1: they got SIGTERM; 2: SIGKILL */
    int64_t next;    /* ms: when the next step is due */
    bool over;
    struct pollfd *fds; /* fds_room() entries */
};

/* texts_add() and texts_set() store the text of a frame; false: memory is short. */
bool texts_add(struct texts *t, const struct frame *f);
bool texts_set(char **text, const struct frame *f);
void texts_free(struct texts *t);
/* close_end() closes a descriptor unless it is -1. */
void close_end(int fd);
/* agent_start() starts the ranks that FRAME_START asks for. False: a launcher does not send such a
 * frame, or memory is short. */
bool agent_start(struct agent *a, const struct frame *f);
/* agent_say() sends the launcher a frame about a rank. */
void agent_say(struct agent *a, enum frame_type type, int rank, const void *bytes, size_t length);
void agent_say_numbers(struct agent *a, enum frame_type type, int rank, int first, int second,
                       int count);

#endif
