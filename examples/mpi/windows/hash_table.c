/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table that all ranks own together, and into which each inserts keys of its own.
 *
 * A rank owns a table of slots, and a heap for what finds its slot taken. By windows the inserting
 * rank does all of it: compare-and-swap of the slot; if another key is there, a place in the heap
 * by fetch-and-add, the key into it by a put, and the place into the chain of the slot by a swap,
 * whose old value becomes the place's successor. By messages the owner does it, who therefore has
 * to look for messages while it inserts itself.
 *
 *     hash_table [--two-sided] [KEYS [ROUNDS]]     keys of a rank (2000), rounds (5)
 *
 * Afterwards each owner walks its chains: no key is lost, doubled, or in the wrong slot.
 */
#include "windows.h"

enum { KEY, DONE };

struct cell {
    uint64_t key;   /* 0: free */
    uint64_t chain; /* of a slot its first place in the heap, of a place the next: 1 and more */
};

/* A rank's share: the slots, the heap behind them. `used` counts the heap's places. */
struct share {
    uint64_t used, unused;
    struct cell cell[];
};

struct table {
    struct job *job;
    long slots, places;
    struct share *own;
    size_t size;
    MPI_Win win;
    long done; /* ranks whose keys have all come, by messages */
};

static MPI_Aint at(long cell, size_t field)
{
    return (MPI_Aint)(offsetof(struct share, cell) + (size_t)cell * sizeof(struct cell) + field);
}

static int owner(const struct table *t, uint64_t key)
{
    return (int)(mix(key) % (uint64_t)t->job->ranks);
}

static long slot(const struct table *t, uint64_t key)
{
    return (long)(mix(key) / (uint64_t)t->job->ranks % (uint64_t)t->slots);
}

static uint64_t swap(const struct table *t, int rank, MPI_Aint where, const uint64_t *value,
                     MPI_Op op)
{
    uint64_t old;
    MPI_Fetch_and_op(value, &old, MPI_UINT64_T, rank, where, op, t->win);
    MPI_Win_flush(rank, t->win);
    return old;
}

static void insert(struct table *t, uint64_t key)
{
    int rank = owner(t, key);
    long cell = slot(t, key);
    const uint64_t none = 0, one = 1;
    uint64_t old;
    MPI_Compare_and_swap(&key, &none, &old, MPI_UINT64_T, rank,
                         at(cell, offsetof(struct cell, key)), t->win);
    MPI_Win_flush(rank, t->win);
    if (old == 0) {
        return;
    }
    uint64_t place = swap(t, rank, offsetof(struct share, used), &one, MPI_SUM) + 1;
    long in_heap = t->slots + (long)place - 1;
    MPI_Put(&key, 1, MPI_UINT64_T, rank, at(in_heap, offsetof(struct cell, key)), 1, MPI_UINT64_T,
            t->win);
    old = swap(t, rank, at(cell, offsetof(struct cell, chain)), &place, MPI_REPLACE);
    MPI_Put(&old, 1, MPI_UINT64_T, rank, at(in_heap, offsetof(struct cell, chain)), 1, MPI_UINT64_T,
            t->win);
    MPI_Win_flush(rank, t->win); /* before `old` and `key` are gone */
}

static void insert_here(struct table *t, uint64_t key)
{
    struct cell *c = &t->own->cell[slot(t, key)];
    if (c->key == 0) {
        c->key = key;
        return;
    }
    struct cell *place = &t->own->cell[t->slots + (long)t->own->used++];
    *place = (struct cell){key, c->chain};
    c->chain = t->own->used;
}

static void take_messages(struct table *t)
{
    for (;;) {
        int there;
        uint64_t key;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
        if (!there) {
            return;
        }
        MPI_Recv(&key, 1, MPI_UINT64_T, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (status.MPI_TAG == KEY) {
            insert_here(t, key);
        } else {
            t->done++;
        }
    }
}

static void send(struct table *t, int rank, int tag, uint64_t key)
{
    MPI_Request request;
    int sent = 0;
    MPI_Isend(&key, 1, MPI_UINT64_T, rank, tag, MPI_COMM_WORLD, &request);
    while (!sent) {
        MPI_Test(&request, &sent, MPI_STATUS_IGNORE);
        take_messages(t);
    }
}

/* Keys of one round differ from each other and from 0, on all ranks. */
static uint64_t key_of(const struct job *job, int round, long i)
{
    uint64_t number =
        ((uint64_t)round * (uint64_t)job->ranks + (uint64_t)job->rank) * (uint64_t)job->size +
        (uint64_t)i;
    return mix(number + 1);
}

static void fill_windows(struct table *t, int round)
{
    for (long i = 0; i < t->job->size; i++) {
        insert(t, key_of(t->job, round, i));
    }
}

static void fill_messages(struct table *t, int round)
{
    struct job *job = t->job;
    t->done = 0;
    for (long i = 0; i < job->size; i++) {
        uint64_t key = key_of(job, round, i);
        if (owner(t, key) == job->rank) {
            insert_here(t, key);
        } else {
            send(t, owner(t, key), KEY, key);
        }
    }
    for (int rank = 0; rank < job->ranks; rank++) {
        if (rank != job->rank) {
            send(t, rank, DONE, 0);
        }
    }
    while (t->done < job->ranks - 1) {
        take_messages(t);
    }
}

static uint64_t count_key(struct table *t, long in_slot, uint64_t key, uint64_t *sum)
{
    if (owner(t, key) != t->job->rank || slot(t, key) != in_slot) {
        job_wrong(t->job, "a key is in the slot", in_slot, slot(t, key));
    }
    *sum += mix(key ^ 0x5bd1e995u);
    return 1;
}

static void check(struct table *t, int round)
{
    struct job *job = t->job;
    uint64_t found[2] = {0, 0}, all[2], wanted[2] = {(uint64_t)job->size, 0};
    for (long s = 0; s < t->slots; s++) {
        const struct cell *c = &t->own->cell[s];
        if (c->key != 0) {
            found[0] += count_key(t, s, c->key, &found[1]);
        }
        for (uint64_t next = c->chain; next != 0; next = c->chain) {
            if (next > t->own->used || found[0] > (uint64_t)t->places * 2) {
                job_wrong(job, "a chain goes to the place", (long long)next,
                          (long long)t->own->used);
                break;
            }
            c = &t->own->cell[t->slots + (long)next - 1];
            found[0] += count_key(t, s, c->key, &found[1]);
        }
    }
    for (long i = 0; i < job->size; i++) {
        wanted[1] += mix(key_of(job, round, i) ^ 0x5bd1e995u);
    }
    MPI_Allreduce(MPI_IN_PLACE, wanted, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(found, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (job->rank == 0 && all[0] != wanted[0]) {
        job_wrong(job, "keys", (long long)all[0], (long long)wanted[0]);
    } else if (job->rank == 0 && all[1] != wanted[1]) {
        job_wrong(job, "sum of keys", (long long)all[1], (long long)wanted[1]);
    }
}

int main(int argc, char **argv)
{
    struct job job;
    job_begin(&job, argc, argv, "hash_table", "KEYS", 2000, 5);
    struct table t = {.job = &job, .slots = job.size, .places = job.size * job.ranks};
    t.size = sizeof(struct share) + (size_t)(t.slots + t.places) * sizeof(struct cell);
    t.own = window_open(&job, t.size, &t.win);
    for (int round = 0; round < job.rounds; round++) {
        memset(t.own, 0, t.size);
        window_seen(&job, t.win);
        job_round(&job);
        if (job.two_sided) {
            fill_messages(&t, round);
        } else {
            fill_windows(&t, round);
        }
        window_over(&job, t.win);
        job_round_over(&job);
        check(&t, round);
    }
    window_close(&job, t.own, &t.win);
    return job_end(&job);
}
