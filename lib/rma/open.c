/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: what the library has at each interface. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int errno_of(int ptl_code)
{
    switch (ptl_code) {
    case PTL_OK:
        return 0;
    case PTL_NO_SPACE:
    case PTL_PT_FULL:
    case PTL_LIST_TOO_LONG:
        return -ENOSPC;
    default:
        return -EINVAL;
    }
}

static int counter_open(struct rail *rail, struct counter *c)
{
    ptl_md_t all = {.start = NULL,
                    .length = PTL_SIZE_MAX,
                    .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_VOLATILE |
                               PTL_MD_EVENT_SEND_DISABLE,
                    .eq_handle = rail->queue.eq};
    int rc = PtlCTAlloc(rail->ni, &c->ct);
    all.ct_handle = c->ct;
    if (rc == PTL_OK) {
        rc = PtlMDBind(rail->ni, &all, &c->telling);
    }
    all.options |= PTL_MD_EVENT_SUCCESS_DISABLE;
    return rc != PTL_OK ? rc : PtlMDBind(rail->ni, &all, &c->quiet);
}

/* Finds out that the interface has matching: there it takes an entry, at once unlinked. */
static int rail_probe(struct rail *rail)
{
    ptl_me_t me = {.uid = rail->uid,
                   .ct_handle = PTL_CT_NONE,
                   .options = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id = rail->id};
    ptl_handle_me_t entry;
    int rc = PtlMEAppend(rail->ni, rail->pt, &me, PTL_PRIORITY_LIST, NULL, &entry);
    return rc != PTL_OK ? rc : PtlMEUnlink(entry);
}

/* Takes back what a rail has, which may not be all. */
static void rail_close(struct rail *rail)
{
    for (int i = 0; i < COUNTERS; i++) {
        struct counter *c = &rail->counters[i];
        if (c->quiet != PTL_INVALID_HANDLE) {
            PtlMDRelease(c->quiet);
        }
        if (c->telling != PTL_INVALID_HANDLE) {
            PtlMDRelease(c->telling);
        }
        if (c->ct != PTL_CT_NONE) {
            PtlCTFree(c->ct);
        }
    }
    if (rail->pt != PTL_PT_ANY) {
        PtlPTFree(rail->ni, rail->pt);
    }
    server_close(rail);
    calls_close(rail);
    probes_free(rail, true);
    notices_close(rail);
    queue_close(&rail->queue);
}

/* Opens a rail; after an error rail_close() takes back what it has. */
static int rail_open(struct rail *rail)
{
    ptl_process_t physical;
    int rc;
    rail->pt = PTL_PT_ANY;
    for (int i = 0; i < COUNTERS; i++) {
        struct counter *c = &rail->counters[i];
        c->ct = PTL_CT_NONE;
        c->quiet = c->telling = PTL_INVALID_HANDLE;
    }
    memset(&rail->id, 0, sizeof(rail->id));
    if ((rc = queue_open(&rail->queue, rail->ni, EVENTS)) != PTL_OK) {
        return rc;
    }
    if (rail->limits.max_atomic_size < LARGEST_ELEMENT ||
        rail->limits.max_fetch_atomic_size < LARGEST_ELEMENT) {
        return PTL_ARG_INVALID;
    }
    if ((rc = PtlGetId(rail->ni, &rail->id)) != PTL_OK ||
        (rc = PtlGetPhysId(rail->ni, &physical)) != PTL_OK ||
        (rc = PtlGetUid(rail->ni, &rail->uid)) != PTL_OK ||
        (rc = PtlPTAlloc(rail->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &rail->pt)) != PTL_OK ||
        (rc = rail_probe(rail)) != PTL_OK) {
        return rc;
    }
    rail->logical =
        rail->id.phys.nid != physical.phys.nid || rail->id.phys.pid != physical.phys.pid;
    if (rail->logical) {
        rail->id.phys.pid = 0; /* it has a rank, where a physical id has its nid */
    }
    for (int i = 0; i < COUNTERS && rc == PTL_OK; i++) {
        rc = counter_open(rail, &rail->counters[i]);
    }
    return rc;
}

static void rma_free(struct pw_rma *rma, unsigned rails)
{
    for (unsigned i = 0; i < rails; i++) {
        rail_close(&rma->rails[i]);
    }
    if (rma->buckets != NULL) {
        pw_firehose_fini(rma->buckets);
    }
    pthread_mutex_destroy(&rma->lazy_lock);
    pthread_mutex_destroy(&rma->lock);
    free(rma);
}

int pw_rma_open(const struct pw_rma_config *config, struct pw_rma **rma)
{
    if (config->count == 0 || config->count > PW_RMA_INTERFACES ||
        (config->flags & ~PW_RMA_ANY_USER) != 0) {
        return -EINVAL;
    }
    size_t size = sizeof(struct pw_rma) + config->count * sizeof(struct rail);
    struct pw_rma *r = aligned_alloc(64, (size + 63) / 64 * 64);
    if (r == NULL) {
        return -ENOMEM;
    }
    memset(r, 0, size);
    r->count = config->count;
    r->flags = config->flags;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->lazy_lock, NULL);
    int code = options_read(r);
    if (code == 0 && (getrandom(&r->incarnation, 8, 0) != 8 || getrandom(&r->token, 8, 0) != 8)) {
        code = -ENOMEM;
    }
    if (code != 0) {
        rma_free(r, 0);
        return code;
    }
    r->token += r->token == 0;
    /* So that a key of an earlier process matches no region, even if its incarnation begins alike.
     */
    r->first_serial = (uint32_t)r->incarnation;
    for (unsigned i = 0; i < r->count; i++) {
        struct rail *rail = &r->rails[i];
        rail->ni = config->interfaces[i];
        rail->limits = config->limits[i];
        int rc = rail_open(rail);
        r->logical = r->rails[0].logical;
        if (rc != PTL_OK || rail->logical != r->logical) {
            rma_free(r, i + 1);
            return rc != PTL_OK ? errno_of(rc) : -EINVAL;
        }
    }
    *rma = r;
    return 0;
}

int pw_rma_close(struct pw_rma *rma)
{
    pthread_mutex_lock(&rma->lock);
    bool busy = rma->regions != 0 || rma->keys != 0;
    pthread_mutex_unlock(&rma->lock);
    if (busy) {
        return -EBUSY;
    }
    pw_rma_flush_all(rma);
    while (rma->idle != NULL) { /* C4: all operations are over */
        struct pw_rma_peer *peer = rma->idle;
        rma->idle = peer->next_idle;
        peer_free(peer);
    }
    host_close(rma);
    rma_free(rma, rma->count);
    return 0;
}
