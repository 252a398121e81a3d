/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers send: puts from their own memory, which is copied unless it leaves at once,
 * and from the memory of their entry, as if the host had sent it.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <errno.h>
#include <stdlib.h>

static int request_put(struct handler_run *run, const struct hpu_put *put, struct request *r)
{
    struct le *le = run->le;
    struct ni *ni = le->ni;
    uint32_t pt = put->pt_inherited ? le->pt_index : put->pt_index;
    *r = (struct request){
        .kind = OP_PUT,
        .origin = FROM_HANDLER,
        .memory = {put->from_host ? memory_at(le->start, put->host_offset) : (void *)put->local,
                   NULL, 0},
        .length = put->length,
        .ack = put->ack,
        .target = put->target,
        .pt_index = pt,
        .match_bits = put->match_bits,
        .remote_offset = put->remote_offset,
        .hdr_data = put->hdr_data,
        .user_ptr = put->user_ptr,
        .eq = ni->pts[le->pt_index].eq,
        .ct = le->ct,
    };
    return request_sound(ni, r, r->eq, le->ct) ? PTL_OK : PTL_ARG_INVALID;
}

/* Device memory is the handler's again when the call returns: what cannot leave
 * at once is copied. */
static int own_data(struct request *r)
{
    r->owned = malloc(r->length != 0 ? r->length : 1);
    if (r->owned == NULL) {
        return PTL_NO_SPACE;
    }
    if (memory_read(r->owned, &r->memory, r->length) != 0) {
        free(r->owned);
        return -EFAULT;
    }
    r->memory = (struct memory){r->owned, NULL, 0};
    return PTL_OK;
}

/* Looks at one byte of each page. A handler that names memory it does not have ends
 * before anything is sent. */
static bool readable(const void *base, uint64_t length)
{
    enum { PAGE = 4096 };
    uint64_t done = 0;
    char byte;
    while (done < length) {
        const char *at = (const char *)base + done;
        if (nic_copy(&byte, at, 1) != 0) {
            return false;
        }
        done += PAGE - (uintptr_t)at % PAGE;
    }
    return true;
}

/* Sends, now or later; the lock is held. */
static int send_put(struct ni *ni, const struct hpu_put *put, struct request *r)
{
    if (!put->from_host && !readable(r->memory.base, r->length)) {
        return -EFAULT;
    }
    if (!put->from_host && nic_request_now(ni, r)) {
        return PTL_OK;
    }
    int rc = put->from_host ? PTL_OK : own_data(r);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = nic_request(ni, r);
    if (rc != PTL_OK) {
        free(r->owned);
    }
    return rc;
}

/* Runs on the handler's context, without the lock. A full queue suspends a handler that puts
 * from its own memory, and with it the channel of its message. What it puts from the host is
 * enqueued all the same: that takes no memory but the operation's, of which there is a
 * limited number, so it need not wait. */
static int handler_put(struct hpu_env *env, const struct hpu_put *put)
{
    struct handler_run *run = env->owner;
    struct nic *nic = run->nic;
    struct request r;
    int64_t patience = nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000;
    nic_lock(nic);
    int64_t since = nic->now();
    while (!put->from_host && !nic_has_place(nic, FROM_HANDLER)) {
        bool patient = nic->now() - since < patience;
        nic_unlock(nic);
        if (!patient) {
            return PTL_NO_SPACE;
        }
        hpu_suspend(env);
        nic_lock(nic);
    }
    int rc = request_put(run, put, &r);
    if (rc == PTL_OK) {
        rc = send_put(run->le->ni, put, &r);
    }
    nic_unlock(nic);
    return rc;
}

const struct hpu_ops handler_ops = {.put = handler_put};
