/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot a window has: one that is free in all processes of its communicator, which they find
 * by an and over all ranks. Two threads of a process may ask for two communicators at once and find
 * the same one: then the ranks of one of them see that it is taken, and choose again at random.
 */
#include "window.h"

#include <string.h>

/* The n-th set bit, counted round; -1: there is none. */
static int choose(const uint64_t *mask, uint64_t n)
{
    int bits = 0;
    for (int i = 0; i < SLOT_MASK; i++) {
        bits += __builtin_popcountll(mask[i]);
    }
    if (bits == 0) {
        return -1;
    }
    n %= (uint64_t)bits;
    for (int i = 0; i < SLOT_MASK; i++) {
        uint64_t word = mask[i], here = (uint64_t)__builtin_popcountll(word);
        if (n >= here) {
            n -= here;
            continue;
        }
        while (n-- > 0) {
            word &= word - 1;
        }
        return 64 * i + __builtin_ctzll(word);
    }
    return -1;
}

static bool take(int slot)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    pthread_mutex_lock(&job.lock);
    bool was_free = (job.free_slots[slot / 64] & bit) != 0;
    job.free_slots[slot / 64] &= ~bit;
    pthread_mutex_unlock(&job.lock);
    return was_free;
}

static void give(uint32_t slot)
{
    pthread_mutex_lock(&job.lock);
    job.free_slots[slot / 64] |= UINT64_C(1) << slot % 64;
    pthread_mutex_unlock(&job.lock);
}

void slot_give_back(uint32_t slot)
{
    memset(&job.slots[slot], 0, sizeof(job.slots[slot]));
    give(slot);
}

/* A number that all ranks have, of the first one. */
static uint64_t common_number(MPI_Comm comm)
{
    static _Atomic uint64_t seed = 88172645463325252u;
    uint64_t n = atomic_fetch_add(&seed, 0x9e3779b97f4a7c15u);
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    PMPI_Bcast(&n, 1, MPI_UINT64_T, 0, comm);
    return n >> 7;
}

int slot_agree(MPI_Comm comm, enum reason *reason, uint32_t *slot)
{
    enum { REASON = SLOT_MASK, ALONE, WORDS };
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    for (uint64_t n = 0;; n = common_number(comm)) {
        uint64_t mine[WORDS], all[WORDS];
        pthread_mutex_lock(&job.lock);
        memcpy(mine, job.free_slots, sizeof(job.free_slots));
        pthread_mutex_unlock(&job.lock);
        mine[REASON] = ~UINT64_C(0) << *reason; /* of an and the largest one stays */
        mine[ALONE] = level != MPI_THREAD_MULTIPLE;
        int rc = PMPI_Allreduce(mine, all, WORDS, MPI_UINT64_T, MPI_BAND, comm);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        *reason = (enum reason)__builtin_ctzll(all[REASON]);
        int chosen = *reason == REASON_NONE ? choose(all, n) : -1;
        if (chosen < 0) {
            *reason = *reason == REASON_NONE ? REASON_SLOTS : *reason;
            return MPI_SUCCESS;
        }
        int taken = take(chosen), everywhere = 1;
        if (all[ALONE] == 0) {
            PMPI_Allreduce(&taken, &everywhere, 1, MPI_INT, MPI_MIN, comm);
        }
        if (everywhere) {
            *slot = (uint32_t)chosen;
            return MPI_SUCCESS;
        }
        if (taken) {
            give((uint32_t)chosen);
        }
    }
}
