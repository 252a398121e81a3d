/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of two levels (S3), each of one or two atomic operations if nobody is in the way:
 *
 *      exclusive   master + 1, unless this process has such a lock; then target 0 → 1
 *      shared      target + 2, then wait until its lowest bit is clear
 *      all         master + 2^32, then wait until its lower half is 0
 *
 * An exclusive lock that finds somebody gives the master's count back before it tries again, so
 * that a lock of all gets its turn; with other exclusive locks held it only tries its target again.
 * The others stay counted while they wait, which keeps new exclusive locks out. Between two tries
 * is a pause, of twice as many units each time up to a bound, with a random part.
 */
#include "inside.h"

#include <errno.h>

#define ALL (UINT64_C(1) << 32)
#define LOWER (ALL - 1)

enum { LONGEST_PAUSE = 10 }; /* as a power of two */

static uint64_t random_below(struct sync *s, uint64_t bound)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = s->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % bound;
}

/* Waits, then goes on with what `s->step` says, which the answer of the pause begins. */
static void back_off(struct sync *s)
{
    uint64_t most = UINT64_C(1) << (s->tries < LONGEST_PAUSE ? s->tries : LONGEST_PAUSE);
    s->tries++;
    s->pausing = true;
    s->ops->pause(s->client, most + random_below(s, most));
}

/* Asks what the step begins with. */
static void ask(struct sync *s)
{
    switch (s->step) {
    case STEP_MASTER:
        sync_did(s, s->ops->fetch_add(s->client, s->master, SYNC_MASTER, 1));
        break;
    case STEP_SWAP:
        sync_did(s, s->ops->swap(s->client, s->target, SYNC_LOCK, 0, 1));
        break;
    case STEP_SHARED_WAIT:
        sync_did(s, s->ops->fetch_add(s->client, s->target, SYNC_LOCK, 0));
        break;
    default:
        sync_did(s, s->ops->fetch_add(s->client, s->master, SYNC_MASTER, 0));
    }
}

static void next_step(struct sync *s, enum step step)
{
    s->step = (int)step;
    ask(s);
}

/* Somebody is in the way of an exclusive lock. */
static void try_again(struct sync *s)
{
    if (s->exclusives == 0) {
        sync_did(s, s->ops->add(s->client, s->master, SYNC_MASTER, -UINT64_C(1)));
        s->step = s->error == 0 ? STEP_MASTER : STEP_NONE;
    }
    if (s->error == 0) {
        back_off(s);
    }
}

/* What an operation of the lock in progress found, or the end of a pause. */
void lock_answer(struct sync *s, uint64_t value)
{
    if (s->pausing) {
        s->pausing = false;
        ask(s);
        return;
    }
    switch (s->step) {
    case STEP_MASTER:
        if (value >= ALL) {
            try_again(s);
        } else {
            next_step(s, STEP_SWAP);
        }
        break;
    case STEP_SWAP:
        if (value != 0) {
            try_again(s);
        } else {
            s->exclusives++;
            s->step = STEP_NONE;
        }
        break;
    case STEP_SHARED:
    case STEP_SHARED_WAIT:
        s->step = (value & 1) != 0 ? STEP_SHARED_WAIT : STEP_NONE;
        break;
    case STEP_ALL:
        s->step = (value & LOWER) != 0 ? STEP_ALL : STEP_NONE;
        break;
    default:
        return;
    }
    if (s->step == STEP_SHARED_WAIT || s->step == STEP_ALL) {
        back_off(s);
    }
}

void sync_lock(struct sync *s, uint32_t target, bool exclusive)
{
    s->target = target;
    s->tries = 0;
    s->pausing = false;
    if (!sync_begin(s, STEP_NONE)) {
        return;
    }
    if (exclusive) {
        next_step(s, s->exclusives == 0 ? STEP_MASTER : STEP_SWAP);
    } else {
        s->step = STEP_SHARED;
        sync_did(s, s->ops->fetch_add(s->client, target, SYNC_LOCK, 2));
    }
}

void sync_unlock(struct sync *s, uint32_t target, bool exclusive)
{
    sync_leave(s);
    sync_did(s, s->ops->add(s->client, target, SYNC_LOCK, exclusive ? -UINT64_C(1) : -UINT64_C(2)));
    if (exclusive && --s->exclusives == 0) {
        sync_did(s, s->ops->add(s->client, s->master, SYNC_MASTER, -UINT64_C(1)));
    }
    sync_left(s);
}

void sync_lock_all(struct sync *s)
{
    s->tries = 0;
    s->pausing = false;
    if (!sync_begin(s, STEP_ALL)) {
        return;
    }
    sync_did(s, s->ops->fetch_add(s->client, s->master, SYNC_MASTER, ALL));
}

void sync_unlock_all(struct sync *s)
{
    sync_leave(s);
    sync_did(s, s->ops->add(s->client, s->master, SYNC_MASTER, -ALL));
    sync_left(s);
}
