/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys and the peers that they are of. A peer is there while it has a key, and after that until all
 * of its operations are over.
 */
#include "inside.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_incarnation(const void *a, const void *b)
{
    uint64_t x = ((const struct pw_rma_peer *)a)->incarnation;
    uint64_t y = ((const struct pw_rma_peer *)b)->incarnation;
    return x < y ? -1 : x > y;
}

static bool peer_is_over(const struct pw_rma_peer *peer)
{
    bool over = true;
    for (unsigned i = 0; i < peer->rma->count; i++) {
        over &= counter_is_over(&peer->rma->rails[i].counters[peer->number % COUNTERS]);
        over &= atomic_load(&peer->calls[i]) == 0;
    }
    return over;
}

void peer_free(struct pw_rma_peer *peer)
{
    peer->rma->directs += atomic_load(&peer->directs);
    meet_end(peer);
    free(peer);
}

void peers_reap(struct pw_rma *rma)
{
    for (int n = 0; n < 2 && rma->idle != NULL && peer_is_over(rma->idle); n++) {
        struct pw_rma_peer *peer = rma->idle;
        rma->idle = peer->next_idle;
        peer_free(peer);
    }
}

/* Finds a peer, or makes it; NULL: no memory. The caller has rma->lock. */
static struct pw_rma_peer *peer_get(struct pw_rma *rma, uint64_t incarnation)
{
    struct pw_rma_peer wanted = {.incarnation = incarnation};
    struct pw_rma_peer **found = tfind(&wanted, &rma->peers, by_incarnation);
    if (found != NULL) {
        return *found;
    }
    struct pw_rma_peer *peer = aligned_alloc(64, sizeof(*peer));
    if (peer == NULL) {
        return NULL;
    }
    memset(peer, 0, sizeof(*peer));
    peer->incarnation = incarnation;
    peer->rma = rma;
    peer->number = rma->peers_made;
    if (tsearch(peer, &rma->peers, by_incarnation) == NULL) {
        free(peer);
        return NULL;
    }
    rma->peers_made++;
    return peer;
}

int pw_rma_key_open(struct pw_rma *rma, const void *bytes, size_t size, struct pw_rma_key **key)
{
    struct key is;
    int rc = wire_read(bytes, size, &is);
    if (rc != 0) {
        return rc;
    }
    if (is.rail >= rma->count || is.logical != rma->logical) {
        return -ENXIO;
    }
    struct pw_rma_key *k = malloc(sizeof(*k));
    if (k == NULL) {
        return -ENOMEM;
    }
    pthread_mutex_lock(&rma->lock);
    KILL_POINT("rma-key");
    peers_reap(rma);
    struct pw_rma_peer *peer = peer_get(rma, is.incarnation);
    if (peer != NULL) {
        peer->keys++;
        rma->keys++;
    }
    pthread_mutex_unlock(&rma->lock);
    if (peer == NULL) {
        free(k);
        return -ENOMEM;
    }
    struct rail *rail = &rma->rails[is.rail];
    *k = (struct pw_rma_key){.is = is,
                             .peer = peer,
                             .rail = rail,
                             .counter = &rail->counters[peer->number % COUNTERS],
                             .most = rma->most};
    *key = k;
    return 0;
}

void pw_rma_key_close(struct pw_rma_key *key)
{
    struct pw_rma_peer *peer = key->peer;
    struct pw_rma *rma = peer->rma;
    pthread_mutex_lock(&rma->lock);
    meet_leave(key);
    rma->keys--;
    if (--peer->keys == 0) {
        tdelete(peer, &rma->peers, by_incarnation);
        peer->next_idle = rma->idle;
        rma->idle = peer;
    }
    peers_reap(rma);
    pthread_mutex_unlock(&rma->lock);
    free(key);
}

uint64_t pw_rma_key_length(const struct pw_rma_key *key)
{
    return key->is.length;
}

unsigned pw_rma_key_access(const struct pw_rma_key *key)
{
    return key->is.access & ALL_ACCESS;
}

struct pw_rma_peer *pw_rma_key_peer(const struct pw_rma_key *key)
{
    return key->peer;
}
