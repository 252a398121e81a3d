/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Post, start, complete, wait. A post puts its rank on the list of each starter; a start waits
 * until all of its group are on its own, and takes them off.
 *
 *      poster                      starter
 *      post ──── append ─────────► list: poster          complete: add to SYNC_COMPLETED
 *                                  start: is it there?            of each of the group
 *      wait: k completions ◄────── complete
 *
 * The list is a hash table by rank, so a start of k ranks is O(k), however many others have posted.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

enum { LEAST_ROOM = 8 };

static uint32_t place_of(const struct sync *s, uint32_t rank)
{
    return (rank * 2654435761u >> 7) & (s->credit_room - 1);
}

/* The place of a rank, or the free one where it would be. */
static struct sync_credit *find(const struct sync *s, uint32_t rank)
{
    uint32_t at = place_of(s, rank);
    while (s->credits[at].count != 0 && s->credits[at].rank != rank) {
        at = (at + 1) & (s->credit_room - 1);
    }
    return &s->credits[at];
}

/* Makes the table of another size. */
static int resize(struct sync *s, uint32_t room)
{
    struct sync_credit *old = s->credits, *new = calloc(room, sizeof(*new));
    uint32_t old_room = s->credit_room;
    if (new == NULL) {
        return -ENOMEM;
    }
    s->credits = new;
    s->credit_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i].count != 0) {
            *find(s, old[i].rank) = old[i];
        }
    }
    free(old);
    return 0;
}

int sync_posted(struct sync *s, uint32_t rank)
{
    if (2 * (s->credit_used + 1) > s->credit_room) {
        int rc = resize(s, s->credit_room == 0 ? LEAST_ROOM : 2 * s->credit_room);
        if (rc != 0) {
            return rc;
        }
    }
    struct sync_credit *c = find(s, rank);
    s->credit_used += c->count == 0;
    c->rank = rank;
    c->count++;
    return 0;
}

/* Frees a place, and moves those behind it that would not be found over the gap. */
static void vacate(struct sync *s, struct sync_credit *c)
{
    uint32_t gap = (uint32_t)(c - s->credits), mask = s->credit_room - 1;
    for (uint32_t at = (gap + 1) & mask; s->credits[at].count != 0; at = (at + 1) & mask) {
        uint32_t home = place_of(s, s->credits[at].rank);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            s->credits[gap] = s->credits[at];
            gap = at;
        }
    }
    s->credits[gap].count = 0;
    s->credit_used--;
}

static bool take(struct sync *s, uint32_t rank)
{
    struct sync_credit *c = s->credit_room == 0 ? NULL : find(s, rank);
    if (c == NULL || c->count == 0) {
        return false;
    }
    if (--c->count == 0) {
        vacate(s, c);
    }
    return true;
}

/* A rank is missing until its post has come; the group is gone through once. */
static void start_go_on(struct sync *s)
{
    while (s->group_left > 0 && take(s, s->group[s->group_size - s->group_left])) {
        s->group_left--;
    }
    if (s->group_left == 0) {
        s->step = STEP_NONE;
        if (s->credit_room > LEAST_ROOM && 8 * s->credit_used < s->credit_room) {
            resize(s, s->credit_room / 2); /* without memory it stays as it is */
        }
    }
}

void pscw_go_on(struct sync *s)
{
    if (s->step == STEP_START) {
        start_go_on(s);
    } else if (s->step == STEP_WAIT && sync_read(s, SYNC_COMPLETED) >= s->exposures) {
        s->step = STEP_NONE;
    }
}

void sync_post(struct sync *s, const uint32_t *group, uint32_t count, bool check)
{
    bool begun = sync_begin(s, STEP_NONE);
    for (uint32_t i = 0; begun && i < count && check; i++) {
        sync_did(s, s->ops->append(s->client, group[i]));
    }
}

void sync_start(struct sync *s, const uint32_t *group, uint32_t count, bool check)
{
    if (sync_begin(s, STEP_START)) {
        s->group = group;
        s->group_size = count;
        s->group_left = check ? count : 0;
    }
}

void sync_complete(struct sync *s, const uint32_t *group, uint32_t count)
{
    sync_leave(s);
    for (uint32_t i = 0; i < count; i++) {
        sync_did(s, s->ops->add(s->client, group[i], SYNC_COMPLETED, 1));
    }
    sync_left(s);
}

void sync_wait(struct sync *s, const uint32_t *group, uint32_t count)
{
    if (sync_begin(s, STEP_WAIT)) {
        s->group = group;
        s->group_size = count;
        s->exposures += count;
    }
}

bool sync_test(struct sync *s, const uint32_t *group, uint32_t count)
{
    bool over = sync_read(s, SYNC_COMPLETED) >= s->exposures + count;
    if (over) {
        sync_leave(s);
        s->exposures += count;
    } else if (sync_begin(s, STEP_TEST)) {
        s->group = group;
        s->group_size = count;
    }
    return over;
}
