/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers send: puts from their own memory, which is copied unless it leaves at once,
 * and from the memory of their entry, as if the host had sent it.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_NS 200000 /* that a handler waits for a peer to take something, before it copies */

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

/* Suspends the handler, with the lock let go meanwhile. */
static void rest(struct hpu_env *env, struct nic *nic)
{
    nic_unlock(nic);
    hpu_suspend(env);
    nic_lock(nic);
}

/* Whether the peer takes what is sent, though it has no room just now. */
static bool takes(struct ni *ni, const struct request *r)
{
    const struct nic_peer *peer = peer_resolve(ni, r->target);
    return peer != NULL && peer->fabric != NULL && list_empty(&peer->waiting);
}

/* Sends from the handler's memory where it lies. A stream of packets is faster held up for a
 * moment, and its sender with it, than copied into a queue. False: it is to be copied. */
static bool send_from_there(struct hpu_env *env, struct ni *ni, const struct request *r)
{
    struct nic *nic = ni->nic;
    int64_t since = 0;
    while (!nic_request_now(ni, r)) {
        int64_t now = nic->now();
        since = since == 0 ? now : since;
        if (!takes(ni, r) || now - since >= ROOM_NS) {
            return false;
        }
        rest(env, nic);
    }
    return true;
}

/* Sends, now or later; the lock is held. */
static int send_put(struct hpu_env *env, struct ni *ni, const struct hpu_put *put,
                    struct request *r)
{
    if (!put->from_host && !readable(r->memory.base, r->length)) {
        return -EFAULT;
    }
    if (!put->from_host && send_from_there(env, ni, r)) {
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

/* Waits for a place in the queue; false: in vain. */
static bool find_place(struct hpu_env *env, struct nic *nic)
{
    int64_t patience = nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000, since = 0;
    while (!nic_has_place(nic, FROM_HANDLER)) {
        int64_t now = nic->now();
        since = since == 0 ? now : since;
        if (now - since >= patience) {
            return false;
        }
        rest(env, nic);
    }
    return true;
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
    nic_lock(nic);
    int rc = PTL_NO_SPACE;
    if (put->from_host || find_place(env, nic)) {
        rc = request_put(run, put, &r);
        rc = rc == PTL_OK ? send_put(env, run->le->ni, put, &r) : rc;
    }
    nic_unlock(nic);
    return rc;
}

const struct hpu_ops handler_ops = {.put = handler_put};
