/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Post, start, complete, wait. The n-th post to a starter puts (rank, n) on its list; the starter's
 * n-th start of that rank waits until it is there.
 *
 *      poster                      starter
 *      post ─── append, n ───────► list: poster, n       complete: add to SYNC_COMPLETED
 *                                  start: is n there?             of each of the group
 *      wait: k completions ◄────── complete
 *
 * With MPI_MODE_NOCHECK at both ends the number is counted and not sent (S6). A start that finds no
 * post may have a partner who has posted with it: it asks (sync_ask()), and is refused. A
 * completion tells the poster whether its start had it.
 *
 *      post, unchecked             start, which waits
 *      any call ◄── want n ──────  it asks
 *               ─── refused n ───► ends with -EPROTO; its other partners are completed
 *      wait: ends with -EPROTO, without that starter's completion
 *
 * The list is a hash table by rank, so a start of k ranks is O(k), however many others have posted.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

enum { LEAST_ROOM = 8 };

#define NUMBERS (UINT32_C(1) << SYNC_NUMBER_BITS)

static uint32_t place_of(const struct sync *s, uint32_t rank)
{
    return (rank * 2654435761u >> 7) & (s->partner_room - 1);
}

/* The place of a rank, or the free one where it would be. */
static struct sync_partner *find(const struct sync *s, uint32_t rank)
{
    uint32_t at = place_of(s, rank);
    while (s->partners[at].known && s->partners[at].rank != rank) {
        at = (at + 1) & (s->partner_room - 1);
    }
    return &s->partners[at];
}

static int grow(struct sync *s)
{
    uint32_t old_room = s->partner_room, room = old_room == 0 ? LEAST_ROOM : 2 * old_room;
    struct sync_partner *old = s->partners, *new = calloc(room, sizeof(*new));
    if (new == NULL) {
        return -ENOMEM;
    }
    s->partners = new;
    s->partner_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i].known) {
            *find(s, old[i].rank) = old[i];
        }
    }
    free(old);
    return 0;
}

/* The entry of a rank, which is made if there is none; NULL: no memory. */
static struct sync_partner *partner_of(struct sync *s, uint32_t rank)
{
    if (2 * (s->partner_count + 1) > s->partner_room && grow(s) != 0) {
        return NULL;
    }
    struct sync_partner *p = find(s, rank);
    s->partner_count += !p->known;
    p->known = true;
    p->rank = rank;
    return p;
}

/* The whole number that is nearest to `about` among those that end like this. */
static uint32_t whole(uint32_t number, uint32_t about)
{
    uint32_t ahead = (number - about) % NUMBERS;
    return ahead < NUMBERS / 2 ? about + ahead : about + ahead - NUMBERS;
}

int sync_noted(struct sync *s, uint32_t rank, enum sync_note note, uint32_t number)
{
    struct sync_partner *p = partner_of(s, rank);
    if (p == NULL) {
        return -ENOMEM;
    }
    switch (note) {
    case SYNC_POST:
        p->come = whole(number, p->starts) + 1;
        break;
    case SYNC_REFUSED:
        p->refused = whole(number, p->starts) + 1;
        s->refused = true;
        break;
    default:
        p->wants = whole(number, p->posts) + 1;
        s->wanted = true;
    }
    return 0;
}

/* ---- Access epochs ---- */

/* Counts are circular. */
static bool reaches(uint32_t count, uint32_t number)
{
    return (int32_t)(count - number) > 0;
}

/* A start that does not become an epoch: none of its group waits for it. */
static void give_up(struct sync *s)
{
    s->step = STEP_NONE;
    for (uint32_t i = 0; i < s->group_size; i++) {
        struct sync_partner *p = find(s, s->group[i]);
        bool refused = reaches(p->refused, p->starts);
        p->starts++;
        if (!refused) {
            sync_did(s, s->ops->add(s->client, s->group[i], SYNC_COMPLETED, 1));
        }
    }
    s->error = -EPROTO;
}

/* A rank is missing until its post has come; the group is gone through once. A post that was
 * refused may have the next one behind it already, so refusals are looked for first. */
static void start_go_on(struct sync *s)
{
    for (uint32_t i = 0; s->refused && i < s->group_size; i++) {
        const struct sync_partner *p = find(s, s->group[i]);
        if (reaches(p->refused, p->starts)) {
            give_up(s);
            return;
        }
    }
    s->refused = false;
    for (; s->group_left > 0; s->group_left--) {
        const struct sync_partner *p = find(s, s->group[s->group_size - s->group_left]);
        if (!reaches(p->come, p->starts)) {
            return;
        }
    }
    s->step = STEP_NONE;
    for (uint32_t i = 0; i < s->group_size; i++) {
        find(s, s->group[i])->starts++;
    }
}

void sync_start(struct sync *s, const uint32_t *group, uint32_t count, bool check)
{
    if (!sync_begin(s, STEP_START)) {
        return;
    }
    s->group = group;
    s->group_size = count;
    s->group_left = check ? count : 0;
    s->unchecked = !check;
    for (uint32_t i = 0; i < count; i++) {
        sync_did(s, partner_of(s, group[i]) != NULL ? 0 : -ENOMEM);
    }
}

void sync_ask(struct sync *s, uint32_t rank)
{
    if (s->step == STEP_START) {
        const struct sync_partner *p = find(s, rank);
        if (p->known && !reaches(p->come, p->starts)) {
            s->ops->append(s->client, rank, SYNC_WANT, p->starts % NUMBERS); /* or asks again */
        }
    }
}

void sync_complete(struct sync *s, const uint32_t *group, uint32_t count)
{
    sync_leave(s);
    for (uint32_t i = 0; i < count; i++) {
        sync_did(s, s->ops->add(s->client, group[i], SYNC_COMPLETED,
                                s->unchecked ? 1 + SYNC_UNCHECKED_ONE : 1));
    }
    sync_left(s);
}

/* ---- Exposure epochs ---- */

void sync_post(struct sync *s, const uint32_t *group, uint32_t count, bool check)
{
    bool begun = sync_begin(s, STEP_NONE);
    s->exposed_to = group;
    s->exposed_count = count;
    s->exposed_unchecked = !check;
    if (!check) {
        __atomic_store_n(&s->shared[SYNC_UNCHECKED], 1, __ATOMIC_RELEASE);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct sync_partner *p = partner_of(s, group[i]);
        if (p == NULL) {
            sync_did(s, -ENOMEM);
            continue;
        }
        uint32_t number = p->posts++;
        if (check && begun) {
            sync_did(s, s->ops->append(s->client, group[i], SYNC_POST, number % NUMBERS));
        }
    }
}

/* Starters that wait for a post are told that there was one with MPI_MODE_NOCHECK; they will not
 * complete. The list may change during append(). */
static void refuse(struct sync *s)
{
    s->wanted = false;
    for (uint32_t i = 0; s->exposed_unchecked && i < s->exposed_count; i++) {
        struct sync_partner *p = find(s, s->exposed_to[i]);
        if (p->known && p->wants == p->posts) {
            p->wants--;
            s->dropped += p->dropped != p->posts;
            p->dropped = p->posts;
            /* who is not told asks again */
            s->ops->append(s->client, p->rank, SYNC_REFUSED, (p->posts - 1) % NUMBERS);
        }
    }
}

/* Whether all of the group have completed this exposure epoch; then it has ended, with s->error. */
static bool exposure_is_over(struct sync *s)
{
    uint64_t word = sync_read(s, SYNC_COMPLETED), completed = word % SYNC_UNCHECKED_ONE;
    if (completed < s->exposures + s->exposed_count - s->dropped) {
        return false;
    }
    uint16_t without = (uint16_t)(word / SYNC_UNCHECKED_ONE);
    bool odd = s->dropped > 0 || (!s->exposed_unchecked && without != s->without_check);
    s->without_check = without;
    s->exposures += s->exposed_count - s->dropped;
    s->dropped = 0;
    s->exposed_unchecked = false;
    s->step = STEP_NONE;
    s->error = odd ? -EPROTO : 0;
    return true;
}

void sync_wait(struct sync *s)
{
    sync_begin(s, STEP_WAIT);
}

bool sync_test(struct sync *s)
{
    if (s->wanted) {
        refuse(s);
    }
    if (exposure_is_over(s)) {
        return true;
    }
    sync_begin(s, STEP_TEST);
    return false;
}

void pscw_go_on(struct sync *s)
{
    if (s->wanted) {
        refuse(s);
    }
    if (s->step == STEP_START) {
        start_go_on(s);
    } else if (s->step == STEP_WAIT) {
        exposure_is_over(s);
    }
}
