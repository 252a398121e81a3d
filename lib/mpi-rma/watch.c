/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether ranks still are. Who waits in a call of the engine looks now and then at the word
 * SYNC_ENDED of those that it waits for, by a get that nobody waits for. A get that fails says that
 * the rank's process has ended; a word that is set, that this rank has found another one to have
 * ended. Either ends the call (S5 in sync.h), and whoever waits for this rank sees it in its word.
 * A process that is stopped leaves the get under way, and is waited for.
 *
 * The next word, SYNC_UNCHECKED, comes with it. Where it is set, a start asks the rank for its post
 * (sync_ask()).
 *
 * So a call that does not wait sends nothing, and one that waits as many messages as ranks that it
 * waits for, but at most AT_ONCE, ten times a second.
 */
#include "window.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 16, ASK_MS = 100, AT_ONCE = 64 };

struct look {
    struct pw_rma_request request;
    struct look *next;
    struct window *window; /* NULL: it has been freed */
    uint32_t rank;
    uint64_t words[2]; /* SYNC_ENDED, SYNC_UNCHECKED */
};

_Static_assert(SYNC_UNCHECKED == SYNC_ENDED + 1, "one get reads both");

static struct look *looks; /* guarded by job.lock */

static void note(struct window *w, uint32_t rank)
{
    uint64_t none = 0;
    __atomic_compare_exchange_n(&w->slot->shared[SYNC_ENDED], &none, rank + UINT64_C(1), false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A process that has ended has done so in all of its windows. The caller has job.lock. */
static void ended(const struct window *w, uint32_t rank)
{
    const struct card *card = &w->ranks->peers[rank]->card;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct window *other = atomic_load(&job.windows[slot]);
        uint32_t is = other != NULL ? ranks_find(other->ranks, card->nid, card->pid) : UINT32_MAX;
        if (is != UINT32_MAX) {
            note(other, is);
        }
    }
}

void watch_ended(const struct window *w, uint32_t rank)
{
    pthread_mutex_lock(&job.lock);
    ended(w, rank);
    pthread_mutex_unlock(&job.lock);
}

int watch_flush(const struct window *w, struct pw_rma_peer *peer, uint32_t rank)
{
    int rc = pw_rma_flush(peer);
    if (rc == -EPIPE) {
        watch_ended(w, rank);
    }
    return rc;
}

uint32_t watch_rank(const struct window *w)
{
    uint64_t word = __atomic_load_n(&w->slot->shared[SYNC_ENDED], __ATOMIC_ACQUIRE);
    return word != 0 ? (uint32_t)(word - 1) : UINT32_MAX;
}

/* Takes what a look has found, if it is over. The caller has job.lock. */
static bool over(struct look *l)
{
    bool is;
    int rc = pw_rma_test(&l->request, &is);
    if (is && l->window != NULL && rc == 0 && l->words[1] != 0) {
        l->window->suspect = 1 + l->rank;
    }
    if (is && l->window != NULL) {
        if (rc == -EPIPE || rc == -ESTALE) { /* -ESTALE: the process has closed what it had */
            ended(l->window, l->rank);
        } else if (rc == 0 && l->words[0] != 0 && l->words[0] <= l->window->ranks->size) {
            ended(l->window, (uint32_t)(l->words[0] - 1));
        }
    }
    return is;
}

/* Takes all that is over; of a window that is freed nothing. Says whether this window looks at this
 * rank. */
static bool take(const struct window *w, uint32_t rank)
{
    bool looks_at = false;
    pthread_mutex_lock(&job.lock);
    for (struct look **at = &looks; *at != NULL;) {
        struct look *l = *at;
        if (over(l)) {
            *at = l->next;
            free(l);
        } else {
            looks_at |= l->window == w && l->rank == rank;
            at = &l->next;
        }
    }
    pthread_mutex_unlock(&job.lock);
    return looks_at;
}

static void look_at(struct window *w, uint32_t rank)
{
    struct pw_rma_key *key = peer_control(w->ranks->peers[rank]);
    struct look *l = key != NULL ? calloc(1, sizeof(*l)) : NULL;
    if (l == NULL) {
        return; /* there is no memory now */
    }
    l->window = w;
    l->rank = rank;
    if (pw_rma_get(key, l->words, sizeof(l->words), place_of_word(w, SYNC_ENDED), &l->request) !=
        0) {
        free(l);
        return;
    }
    pthread_mutex_lock(&job.lock);
    l->next = looks;
    looks = l;
    pthread_mutex_unlock(&job.lock);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Asks a rank that has posted with MPI_MODE_NOCHECK at some time for the post that a start misses.
 */
static void ask(struct window *w)
{
    pthread_mutex_lock(&job.lock);
    uint32_t suspect = w->suspect;
    w->suspect = 0;
    pthread_mutex_unlock(&job.lock);
    if (suspect != 0) {
        pthread_mutex_lock(&job.notes_lock);
        sync_ask(&w->sync, suspect - 1);
        pthread_mutex_unlock(&job.notes_lock);
    }
}

void watch_turn(struct window *w, const struct sync *s, struct watch *t)
{
    if (++t->turns % TURNS != 0) {
        return;
    }
    int64_t now = now_ms();
    if (t->ask_ms == 0) {
        t->ask_ms = now + ASK_MS;
        return;
    }
    if (w->exposure.exposed_unchecked) { /* starters may ask for posts */
        job_take_notes();
        pthread_mutex_lock(&job.notes_lock);
        sync_poll(&w->exposure);
        pthread_mutex_unlock(&job.notes_lock);
    }
    take(w, UINT32_MAX);
    if (s == &w->sync && w->starting) {
        ask(w);
    }
    if (now < t->ask_ms) {
        return;
    }
    t->ask_ms = now + ASK_MS;
    for (int i = 0; i < AT_ONCE; i++) {
        uint32_t rank;
        if (!sync_waits_for(s, t->next++, &rank)) {
            t->next = 0;
            return;
        }
        if (rank != w->ranks->rank && !take(w, rank)) {
            look_at(w, rank);
        }
    }
}

void watch_leave(const struct window *w)
{
    take(w, UINT32_MAX);
    pthread_mutex_lock(&job.lock);
    for (struct look *l = looks; l != NULL && w != NULL; l = l->next) {
        l->window = l->window == w ? NULL : l->window;
    }
    pthread_mutex_unlock(&job.lock);
}
