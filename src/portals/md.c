/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.10: memory descriptors. */
#include "portals/api.h"

#include <stdlib.h>

#define MD_COUNTS (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK)

/* What a request for an ack comes to. One that nobody would see is none, and the MD need not wait
 * for it. */
static ptl_ack_req_t ack_as(const struct md *md, ptl_ack_req_t ack)
{
    if (!ack_sound(ack, md->eq, md->ct) ||
        (ack == PTL_ACK_REQ && (md->options & PTL_MD_UNRELIABLE) != 0)) {
        return ACK_NEVER;
    }
    bool counted = ack >= PTL_CT_ACK_REQ;
    return counted && (md->options & PTL_MD_EVENT_CT_ACK) == 0 ? PTL_NO_ACK_REQ : ack;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle)
{
    struct ni *ni;
    int rc = api_ni_only(ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (md == NULL || md_handle == NULL || (md->options & ~PTL_MD_OPTIONS_MASK) != 0) {
        return PTL_ARG_INVALID;
    }
    struct eq_ref eq;
    struct ct_ref ct = {NULL, 0};
    if (!api_lock(ni, ni_handle)) {
        return PTL_ARG_INVALID;
    }
    rc = api_eq_ref(ni, md->eq_handle, &eq);
    /* Programs leave anything in ct_handle where no option refers to it. */
    if (rc == PTL_OK && api_ct_ref(ni, md->ct_handle, &ct) != PTL_OK &&
        (md->options & MD_COUNTS) != 0) {
        rc = PTL_ARG_INVALID;
    }
    struct vector vector = {NULL, 0};
    uint64_t length = md->length;
    if (rc == PTL_OK && (md->options & PTL_IOVEC) != 0) {
        rc = api_vector(ni, md->start, md->length, &vector, &length);
    }
    if (rc == PTL_OK) {
        struct md *m = table_add(&ni->mds);
        if (m == NULL) {
            free((void *)vector.parts);
            rc = PTL_NO_SPACE;
        } else {
            m->ni = ni;
            m->start = md->start;
            m->vector = vector;
            m->length = length;
            m->options = md->options;
            m->eq = eq;
            m->ct = ct;
            for (ptl_ack_req_t ack = 0; ack < ACK_REQUESTS; ack++) {
                m->ack_as[ack] = ack_as(m, ack);
            }
            *md_handle = m->slot.handle;
        }
    }
    nic_unlock(ni->nic);
    return rc;
}

int PtlMDRelease(ptl_handle_md_t md_handle)
{
    struct ni *ni;
    struct md *md;
    int rc = api_lock_object(md_handle, HANDLE_MD, &ni, &md);
    if (rc != PTL_OK) {
        return rc;
    }
    if (md->users != 0) {
        /* The last answers may be waiting at the door. */
        nic_advance(ni->nic);
        rc = md->users != 0 ? PTL_IN_USE : PTL_OK;
    }
    if (rc == PTL_OK) {
        free((void *)md->vector.parts);
        md->vector.parts = NULL;
        table_drop(&ni->mds, md);
    }
    nic_unlock(ni->nic);
    return rc;
}
