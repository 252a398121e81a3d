/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames between `pinwheel run` and its agents on other hosts (agent.c), over the
 * standard input and output of the remote shell:
 *
 *      | type 1 | 0 | rank 2 | length 4 | bytes ... |          network byte order
 *
 * The agent begins with the line FRAMES_GREETING, so that the launcher can tell text that a shell
 * on that host prints from frames. A queue (struct frames) holds frames that wait to be sent, or
 * bytes that were received and are not a whole frame yet. No function waits: descriptors are
 * non-blocking.
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
    FRAME_MAX = 131072, /* bytes of a frame; the longest word that exec takes */
    /* a side whose queue is longer stops reading the sources of its frames */
    FRAMES_QUEUE = 1 << 20,
};

/* FRAME_START adds one of these, or none, to the number of ranks of the host (launch.h). */
#define FRAME_BIND_CORES (1u << 31)
#define FRAME_BIND_HOMES (1u << 30)

/* The letter is the sender: L the launcher, A the agent. Sizes are those of the frame's bytes. */
enum frame_type {
    FRAME_ARGUMENT = 1, /* L  a word of the program's command line */
    FRAME_ENVIRONMENT,  /* L  NAME=VALUE */
    FRAME_FOLDER,       /* L  the folder in which the ranks run */
    FRAME_KEY,          /* L  the job key */
    FRAME_ID,           /* L  the job's ID */
    /* L  frame's rank: the host's first; 4 bytes: ranks of the job; 4 bytes: ranks of the host */
    FRAME_START,
    FRAME_PMI,     /* both: PMI bytes that a rank has sent, or that it will get */
    FRAME_PMI_END, /* both: the rank's PMI connection is closed */
    FRAME_INPUT,   /* L  standard input of rank 0; no bytes: its end */
    /* A  4 bytes: how many bytes of input rank 0 has taken; 0: it takes no more */
    FRAME_INPUT_TAKEN,
    FRAME_SIGNAL,  /* L  1 byte: a signal for all ranks */
    FRAME_END,     /* L  all ranks of all hosts have exited: end what they left behind */
    FRAME_ALIVE,   /* L  sent now and then; A  the answer to it */
    FRAME_STARTED, /* A  the ranks were started */
    FRAME_FAILED,  /* A  4 bytes: errno; then the name of the step that failed */
    FRAME_OUT,     /* A  standard output of a rank */
    FRAME_ERR,     /* A  standard error of a rank */
    FRAME_EXITED,  /* A  4 bytes: si_code, 4 bytes: si_status */
    FRAME_LEFT,    /* A  the rank has left processes behind; 1 byte: 1 if they do not end */
    FRAME_DONE,    /* A  nothing is left; the last frame */
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

/* frames_append() queues bytes as they are, without the head of a frame. */
bool frames_append(struct frames *, const void *bytes, size_t length);

/* frames_number() returns the i-th 32-bit number of a frame; 0 if the frame is too short. */
uint32_t frames_number(const struct frame *, size_t i);

/* frames_get() takes the next frame out of the queue: 1, 0 if it is not complete yet, or -EPROTO if
 * the bytes are no frame. */
int frames_get(struct frames *, struct frame *);

/* frames_greeting() looks for the greeting in the bytes received. 1: it has taken the greeting and
 * all before it, which *noise and *noise_length tell; `rest` gets the rest of the greeting's line,
 * the agent's version. 0: it has not come yet. -EPROTO: too many bytes came without it. */
int frames_greeting(struct frames *, const uint8_t **noise, size_t *noise_length, char rest[64]);

/* frames_read() reads once from a descriptor into the queue. It returns the number of bytes, 0 at
 * the end, -EAGAIN if there are none, or -errno. */
ssize_t frames_read(struct frames *, int fd);

/* frames_write() writes as much as the descriptor takes; 0, or -errno if it is broken. */
int frames_write(struct frames *, int fd);

static inline size_t frames_queued(const struct frames *q)
{
    return q->end - q->start;
}

void frames_free(struct frames *);

#endif
