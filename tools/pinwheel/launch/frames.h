/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames between `pinwheel run` and its agents on other hosts (agent.c), over the
 * standard input and output of the remote shell:
 *
 *      | type 1 | 0 | rank 2 | length 4 | bytes ... |          network byte order
 *
 * The agent begins with the line FRAMES_GREETING, so that what a shell on that host prints
 * before it is told from frames. A queue holds frames on their way out, or bytes that came
 * in and are not a whole frame yet. Nothing here waits: descriptors are non-blocking.
 */
#ifndef PINWHEEL_FRAMES_H
#define PINWHEEL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FRAMES_GREETING "pinwheel-agent 2 "

enum {
    FRAME_HEAD = 8,
    FRAME_MAX = 131072,     /* payload: the longest word that exec takes */
    FRAMES_QUEUE = 1 << 20, /* a side with more to send leaves its sources alone meanwhile */
};

/* One of these, or none, is added to the ranks of the host (launch.h). */
#define FRAME_BIND_CORES (1u << 31)
#define FRAME_BIND_HOMES (1u << 30)

/* The letter says who sends it: L the launcher, A the agent. */
enum frame_type {
    FRAME_ARGUMENT = 1, /* L  a word of the program's command line */
    FRAME_ENVIRONMENT,  /* L  NAME=VALUE */
    FRAME_FOLDER,       /* L  where the ranks run */
    FRAME_KEY,          /* L  the job's secret */
    FRAME_ID,           /* L  the job's name */
    FRAME_START,        /* L  rank: the host's first; 4 bytes: ranks of the job; 4: of the host */
    FRAME_PMI,          /* both: what a rank sends, or is to get */
    FRAME_PMI_END,      /* both: its connection is closed */
    FRAME_INPUT,        /* L  of rank 0; no bytes: its end */
    FRAME_INPUT_TAKEN,  /* A  4 bytes: how many it has taken; 0: it takes no more */
    FRAME_SIGNAL,       /* L  1 byte: for all ranks */
    FRAME_END,          /* L  all ranks of all hosts have exited: clean up */
    FRAME_ALIVE,        /* L  now and then; A  its answer */
    FRAME_STARTED,      /* A */
    FRAME_FAILED,       /* A  4 bytes: errno; the step that failed */
    FRAME_OUT,          /* A  of a rank's standard output */
    FRAME_ERR,          /* A  and error */
    FRAME_EXITED,       /* A  4 bytes: si_code, 4 bytes: si_status */
    FRAME_LEFT,         /* A  the rank left processes behind; bytes: 1 if they do not end */
    FRAME_DONE,         /* A  nothing is left, nothing follows */
    FRAME_TYPES
};

struct frame {
    enum frame_type type;
    int rank;
    uint32_t length;
    const uint8_t *bytes; /* valid until the queue changes */
};

struct frames {
    uint8_t *bytes;
    size_t start, end, capacity;
};

/* frames_put() queues a frame; false: memory is short. Length is at most FRAME_MAX. */
bool frames_put(struct frames *, enum frame_type, int rank, const void *bytes, size_t length);

/* frames_put_numbers() queues a frame of one or two numbers of 32 bits. */
bool frames_put_numbers(struct frames *, enum frame_type, int rank, uint32_t first, uint32_t second,
                        int count);

/* frames_append() queues bytes that are no frame. */
bool frames_append(struct frames *, const void *bytes, size_t length);

/* frames_number() takes the i-th number of 32 bits; 0 if the frame is too short for it. */
uint32_t frames_number(const struct frame *, size_t i);

/* frames_get() takes the next frame: 1, 0 (it is not whole yet) or -EPROTO (what came is no
 * frame). */
int frames_get(struct frames *, struct frame *);

/* frames_greeting() looks for the greeting among what came: 1, and it is taken with all before
 * it, of which `noise` is told; 0: not yet; -EPROTO: too much came without it. `rest` gets the
 * line's rest, the agent's version. */
int frames_greeting(struct frames *, const uint8_t **noise, size_t *noise_length, char rest[64]);

/* frames_read() reads once from a descriptor: how many bytes, 0 at its end, -EAGAIN, -errno. */
ssize_t frames_read(struct frames *, int fd);

/* frames_write() writes what the descriptor takes: 0, or -errno when it is broken. */
int frames_write(struct frames *, int fd);

static inline size_t frames_queued(const struct frames *q)
{
    return q->end - q->start;
}

void frames_free(struct frames *);

#endif
