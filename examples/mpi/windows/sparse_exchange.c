/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic sparse data exchange: each rank has a word for some others, who do not know of it.
 *
 * By windows a sender takes a place in its target's list by fetch-and-add, and puts its word there;
 * after a barrier the list is complete. By messages it is the non-blocking consensus: synchronous
 * sends, and a barrier that a rank enters when all of its own have been taken.
 *
 *     sparse_exchange [--two-sided] [NEIGHBOURS [ROUNDS]]     neighbours of a rank (6), rounds (50)
 */
#include "windows.h"

/* What a rank gets: how many words, and these. */
struct list {
    int64_t count;
    uint64_t word[];
};

struct exchange {
    struct job *job;
    struct list *list;
    long room; /* of words */
    uint64_t *words;
    MPI_Request *requests;
    MPI_Win win;
};

static int target_of(const struct job *job, int rank, int round, long i)
{
    uint64_t draw = mix(((uint64_t)round << 40) + ((uint64_t)rank << 20) + (uint64_t)i + 1);
    return (int)(draw % (uint64_t)job->ranks);
}

static uint64_t word_of(int rank, int round, long i)
{
    return ((uint64_t)round << 44) | ((uint64_t)rank << 24) | (uint64_t)i;
}

static void exchange_windows(struct exchange *x, int round)
{
    struct job *job = x->job;
    const int64_t one = 1;
    for (long i = 0; i < job->size; i++) {
        int64_t place;
        int target = target_of(job, job->rank, round, i);
        MPI_Fetch_and_op(&one, &place, MPI_INT64_T, target, 0, MPI_SUM, x->win);
        MPI_Win_flush(target, x->win);
        MPI_Put(&x->words[i], 1, MPI_UINT64_T, target,
                (MPI_Aint)(offsetof(struct list, word) + (size_t)place * sizeof(uint64_t)), 1,
                MPI_UINT64_T, x->win);
    }
}

static void exchange_messages(struct exchange *x)
{
    struct job *job = x->job;
    int round = (int)(x->words[0] >> 44), over = 0, waits = 0;
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (long i = 0; i < job->size; i++) {
        MPI_Issend(&x->words[i], 1, MPI_UINT64_T, target_of(job, job->rank, round, i), round & 1,
                   MPI_COMM_WORLD, &x->requests[i]);
    }
    while (!over) {
        int there, taken;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, round & 1, MPI_COMM_WORLD, &there, &status);
        if (there) {
            MPI_Recv(&x->list->word[x->list->count++], 1, MPI_UINT64_T, status.MPI_SOURCE,
                     round & 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (waits) {
            MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Testall((int)job->size, x->requests, &taken, MPI_STATUSES_IGNORE);
        if (taken) {
            MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
            waits = 1;
        }
    }
}

static int by_word(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Who sent what is no secret: each rank computes what must have come. */
static void check(struct exchange *x, int round)
{
    struct job *job = x->job;
    long expected = 0;
    if (x->list->count < 0 || x->list->count > x->room) {
        job_wrong(job, "words in a list", x->list->count, x->room);
        return;
    }
    qsort(x->list->word, (size_t)x->list->count, sizeof(uint64_t), by_word);
    for (int rank = 0; rank < job->ranks; rank++) {
        for (long i = 0; i < job->size; i++) {
            if (target_of(job, rank, round, i) == job->rank) {
                uint64_t word = word_of(rank, round, i);
                if (expected >= x->list->count || x->list->word[expected] != word) {
                    job_wrong(job, "the word that is missing, at", expected, (long long)word);
                    return;
                }
                expected++;
            }
        }
    }
    if (expected != x->list->count) {
        job_wrong(job, "words", x->list->count, expected);
    }
}

int main(int argc, char **argv)
{
    struct job job;
    job_begin(&job, argc, argv, "sparse_exchange", "NEIGHBOURS", 6, 50);
    struct exchange x = {.job = &job, .room = job.size * job.ranks};
    size_t size = sizeof(struct list) + (size_t)x.room * sizeof(uint64_t);
    x.words = job_alloc(&job, (size_t)job.size * sizeof(uint64_t));
    x.requests = job_alloc(&job, (size_t)job.size * sizeof(MPI_Request));
    x.list = window_open(&job, size, &x.win);
    for (int round = 0; round < job.rounds; round++) {
        x.list->count = 0;
        for (long i = 0; i < job.size; i++) {
            x.words[i] = word_of(job.rank, round, i);
        }
        window_seen(&job, x.win);
        job_round(&job);
        if (job.two_sided) {
            exchange_messages(&x);
        } else {
            exchange_windows(&x, round);
        }
        window_over(&job, x.win);
        job_round_over(&job);
        check(&x, round);
    }
    window_close(&job, x.list, &x.win);
    free(x.words);
    free(x.requests);
    return job_end(&job);
}
