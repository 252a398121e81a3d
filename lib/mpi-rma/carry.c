/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine (sync.h) asks for, carried by libpinwheel-rma: the words of a rank are in its
 * slot, which an atomic operation of Portals changes, or one of the processor if it is this rank's
 * own. Posts are notices (pinwheel_notify.h): the list in the starter's memory to which others
 * append. An answer is there when the operation returns; the engine gets it when it has, too.
 */
#include "window.h"

#include <errno.h>
#include <time.h>

uint64_t place_of_word(const struct window *w, enum sync_word word)
{
    return w->slot_number * sizeof(struct slot) + offsetof(struct slot, shared) +
           (uint64_t)word * sizeof(uint64_t);
}

static struct pw_rma_key *control_of(const struct window *w, uint32_t rank)
{
    return peer_control(w->ranks->peers[rank]);
}

static void answer(struct window *w, uint64_t value)
{
    w->answer = value;
    w->answered = true;
}

/* The end of an operation that `rc` says was begun, or why it was not: what it found is the answer
 * only if it succeeds. Otherwise the engine's call ends, and the next one must not find an answer.
 */
static int bring(struct window *w, uint32_t rank, int rc, struct pw_rma_request *request,
                 const uint64_t *was)
{
    rc = rc == 0 ? pw_rma_wait(request) : rc;
    if (rc == 0) {
        answer(w, *was);
    } else if (rc == -EPIPE) {
        watch_ended(w, rank);
    }
    return rc;
}

/* What the engine adds, where it stays until the message has left; NULL: another value. */
static const uint64_t *keep(uint64_t value)
{
    static const uint64_t values[] = {1, -UINT64_C(1), -UINT64_C(2), -(UINT64_C(1) << 32),
                                      1 + SYNC_UNCHECKED_ONE};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i] == value) {
            return &values[i];
        }
    }
    return NULL;
}

static int add(void *client, uint32_t rank, enum sync_word word, uint64_t value)
{
    struct window *w = client;
    if (rank == w->ranks->rank) {
        __atomic_fetch_add(&w->slot->shared[word], value, __ATOMIC_SEQ_CST);
        return 0;
    }
    struct pw_rma_key *key = control_of(w, rank);
    if (key == NULL) {
        return -ENOMEM;
    }
    const uint64_t *kept = keep(value);
    KILL_POINT("mpi-adds");
    int rc = pw_rma_accumulate(key, kept != NULL ? kept : &value, 1, place_of_word(w, word),
                               PW_RMA_SUM, PW_RMA_UINT64, NULL);
    if (kept == NULL) {
        pw_rma_flush_local(pw_rma_key_peer(key));
    }
    return rc;
}

static int fetch_add(void *client, uint32_t rank, enum sync_word word, uint64_t value)
{
    struct window *w = client;
    if (rank == w->ranks->rank) {
        answer(w, __atomic_fetch_add(&w->slot->shared[word], value, __ATOMIC_SEQ_CST));
        return 0;
    }
    struct pw_rma_key *key = control_of(w, rank);
    struct pw_rma_request request;
    uint64_t was;
    if (key == NULL) {
        return -ENOMEM;
    }
    KILL_POINT("mpi-fetches");
    int rc = pw_rma_fetch_op(key, &value, &was, place_of_word(w, word), PW_RMA_SUM, PW_RMA_UINT64,
                             &request);
    return bring(w, rank, rc, &request, &was);
}

static int swap(void *client, uint32_t rank, enum sync_word word, uint64_t compare, uint64_t value)
{
    struct window *w = client;
    if (rank == w->ranks->rank) {
        __atomic_compare_exchange_n(&w->slot->shared[word], &compare, value, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        answer(w, compare); /* what was there: itself if it was equal */
        return 0;
    }
    struct pw_rma_key *key = control_of(w, rank);
    struct pw_rma_request request;
    uint64_t was;
    if (key == NULL) {
        return -ENOMEM;
    }
    KILL_POINT("mpi-swaps");
    int rc = pw_rma_compare_swap(key, &value, &compare, &was, place_of_word(w, word), PW_RMA_UINT64,
                                 &request);
    return bring(w, rank, rc, &request, &was);
}

/* A note is a notified put of no bytes: slot and kind are its tag, the number is its offset. A post
 * that finds no room at its starter (4096 notes that nobody has looked at) is sent again. The
 * caller has job.notes_lock, which is free meanwhile. */
static int append(void *client, uint32_t rank, enum sync_note note, uint32_t number)
{
    struct window *w = client;
    struct pw_rma_request request;
    struct idle idle = {0};
    pthread_mutex_unlock(&job.notes_lock);
    struct pw_rma_key *key = control_of(w, rank);
    int rc = key == NULL ? -ENOMEM : -ENOBUFS;
    for (bool again = key != NULL; again; again = rc == -ENOBUFS && note == SYNC_POST) {
        if (idle.turns > 0) {
            job_idle(&idle);
        }
        idle.turns++;
        rc = pw_notify_put(key, NULL, 0, number, note_tag(w->slot_number, note), &request);
        rc = rc == 0 ? pw_rma_wait(&request) : rc;
    }
    if (rc == -EPIPE) {
        watch_ended(w, rank);
    }
    KILL_POINT("mpi-appended");
    pthread_mutex_lock(&job.notes_lock);
    return rc;
}

/* The words are there before the flag is. */
static int send_words(void *client, uint32_t rank, unsigned round, const uint64_t *words)
{
    struct window *w = client;
    struct pw_rma_key *key = control_of(w, rank);
    struct pw_rma_request request;
    uint64_t at = w->slot_number * sizeof(struct slot);
    if (key == NULL) {
        return -ENOMEM;
    }
    int rc =
        pw_rma_put(key, words, SYNC_WORDS * sizeof(*words),
                   at + offsetof(struct slot, words) + round * sizeof(w->slot->words[0]), &request);
    rc = rc == 0 ? pw_rma_wait(&request) : rc;
    KILL_POINT("mpi-words");
    if (rc == 0) {
        rc = pw_rma_accumulate(key, keep(1), 1,
                               at + offsetof(struct slot, came) + round * sizeof(uint64_t),
                               PW_RMA_SUM, PW_RMA_UINT64, NULL);
    }
    return rc;
}

static void pause_for(void *client, uint64_t units)
{
    struct window *w = client;
    w->pause = units;
}

const struct sync_ops carry_ops = {add, fetch_add, swap, append, send_words, pause_for};

/* Hands over the words of creation that have come. */
static void take_words(struct window *w, struct sync *s)
{
    for (unsigned round = 0; s->agreement != NULL && round < SYNC_ROUNDS; round++) {
        if ((s->came >> round & 1) == 0 &&
            __atomic_load_n(&w->slot->came[round], __ATOMIC_ACQUIRE) != 0) {
            sync_agree(s, round, w->slot->words[round]);
        }
    }
}

/* Others put notes on the lists, and each thread brings those of all. */
static bool poll(struct window *w, struct sync *s)
{
    if (!w->starting && s != &w->exposure) {
        return sync_poll(s);
    }
    if (w->starting && s != &w->exposure) {
        job_take_notes();
    }
    pthread_mutex_lock(&job.notes_lock);
    bool goes_on = sync_poll(s);
    pthread_mutex_unlock(&job.notes_lock);
    return goes_on;
}

int carry_wait(struct window *w, struct sync *s)
{
    enum { LOOKS = 32 }; /* what others change directly is there soon, without progress here */
    struct idle idle = {0};
    struct watch watch = {0};
    for (unsigned turn = 0;; turn++) {
        if (s == &w->sync && w->answered) {
            w->answered = false;
            sync_answer(s, w->answer);
        } else if (s == &w->sync && w->pause > 0 && --w->pause == 0) {
            sync_answer(s, 0);
        }
        if (s->agreement != NULL) {
            take_words(w, s);
        }
        if (!poll(w, s)) {
            if (s == &w->sync) { /* nothing is left of a call that an end of a rank has ended */
                w->answered = false;
                w->pause = 0;
            }
            return sync_error(s);
        }
        if (turn >= LOOKS && (s != &w->sync || !w->answered)) {
            job_idle(&idle);
            watch_turn(w, s, &watch);
        }
    }
}
