/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.10: memory descriptors. */
#include "nic/initiate.h"
#include "portals/api.h"

#include <stdlib.h>

#define MD_COUNTS (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK)

/* Returns the kind of ack that a request from the MD needs, given the one that it asks for. If no
 * event and no counter of the MD would tell of an ack, there need be none, and the MD has no answer
 * to wait for. */
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
    int rc = api_lock_ni(__func__, ni_handle, &ni);
    if (rc != PTL_OK) {
        return rc;
    }
    if (md == NULL || md_handle == NULL || (md->options & ~PTL_MD_OPTIONS_MASK) != 0) {
        rc = api_refuse_null(__func__, "md md_handle", md, md_handle)
                 ?: api_refuse_call("PtlMDBind is refused: options 0x%x has one beyond "
                                    "PTL_MD_OPTIONS_MASK, 0x%x",
                                    md->options, PTL_MD_OPTIONS_MASK);
        return api_unlock(ni, rc);
    }
    struct eq_ref eq;
    struct ct_ref ct = {NULL, 0};
    rc = api_eq_ref(__func__, ni, md->eq_handle, &eq);
    rc = rc ?: api_ct_ref(__func__, ni, md->ct_handle, (md->options & MD_COUNTS) != 0, &ct);
    struct vector vector = {NULL, 0};
    uint64_t length = md->length;
    if (rc == PTL_OK && (md->options & PTL_IOVEC) != 0) {
        rc = api_vector(__func__, ni, md->start, md->length, &vector, &length);
    }
    if (rc == PTL_OK) {
        struct md *m = table_add(&ni->mds);
        if (m == NULL) {
            free((void *)vector.parts);
            rc = api_refuse_space(__func__, "max_mds", ni->limits.max_mds);
        } else {
            m->ni = ni;
            m->start = md->start;
            m->vector = vector;
            m->length = length;
            m->options = md->options;
            m->eq = eq;
            m->ct = ct;
            for (int ack = 0; ack < ACK_REQUESTS; ack++) {
                m->ack_as[ack] = ack_as(m, (ptl_ack_req_t)ack);
            }
            *md_handle = m->slot.handle;
        }
    }
    return api_unlock(ni, rc);
}

int PtlMDRelease(ptl_handle_md_t md_handle)
{
    struct ni *ni;
    struct md *md;
    int rc = api_lock_object(__func__, md_handle, HANDLE_MD, &ni, &md);
    if (rc != PTL_OK) {
        return rc;
    }
    if (md->users != 0) {
        /* The answers of its last operations may have come, and wait to be taken. */
        nic_advance(ni->nic);
        rc = md->users != 0 ? PTL_IN_USE : PTL_OK;
    }
    if (rc == PTL_OK) {
        free((void *)md->vector.parts);
        md->vector.parts = NULL;
        table_drop(&ni->mds, md);
    }
    return api_unlock(ni, rc);
}
