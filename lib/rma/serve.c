/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's side of two-sided operations (call.h): a thread that takes messages out of buffers,
 * each an entry that is used once, does what they ask, and answers. What they ask is checked
 * against the region as the interface would. Memory of a region is touched by system calls only, so
 * that memory that is not there is an error.
 */
#include "call.h"
#include "inside.h"
#include "pairs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 200 };

struct buffer {
    ptl_handle_me_t entry;
    _Alignas(64) unsigned char bytes[sizeof(struct call_head) + CALL_MOST];
};

struct server {
    struct pw_rma *rma;
    struct rail *rail;
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    ptl_handle_md_t md, counted; /* the second one counts what has left */
    ptl_handle_ct_t ct;
    uint64_t left;
    pthread_t thread;
    bool runs, stops;
    pthread_mutex_t lock;          /* while an operation is done, and of the rest */
    struct pw_rma_region *regions; /* that it serves */
    struct buffer buffers[CALL_BUFFERS];
};

/* ---- One message ---- */

static int copy_memory(uint64_t address, void *here, size_t length, bool store)
{
    struct iovec local = {here, length}, remote = {(void *)(uintptr_t)address, length};
    pid_t self = getpid();
    ssize_t n = store ? process_vm_writev(self, &local, 1, &remote, 1, 0)
                      : process_vm_readv(self, &local, 1, &remote, 1, 0);
    return n == (ssize_t)length ? 0 : -EFAULT;
}

/* Does an operation on a region; what was there before takes the place of `data`. */
static int work(const struct pw_rma_region *r, const struct call_head *h, unsigned char *data)
{
    unsigned char target[CALL_MOST];
    unsigned needs = h->fetches ? PW_RMA_READ | PW_RMA_WRITE : PW_RMA_WRITE;
    if ((r->access & needs) != needs) {
        return -EACCES;
    }
    if (h->offset > r->length || h->length > r->length - h->offset) {
        return -EIO;
    }
    uint64_t at = (uintptr_t)r->start + h->offset;
    int rc = copy_memory(at, target, h->length, false);
    if (rc == 0 && !pairs_do(h->call, data, target, h->length)) {
        rc = -EIO;
    }
    KILL_POINT("rma-serves");
    return rc == 0 && h->length > 0 ? copy_memory(at, target, h->length, true) : rc;
}

/* Sends an answer. The interface has its bytes when this returns: it copies a volatile message, and
 * a longer one is waited for. */
static void answer(struct server *s, ptl_process_t to, const struct call_head *h,
                   const unsigned char *values, size_t length, int code)
{
    bool waits = length > s->rail->limits.max_volatile_size;
    ptl_ct_event_t now;
    int rc;
    while ((rc = PtlPut(waits ? s->counted : s->md, (uintptr_t)values, length, PTL_NO_ACK_REQ, to,
                        h->reply_pt, 0, h->place, NULL, call_answer(h->sequence, h->slot, code))) ==
           PTL_NO_SPACE) {
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* its messages wait for others */
    }
    if (waits && rc == PTL_OK) {
        PtlCTWait(s->ct, ++s->left, &now);
    }
}

static void serve(struct server *s, const ptl_event_t *event, unsigned char *bytes)
{
    struct call_head h;
    if (!call_read(bytes, event->mlength, &h)) {
        return; /* nobody waits for an answer to that */
    }
    int rc = -ESTALE;
    unsigned char *values = bytes + sizeof(h);
    pthread_mutex_lock(&s->lock);
    for (const struct pw_rma_region *r = s->regions; r != NULL; r = r->next_served) {
        if (r->bits == h.bits && h.incarnation == s->rma->incarnation) {
            rc = work(r, &h, values);
        }
    }
    pthread_mutex_unlock(&s->lock);
    answer(s, event->initiator, &h, values, rc == 0 && h.fetches ? h.length : 0, rc);
    KILL_POINT("rma-served");
}

/* ---- The thread ---- */

static int append(struct server *s, struct buffer *b)
{
    ptl_me_t me = {.start = b->bytes,
                   .length = sizeof(b->bytes),
                   .ct_handle = PTL_CT_NONE,
                   .uid = (s->rma->flags & PW_RMA_ANY_USER) != 0 ? PTL_UID_ANY : s->rail->uid,
                   .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~UINT64_C(0)};
    if (s->rail->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    }
    return PtlMEAppend(s->rail->ni, s->pt, &me, PTL_PRIORITY_LIST, b, &b->entry);
}

/* Gives a buffer to the interface again, unless the server ends. */
static void append_again(struct server *s, struct buffer *b)
{
    pthread_mutex_lock(&s->lock);
    if (!s->stops) {
        append(s, b);
    }
    pthread_mutex_unlock(&s->lock);
}

static void take(struct server *s, const ptl_event_t *event)
{
    if (event->type == PTL_EVENT_PUT) {
        struct buffer *b = event->user_ptr;
        if (event->ni_fail_type == PTL_NI_OK) {
            serve(s, event, b->bytes);
        }
        append_again(s, b);
    } else if (event->type == PTL_EVENT_PT_DISABLED) {
        PtlPTEnable(s->rail->ni, s->pt);
    }
}

/* Ends when it is told so and all that has come is answered. */
static void *run(void *server)
{
    struct server *s = server;
    for (;;) {
        ptl_event_t event;
        unsigned which;
        int rc = PtlEQPoll(&s->eq, 1, LOOK_MS, &event, &which);
        if (rc == PTL_OK || rc == PTL_EQ_DROPPED) {
            take(s, &event);
            continue;
        }
        pthread_mutex_lock(&s->lock);
        bool stops = s->stops || rc != PTL_EQ_EMPTY;
        pthread_mutex_unlock(&s->lock);
        if (stops) {
            return NULL;
        }
    }
}

/* ---- Opening and closing ---- */

static int server_fill(struct server *s)
{
    ptl_handle_ni_t ni = s->rail->ni;
    ptl_md_t all = {.length = PTL_SIZE_MAX,
                    .options = PTL_MD_VOLATILE,
                    .eq_handle = PTL_EQ_NONE,
                    .ct_handle = PTL_CT_NONE};
    int rc = PtlEQAlloc(ni, 4 * CALL_BUFFERS, &s->eq);
    if (rc == PTL_OK) {
        rc = PtlPTAlloc(ni, PTL_PT_FLOWCTRL, s->eq, PTL_PT_ANY, &s->pt);
    }
    if (rc == PTL_OK) {
        rc = PtlMDBind(ni, &all, &s->md);
    }
    if (rc == PTL_OK) {
        rc = PtlCTAlloc(ni, &s->ct);
    }
    if (rc == PTL_OK) {
        all.options = PTL_MD_EVENT_CT_SEND;
        all.ct_handle = s->ct;
        rc = PtlMDBind(ni, &all, &s->counted);
    }
    for (int i = 0; i < CALL_BUFFERS && rc == PTL_OK; i++) {
        rc = append(s, &s->buffers[i]);
    }
    return rc;
}

static void server_free(struct server *s)
{
    for (int i = 0; i < CALL_BUFFERS; i++) {
        if (s->buffers[i].entry != PTL_INVALID_HANDLE) {
            PtlMEUnlink(s->buffers[i].entry);
        }
    }
    if (s->md != PTL_INVALID_HANDLE) {
        PtlMDRelease(s->md);
    }
    if (s->counted != PTL_INVALID_HANDLE) {
        PtlMDRelease(s->counted);
    }
    if (s->ct != PTL_CT_NONE) {
        PtlCTFree(s->ct);
    }
    if (s->pt != PTL_PT_ANY) {
        PtlPTFree(s->rail->ni, s->pt);
    }
    if (s->eq != PTL_EQ_NONE) {
        PtlEQFree(s->eq);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int server_open(struct pw_rma *rma, struct rail *rail)
{
    sigset_t all, before;
    if (rail->server != NULL) {
        return 0;
    }
    struct server *s = aligned_alloc(64, sizeof(*s));
    if (s == NULL) {
        return -ENOMEM;
    }
    memset(s, 0, sizeof(*s));
    s->rma = rma;
    s->rail = rail;
    s->eq = PTL_EQ_NONE;
    s->pt = PTL_PT_ANY;
    s->md = s->counted = PTL_INVALID_HANDLE;
    s->ct = PTL_CT_NONE;
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < CALL_BUFFERS; i++) {
        s->buffers[i].entry = PTL_INVALID_HANDLE;
    }
    int rc = errno_of(server_fill(s));
    if (rc == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        s->runs = pthread_create(&s->thread, NULL, run, s) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        rc = s->runs ? 0 : -EAGAIN;
    }
    if (rc != 0) {
        server_free(s);
        return rc;
    }
    rail->server = s;
    return 0;
}

void server_close(struct rail *rail)
{
    struct server *s = rail->server;
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < CALL_BUFFERS; i++) { /* from now on messages are refused */
        while (PtlMEUnlink(s->buffers[i].entry) == PTL_IN_USE) {
        }
        s->buffers[i].entry = PTL_INVALID_HANDLE;
    }
    pthread_join(s->thread, NULL);
    server_free(s);
    rail->server = NULL;
}

ptl_pt_index_t server_pt(const struct rail *rail)
{
    return rail->server->pt;
}

/* ---- Regions ---- */

void served_begin(struct pw_rma_region *r)
{
    struct server *s = r->rail->server;
    pthread_mutex_lock(&s->lock);
    r->next_served = s->regions;
    s->regions = r;
    r->served = true;
    pthread_mutex_unlock(&s->lock);
}

void served_end(struct pw_rma_region *r)
{
    if (r->served) {
        struct server *s = r->rail->server;
        struct pw_rma_region **at = &s->regions;
        pthread_mutex_lock(&s->lock);
        while (*at != r) {
            at = &(*at)->next_served;
        }
        *at = r->next_served;
        r->served = false;
        pthread_mutex_unlock(&s->lock);
    }
}
