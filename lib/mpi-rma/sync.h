/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of a window's synchronisation: creation, fence, post-start-complete-wait, locks. It
 * has no clock, no network and no threads: its client carries what it asks for, and says when
 * something has come. An instance is one rank's end of one window.
 *
 *      client                     engine                     other ranks
 *      sync_fence() ...  ──────►        ──► ops: add ... ──► their shared words, lists
 *      sync_answer(), sync_noted() ──►
 *      sync_poll() ◄── is it over? ◄─── its own shared words, which others change
 *
 * One call is in progress at a time: each begins something, and sync_poll() tells when it is over.
 *
 * - S1 Words only grow but for locks: a fence's n-th signal of a round makes its word n, so a rank
 *   that is ahead is never mistaken for one that is late.
 * - S2 Posts of a rank to a starter are numbered, and so are the starter's starts of that rank: the
 *   n-th start waits for the n-th post. What comes early stays, what comes late fits no other
 * start.
 * - S3 A lock word is 0, or 1: held by one process alone, or 2 n: by n together, which wait or have
 *   it; both bits: they wait for the one. The master word counts processes with an exclusive lock
 *   in its lower half, and those with a lock of all in its upper half.
 * - S4 Memory: this struct, whose size does not depend on the number of ranks, and a list of those
 *   that this rank has posted to or started.
 * - S5 SYNC_ENDED is 0, or 1 + the number of a rank that has ended; once set it stays. It ends the
 *   call in progress and each later one with -EPIPE. A rank that waits looks at the word of those
 * it waits for (sync_waits_for()), so that what one rank has found out reaches all that wait for
 * it.
 * - S6 MPI_MODE_NOCHECK saves the message of a post, if both ends give it. If one end does, the
 * call that finds out ends with -EPROTO: a start, which is no epoch then, and its poster's wait;
 * or, if only the start had it, the wait. Numbers go on as if both had agreed.
 */
#ifndef MPI_RMA_SYNC_H
#define MPI_RMA_SYNC_H

#include <stdbool.h>
#include <stdint.h>

enum { SYNC_ROUNDS = 20, SYNC_WORDS = 4, SYNC_NUMBER_BITS = 20 };

/* What other ranks change, one word by one atomic operation. */
enum sync_word {
    SYNC_FENCE, /* a word for each round */
    SYNC_COMPLETED = SYNC_FENCE + SYNC_ROUNDS,
    SYNC_LOCK,
    SYNC_MASTER,    /* of the window's master only */
    SYNC_ENDED,     /* set by the client (S5) */
    SYNC_UNCHECKED, /* 1: there was a post with MPI_MODE_NOCHECK */
    SYNC_SHARED
};

/* What a completion of an epoch with MPI_MODE_NOCHECK adds to SYNC_COMPLETED beside 1. */
#define SYNC_UNCHECKED_ONE (UINT64_C(1) << 48)

/* What a rank tells another one, with a number of SYNC_NUMBER_BITS. */
enum sync_note { SYNC_POST, SYNC_WANT, SYNC_REFUSED };

/* What the client does for an instance. Those that return int give 0 or a negative errno: the call
 * ends with it. */
struct sync_ops {
    /* Adds to a word of a rank. */
    int (*add)(void *client, uint32_t rank, enum sync_word word, uint64_t value);
    /* Adds, or stores `value` if the word is `compare`; sync_answer() brings what was there. */
    int (*fetch_add)(void *client, uint32_t rank, enum sync_word word, uint64_t value);
    int (*swap)(void *client, uint32_t rank, enum sync_word word, uint64_t compare, uint64_t value);
    /* Puts a note on another rank's list: sync_noted() there. A SYNC_POST is tried again while
     * there is no room; others give -ENOBUFS. */
    int (*append)(void *client, uint32_t rank, enum sync_note note, uint32_t number);
    /* Brings the words of a round of creation: sync_agree() there. */
    int (*send)(void *client, uint32_t rank, unsigned round, const uint64_t *words);
    /* Waits so many units of time, then calls sync_answer(). */
    void (*pause)(void *client, uint64_t units);
};

/* A rank that this one has posted to or started; counts are circular. */
struct sync_partner {
    uint32_t rank;
    bool known;      /* the place is used */
    uint32_t starts; /* of that rank */
    uint32_t come;   /* 1 + the number of the last post that has come; of one that was refused */
    uint32_t refused;
    uint32_t posts; /* to that rank */
    uint32_t wants; /* 1 + the number of the post that it asks for */
    /* of the exposure epoch */
    const uint32_t *exposed_to;
    uint32_t exposed_count;
    bool exposed_unchecked;
    uint32_t dropped; /* `posts` at the last exposure that it was refused */
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
    /* a hash table, whose size is a power of two or 0 */
    struct sync_partner *partners;
    uint32_t partner_room, partner_count;
    const uint32_t *group; /* of the start in progress */
    uint32_t group_size, group_left;
    /* of the exposure epoch */
    const uint32_t *exposed_to;
    uint32_t exposed_count;
    bool exposed_unchecked;
    uint32_t dropped;       /* of the group, that were refused */
    bool unchecked;         /* with MPI_MODE_NOCHECK */
    bool refused, wanted;   /* a note of that kind has come */
    uint16_t without_check; /* completions with MPI_MODE_NOCHECK that waits have had */
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
int sync_noted(struct sync *s, uint32_t rank, enum sync_note note, uint32_t number); /* -ENOMEM */
void sync_agree(struct sync *s, unsigned round, const uint64_t *words);

/* ---- Calls ---- */

/* All of a window's ranks call create and fence, in the same order. */

/* sync_create() agrees on the maximum of each of SYNC_WORDS words, which `agreed` has then. */
void sync_create(struct sync *s, const uint64_t *words);
void sync_fence(struct sync *s);

/* Groups are ranks, each once; that of sync_start() is read until it is over, that of sync_post()
 * until the wait is. The flag `check` is false with MPI_MODE_NOCHECK. sync_wait() is over when all
 * of the post's group have completed once more; sync_test() says whether they have, and is a wait
 * then. */
void sync_post(struct sync *s, const uint32_t *group, uint32_t count, bool check);
void sync_start(struct sync *s, const uint32_t *group, uint32_t count, bool check);
void sync_complete(struct sync *s, const uint32_t *group, uint32_t count);
void sync_wait(struct sync *s);
bool sync_test(struct sync *s);

/* sync_ask() asks one of a start's group that has not posted whether it has done so with
 * MPI_MODE_NOCHECK: when that takes long, and its SYNC_UNCHECKED is set. */
void sync_ask(struct sync *s, uint32_t rank);

void sync_lock(struct sync *s, uint32_t target, bool exclusive);
void sync_unlock(struct sync *s, uint32_t target, bool exclusive);
void sync_lock_all(struct sync *s);
void sync_unlock_all(struct sync *s);

#endif
