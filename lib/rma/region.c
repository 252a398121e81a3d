/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions: memory that others may access, and their keys. A region is an entry of the portal table,
 * which takes no message that does not fit (PTL_ME_NO_TRUNCATE), so the target checks bounds and
 * rights whatever an origin claims. Serial numbers are never used again: a key outlives its region
 * as a key that matches nothing.
 */
#include "inside.h"
#include "pairs.h"

#include <stdlib.h>

static int append(struct pw_rma_region *r, const ptl_me_t *me, enum entry_kind kind)
{
    struct rail *rail = r->rail;
    ptl_handlers_t handlers;
    if (kind != ENTRY_PAIRS) {
        return errno_of(PtlMEAppend(rail->ni, kind == ENTRY_NOTIFY ? notices_pt(rail) : rail->pt,
                                    me, PTL_PRIORITY_LIST, NULL, &r->entries[kind]));
    }
    int rc = pairs_handlers(rail->ni, (uint32_t)(r->bits >> ENTRY_BITS), &handlers);
    if (rc == PTL_OK) {
        rc = PtlMEAppendHandlers(rail->ni, rail->pt, me, &handlers, PTL_PRIORITY_LIST, NULL,
                                 &r->entries[kind]);
    }
    return rc == PTL_ARG_INVALID ? -EOPNOTSUPP : errno_of(rc);
}

static int region_entry(struct pw_rma_region *r, enum entry_kind kind)
{
    ptl_me_t me = {
        .start = r->start,
        .length = r->length,
        .ct_handle = PTL_CT_NONE,
        .uid = (r->rma->flags & PW_RMA_ANY_USER) != 0 ? PTL_UID_ANY : r->rail->uid,
        .options = PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                   PTL_ME_EVENT_UNLINK_DISABLE |
                   ((r->access & PW_RMA_READ) != 0 ? PTL_ME_OP_GET : 0) |
                   ((r->access & PW_RMA_WRITE) != 0 ? PTL_ME_OP_PUT : 0),
        .match_bits = entry_bits(r->bits, kind),
    };
    if (kind == ENTRY_NOTIFY) {
        me.options &= ~PTL_ME_EVENT_COMM_DISABLE;
        me.match_bits = notify_bits(r->bits);
        me.ignore_bits = PW_NOTIFY_TAG_MAX;
    }
    if (r->rma->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    } else {
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
    }
    return append(r, &me, kind);
}

/* Takes a serial number, and with it a rail; false if all are used up. */
static bool region_name(struct pw_rma_region *r)
{
    struct pw_rma *rma = r->rma;
    pthread_mutex_lock(&rma->lock);
    bool left = rma->serials < 1u << SERIAL_BITS;
    uint64_t serial = (rma->first_serial + rma->serials) & ((1u << SERIAL_BITS) - 1);
    r->rail = &rma->rails[rma->serials % rma->count];
    r->bits = (rma->incarnation >> 32) << 32 | serial << ENTRY_BITS;
    rma->serials += left;
    rma->regions += left;
    pthread_mutex_unlock(&rma->lock);
    return left;
}

/* Takes back the entries that a region has; false: a message is at work in one. */
static bool region_unlink(struct pw_rma_region *r)
{
    bool all = true;
    for (int kind = 0; kind < ENTRY_KINDS; kind++) {
        if (r->entries[kind] != PTL_INVALID_HANDLE) {
            if (PtlMEUnlink(r->entries[kind]) == PTL_IN_USE) {
                all = false;
            } else {
                KILL_POINT("rma-half-gone");
                r->entries[kind] = PTL_INVALID_HANDLE;
            }
        }
    }
    return all;
}

/* Handlers do pairs; where the interface has none, or not these, the library does. */
static int region_pairs(struct pw_rma_region *r)
{
    struct pw_rma *rma = r->rma;
    int rc = rma->most == WAY_TWO_SIDED ? -EOPNOTSUPP : region_entry(r, ENTRY_PAIRS);
    if (rc == -EOPNOTSUPP) {
        pthread_mutex_lock(&rma->lock);
        rc = server_open(rma, r->rail);
        pthread_mutex_unlock(&rma->lock);
        if (rc == 0) {
            served_begin(r);
        }
    }
    return rc;
}

/* Makes the entries that the rights ask for. */
static int region_entries(struct pw_rma_region *r)
{
    int rc = region_entry(r, ENTRY_PLAIN);
    KILL_POINT("rma-half-registered");
    if (rc == 0 && (r->access & PW_RMA_PAIRS) != 0) {
        rc = region_pairs(r);
    }
    if (rc == 0 && (r->access & PW_RMA_NOTIFY) != 0) {
        pthread_mutex_lock(&r->rma->lock);
        rc = errno_of(notices_open(r->rail));
        pthread_mutex_unlock(&r->rma->lock);
        if (rc == 0) {
            rc = notices_expect(r);
        }
        if (rc == 0 && (rc = region_entry(r, ENTRY_NOTIFY)) != 0) {
            notices_forget(r);
        }
    }
    return rc;
}

static void region_free(struct pw_rma_region *r)
{
    pthread_mutex_lock(&r->rma->lock);
    r->rma->regions--;
    pthread_mutex_unlock(&r->rma->lock);
    free(r);
}

int pw_rma_register(struct pw_rma *rma, void *start, size_t length, unsigned access,
                    struct pw_rma_region **region)
{
    return region_make(rma, start, length, access, NULL, region);
}

int region_make(struct pw_rma *rma, void *start, size_t length, unsigned access,
                const struct memory *memory, struct pw_rma_region **region)
{
    if (access == 0 || (access & ~(unsigned)ALL_ACCESS) != 0 ||
        (access & (PW_RMA_PAIRS | PW_RMA_WRITE)) == PW_RMA_PAIRS || access == PW_RMA_NOTIFY ||
        (uintptr_t)start + length < length) {
        return -EINVAL;
    }
    struct pw_rma_region *r = malloc(sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    *r = (struct pw_rma_region){.rma = rma, .start = start, .length = length, .access = access};
    r->memory.fd = -1;
    for (int kind = 0; kind < ENTRY_KINDS; kind++) {
        r->entries[kind] = PTL_INVALID_HANDLE;
    }
    if (!region_name(r)) {
        free(r);
        return -ENOSPC;
    }
    int rc = region_entries(r);
    if (rc != 0) {
        served_end(r);
        region_unlink(r); /* nobody has its key yet */
        region_free(r);
        return rc;
    }
    if (memory != NULL) {
        r->memory = *memory;
        region_share(r);
    }
    *region = r;
    return 0;
}

int pw_rma_unregister(struct pw_rma_region *region)
{
    if (notices_watched(region)) {
        return -EINVAL;
    }
    region_leave(region);
    served_end(region);
    if (!region_unlink(region)) {
        return -EBUSY;
    }
    if ((region->access & PW_RMA_NOTIFY) != 0) {
        notices_forget(region);
    }
    memory_free(&region->memory);
    region_free(region);
    return 0;
}

int pw_rma_key_pack(const struct pw_rma_region *region, void *bytes, size_t size)
{
    if (size < PW_RMA_KEY) {
        return -ERANGE;
    }
    const struct rail *rail = region->rail;
    const struct key key = {
        .incarnation = region->rma->incarnation,
        .bits = region->bits,
        .length = region->length,
        .id = rail->id,
        .rail = (uint32_t)(rail - region->rma->rails),
        .access = region->access | (region->served ? TWO_SIDED : 0),
        .logical = region->rma->logical,
        .pt = rail->pt,
        .service_pt = region->served ? server_pt(rail) : 0,
        .notify_pt = (region->access & PW_RMA_NOTIFY) != 0 ? notices_pt(rail) : 0,
        .max_atomic = (uint32_t)least(
            least(rail->limits.max_atomic_size, rail->limits.max_fetch_atomic_size), 1u << 30),
        .token = region->shared ? region->rma->token : 0,
    };
    wire_write(bytes, &key);
    return 0;
}
