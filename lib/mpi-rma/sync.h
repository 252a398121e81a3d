/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of a window's synchronisation: creation, fence, post-start-complete-wait, locks. It
 * has no clock, no network and no threads: its client carries what it asks for, and says when
 * something has come. An instance is one rank's end of one window.
 *
 *      client                     engine                     other ranks
 *      sync_fence() ...  ──────►        ──► ops: add ... ──► their shared words, lists
 *      sync_answer(), sync_posted() ──►
 *      sync_poll() ◄── is it over? ◄─── its own shared words, which others change
 *
 * One call is in progress at a time: each begins something, and sync_poll() tells when it is over.
 *
 * - S1 Words only grow but for locks: a fence's n-th signal of a round makes its word n, so a rank
 *   that is ahead is never mistaken for one that is late.
 * - S2 A rank appears in a starter's list once for each post that named it, and each start takes
 * one of each of its group. What comes early stays.
 * - S3 A lock word is 0, or 1: held by one process alone, or 2 n: by n together, which wait or have
 *   it; both bits: they wait for the one. The master word counts processes with an exclusive lock
 *   in its lower half, and those with a lock of all in its upper half.
 * - S4 Memory: this struct, whose size does not depend on the number of ranks, and a list of the
 *   posts that no start has taken.
 * - S5 SYNC_ENDED is 0, or 1 + the number of a rank that has ended; once set it stays. It ends the
 *   call in progress and each later one with -EPIPE. A rank that waits looks at the word of those
 * it waits for (sync_waits_for()), so that what one rank has found out reaches all that wait for
 * it.
 */
#ifndef MPI_RMA_SYNC_H
#define MPI_RMA_SYNC_H

#include <stdbool.h>
#include <stdint.h>

enum { SYNC_ROUNDS = 32, SYNC_WORDS = 4 };

/* What other ranks change, one word by one atomic operation. */
enum sync_word {
    SYNC_FENCE, /* a word for each round */
    SYNC_COMPLETED = SYNC_FENCE + SYNC_ROUNDS,
    SYNC_LOCK,
    SYNC_MASTER, /* of the window's master only */
    SYNC_ENDED,  /* set by the client (S5) */
    SYNC_SHARED
};

/* What the client does for an instance. Those that return int give 0 or a negative errno: the call
 * ends with it. */
struct sync_ops {
    /* Adds to a word of a rank. */
    int (*add)(void *client, uint32_t rank, enum sync_word word, uint64_t value);
    /* Adds, or stores `value` if the word is `compare`; sync_answer() brings what was there. */
    int (*fetch_add)(void *client, uint32_t rank, enum sync_word word, uint64_t value);
    int (*swap)(void *client, uint32_t rank, enum sync_word word, uint64_t compare, uint64_t value);
    /* Puts this rank on another one's list: sync_posted() there. */
    int (*append)(void *client, uint32_t rank);
    /* Brings the words of a round of creation: sync_agree() there. */
    int (*send)(void *client, uint32_t rank, unsigned round, const uint64_t *words);
    /* Waits so many units of time, then calls sync_answer(). */
    void (*pause)(void *client, uint64_t units);
};

struct sync_credit {
    uint32_t rank;
    uint32_t count; /* 0: the place is free */
};

struct sync_agreement {
    uint64_t words[SYNC_ROUNDS][SYNC_WORDS];
};

struct sync {
    const struct sync_ops *ops;
    void *client;
    uint64_t *shared; /* SYNC_SHARED words, which the client exposes */
    uint32_t rank, size, master;
    int error; /* the first one of the call in progress */
    int step;  /* what it does */
    unsigned round, tries;
    uint32_t target;
    bool pausing;               /* the next answer is the end of a pause */
    uint64_t fences, exposures; /* fences so far; completions that the waits so far have had */
    uint64_t random;
    uint32_t exclusives; /* locks of its own */
    /* creation, NULL afterwards */
    struct sync_agreement *agreement;
    uint32_t came; /* rounds whose words have come, a bit each */
    uint64_t agreed[SYNC_WORDS];
    /* posts that no start has taken: a hash table, whose size is a power of two or 0 */
    struct sync_credit *credits;
    uint32_t credit_room, credit_used;
    const uint32_t *group; /* of the start or wait in progress */
    uint32_t group_size, group_left;
};

/* sync_init() makes an instance of window `id`; -ENOMEM. `shared` is zero before others may change
 * it. */
int sync_init(struct sync *s, const struct sync_ops *ops, void *client, uint64_t *shared,
              uint32_t rank, uint32_t size, uint32_t id);
void sync_fini(struct sync *s);

/* sync_poll() goes on with the call in progress, and says whether one is. sync_error() gives what
 * the last one ended with, 0 or a negative errno. */
bool sync_poll(struct sync *s);
int sync_error(const struct sync *s);

/* sync_failed() ends the call in progress with an error. */
void sync_failed(struct sync *s, int error);

/* sync_waits_for() gives the n-th of the ranks without whom the call in progress may not end;
 * false: there are no more. Of a lock whose holders nobody has noted it is any other rank. */
bool sync_waits_for(const struct sync *s, uint32_t n, uint32_t *rank);

/* ---- What has come ---- */

void sync_answer(struct sync *s, uint64_t value);
int sync_posted(struct sync *s, uint32_t rank); /* -ENOMEM */
void sync_agree(struct sync *s, unsigned round, const uint64_t *words);

/* ---- Calls ---- */

/* All of a window's ranks call create and fence, in the same order. */

/* sync_create() agrees on the maximum of each of SYNC_WORDS words, which `agreed` has then. */
void sync_create(struct sync *s, const uint64_t *words);
void sync_fence(struct sync *s);

/* Groups are ranks, each once; that of sync_start(), sync_wait() and sync_test() is read until it
 * is over. The flag `check` is false with MPI_MODE_NOCHECK, at both ends. sync_wait() is over when
 * all of the group have completed once more; sync_test() says whether they have, and is a wait
 * then. */
void sync_post(struct sync *s, const uint32_t *group, uint32_t count, bool check);
void sync_start(struct sync *s, const uint32_t *group, uint32_t count, bool check);
void sync_complete(struct sync *s, const uint32_t *group, uint32_t count);
void sync_wait(struct sync *s, const uint32_t *group, uint32_t count);
bool sync_test(struct sync *s, const uint32_t *group, uint32_t count);

void sync_lock(struct sync *s, uint32_t target, bool exclusive);
void sync_unlock(struct sync *s, uint32_t target, bool exclusive);
void sync_lock_all(struct sync *s);
void sync_unlock_all(struct sync *s);

#endif
