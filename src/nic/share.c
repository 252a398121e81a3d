/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of messages of handlers that wait to be sent, shared by peers and contexts; see
 * share.h. */
#include "nic/share.h"

#include <stddef.h>
#include <stdlib.h>

void shares_init(struct shares *s, unsigned limit)
{
    s->limit = limit;
    s->taken = 0;
    for (unsigned i = 0; i < SHARE_CHAINS; i++) {
        list_init(&s->chain[i]);
    }
}

static unsigned chain_of(const unsigned *peer, uint32_t context)
{
    return (unsigned)(((uintptr_t)peer / sizeof(*peer) + context) % SHARE_CHAINS);
}

static struct share *find(const struct shares *s, const unsigned *peer, uint32_t context)
{
    LIST_EACH(struct share, share, &s->chain[chain_of(peer, context)], link) {
        if (share->peer == peer && share->context == context) {
            return share;
        }
    }
    return NULL;
}

bool share_is_open(const struct shares *s, const unsigned *peer, uint32_t context)
{
    unsigned first = *peer;
    if (first == 0) {
        return true;
    }
    unsigned free = s->taken < s->limit ? s->limit - s->taken : 0;
    if (first >= free) {
        return false;
    }
    const struct share *share = find(s, peer, context);
    return share == NULL || share->taken < free - first;
}

struct share *share_take(struct shares *s, unsigned *peer, uint32_t context)
{
    struct share *share = find(s, peer, context);
    if (share == NULL) {
        share = calloc(1, sizeof(*share));
        if (share == NULL) {
            return NULL;
        }
        *share = (struct share){.of = s, .peer = peer, .context = context};
        list_push_back(&s->chain[chain_of(peer, context)], &share->link);
    }
    share->taken++;
    (*peer)++;
    s->taken++;
    return share;
}

void share_give(struct share *share)
{
    share->of->taken--;
    (*share->peer)--;
    if (--share->taken == 0) {
        list_remove(&share->link);
        free(share);
    }
}
