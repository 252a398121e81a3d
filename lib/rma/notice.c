/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices at their target: from the event of a notified message to the request that takes it.
 *
 *      message ──► region's notified entry ──► event ──► notices of the region ──► a request
 *              └─► no such region: the entry `rest` ──► refused
 *
 * All notified entries of an interface are in one portal table entry with flow control (C6).
 * Whoever looks for a notice takes all events into the regions' lists first. If PW_NOTIFY_ROOM
 * notices wait there, the events stay where they are until some are taken.
 */
#include "inside.h"

#include <search.h>
#include <stdlib.h>

struct notice {
    struct pw_notice is;
    struct notice *next;
};

struct notices {
    struct queue queue; /* its lock is for all of this, and for the regions' lists */
    struct rail *rail;
    ptl_pt_index_t pt;
    ptl_handle_me_t rest;
    void *regions; /* tree by match bits */
    bool closed;   /* by flow control */
    unsigned waiting, used;
    struct notice *free;
    struct notice pool[PW_NOTIFY_ROOM];
};

static int by_bits(const void *a, const void *b)
{
    ptl_match_bits_t x = notify_bits(((const struct pw_rma_region *)a)->bits);
    ptl_match_bits_t y = notify_bits(((const struct pw_rma_region *)b)->bits);
    return x < y ? -1 : x > y;
}

/* The entry of the overflow list, which refuses what no region takes: without it flow control would
 * close the portal table entry to all. */
static int append_rest(struct notices *n)
{
    ptl_me_t me = {.uid = PTL_UID_ANY,
                   .ct_handle = PTL_CT_NONE,
                   .options = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~UINT64_C(0)};
    if (n->rail->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    }
    return PtlMEAppend(n->rail->ni, n->pt, &me, PTL_OVERFLOW_LIST, NULL, &n->rest);
}

int notices_open(struct rail *rail)
{
    if (rail->notices != NULL) {
        return PTL_OK;
    }
    struct notices *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return PTL_NO_SPACE;
    }
    n->rail = rail;
    n->pt = PTL_PT_ANY;
    n->rest = PTL_INVALID_HANDLE;
    rail->notices = n;
    int rc = queue_open(&n->queue, rail->ni, PW_NOTIFY_UNSEEN);
    if (rc == PTL_OK) {
        rc = PtlPTAlloc(rail->ni, PTL_PT_FLOWCTRL, n->queue.eq, PTL_PT_ANY, &n->pt);
    }
    if (rc == PTL_OK) {
        rc = append_rest(n);
    }
    if (rc != PTL_OK) {
        notices_close(rail);
    }
    return rc;
}

void notices_close(struct rail *rail)
{
    struct notices *n = rail->notices;
    if (n == NULL) {
        return;
    }
    if (n->rest != PTL_INVALID_HANDLE) {
        while (PtlMEUnlink(n->rest) == PTL_IN_USE) {
        }
    }
    if (n->pt != PTL_PT_ANY) {
        PtlPTFree(rail->ni, n->pt);
    }
    queue_close(&n->queue);
    free(n);
    rail->notices = NULL;
}

ptl_pt_index_t notices_pt(const struct rail *rail)
{
    return rail->notices->pt;
}

struct queue *notices_queue(const struct rail *rail)
{
    return &rail->notices->queue;
}

/* ---- Regions ---- */

int notices_expect(struct pw_rma_region *region)
{
    struct notices *n = region->rail->notices;
    region->newest = &region->oldest;
    pthread_mutex_lock(&n->queue.lock);
    void *made = tsearch(region, &n->regions, by_bits);
    pthread_mutex_unlock(&n->queue.lock);
    return made != NULL ? 0 : -ENOMEM;
}

bool notices_watched(struct pw_rma_region *region)
{
    return atomic_load(&region->watchers) != 0;
}

/* Opens the portal table entry again when at least half of the room is free. */
static void reopen(struct notices *n)
{
    if (n->closed && n->waiting <= PW_NOTIFY_ROOM / 2) {
        n->closed = false;
        PtlPTEnable(n->rail->ni, n->pt);
    }
}

static void drop(struct notices *n, struct notice *one)
{
    one->next = n->free;
    n->free = one;
    n->waiting--;
    reopen(n);
}

void notices_forget(struct pw_rma_region *region)
{
    struct notices *n = region->rail->notices;
    pthread_mutex_lock(&n->queue.lock);
    tdelete(region, &n->regions, by_bits);
    while (region->oldest != NULL) {
        struct notice *one = region->oldest;
        region->oldest = one->next;
        drop(n, one);
    }
    pthread_mutex_unlock(&n->queue.lock);
}

/* ---- Events ---- */

static void file(struct notices *n, struct pw_rma_region *region, const ptl_event_t *event)
{
    struct notice *one = n->free;
    if (one != NULL) {
        n->free = one->next;
    } else {
        one = &n->pool[n->used++];
    }
    *one = (struct notice){.is = {.source = event->initiator,
                                  .tag = (uint32_t)(event->match_bits & PW_NOTIFY_TAG_MAX),
                                  .get = event->type == PTL_EVENT_GET,
                                  .offset = event->remote_offset,
                                  .length = event->mlength}};
    KILL_POINT("rma-notice");
    *region->newest = one;
    region->newest = &one->next;
    n->waiting++;
}

static void take(void *owner, const ptl_event_t *event)
{
    struct notices *n = owner;
    /* The tree is by the bits of regions, of which the shift leaves those that a message has. */
    struct pw_rma_region wanted = {.bits = event->match_bits >> (TAG_BITS - ENTRY_BITS) &
                                           ~(ptl_match_bits_t)((1u << ENTRY_BITS) - 1)};
    pthread_mutex_lock(&n->queue.lock);
    if (event->type == PTL_EVENT_PT_DISABLED) {
        n->closed = true;
        reopen(n);
    } else if (event->ni_fail_type == PTL_NI_OK &&
               (event->type == PTL_EVENT_PUT || event->type == PTL_EVENT_GET)) {
        struct pw_rma_region **found = tfind(&wanted, &n->regions, by_bits);
        if (found != NULL) {
            file(n, *found, event);
        }
    }
    pthread_mutex_unlock(&n->queue.lock);
}

int notices_look(struct rail *rail, ptl_time_t wait)
{
    struct notices *n = rail->notices;
    int any = -EAGAIN;
    for (;;) {
        if (n->waiting >= PW_NOTIFY_ROOM) {
            return -ENOBUFS;
        }
        int rc = queue_event(&n->queue, any == 0 ? 0 : wait, take, n);
        if (rc != 0) {
            return rc == -EAGAIN ? any : rc;
        }
        any = 0;
    }
}

static bool fits(const struct pw_notice *wanted, const struct pw_notice *is, bool logical)
{
    const ptl_process_t *w = &wanted->source, *s = &is->source;
    bool source = logical ? w->rank == PTL_RANK_ANY || w->rank == s->rank
                          : (w->phys.nid == PTL_NID_ANY || w->phys.nid == s->phys.nid) &&
                                (w->phys.pid == PTL_PID_ANY || w->phys.pid == s->phys.pid);
    return source && (wanted->tag == PW_NOTIFY_TAG_ANY || wanted->tag == is->tag);
}

bool notices_take(struct pw_rma_region *region, const struct pw_notice *wanted,
                  struct pw_notice *found)
{
    for (struct notice **at = &region->oldest; *at != NULL; at = &(*at)->next) {
        struct notice *one = *at;
        if (fits(wanted, &one->is, region->rma->logical)) {
            *found = one->is;
            *at = one->next;
            if (one->next == NULL) {
                region->newest = at;
            }
            drop(region->rail->notices, one);
            KILL_POINT("rma-noticed");
            return true;
        }
    }
    return false;
}
