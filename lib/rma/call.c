/* SPDX-License-Identifier: BSD-3-Clause */
/* The origin's side of two-sided operations (call.h). */
#include "call.h"
#include "inside.h"
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

enum state { FREE, FILLING, WAITS };
enum { ACK = 1, ANSWER = 2 }; /* what a call waits for */

struct slot {
    _Alignas(64) unsigned char asks[sizeof(struct call_head) + CALL_MOST];
    unsigned char comes[CALL_MOST];
    _Atomic enum state state;
    _Atomic unsigned left; /* ACK, ANSWER */
    atomic_bool ended;
    _Atomic uint32_t sequence;
    uint64_t since; /* the number of the call */
    /* of the operation's key, which may be closed */
    ptl_process_t target;
    struct pw_rma_peer *peer;
    struct counter *counter;
    uint32_t rail;
    struct request *request;
    void *result;
    size_t length;
};

struct calls {
    struct rail *rail;
    ptl_pt_index_t pt;
    ptl_handle_me_t entry;
    _Atomic uint64_t made;
    struct probe *probe; /* of the oldest slot's target, or NULL */
    atomic_bool asking;
    struct slot slots[CALL_SLOTS];
};

/* ---- Opening ---- */

static int calls_fill(struct calls *c)
{
    struct rail *rail = c->rail;
    ptl_me_t me = {.start = c->slots,
                   .length = sizeof(c->slots),
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~UINT64_C(0)};
    if (rail->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    }
    int rc = PtlPTAlloc(rail->ni, 0, rail->queue.eq, PTL_PT_ANY, &c->pt);
    return rc != PTL_OK ? rc
                        : PtlMEAppend(rail->ni, c->pt, &me, PTL_PRIORITY_LIST, NULL, &c->entry);
}

/* Makes a rail's slots, if it has none; 0 or a negative errno. */
static int calls_open(struct pw_rma *rma, struct rail *rail)
{
    int rc = 0;
    pthread_mutex_lock(&rma->lock);
    if (rail->calls == NULL) {
        struct calls *c = aligned_alloc(64, sizeof(*c));
        if (c == NULL) {
            rc = -ENOMEM;
        } else {
            memset(c, 0, sizeof(*c));
            c->rail = rail;
            c->pt = PTL_PT_ANY;
            c->entry = PTL_INVALID_HANDLE;
            rail->calls = c;
            if ((rc = errno_of(calls_fill(c))) != 0) {
                calls_close(rail);
            }
        }
    }
    pthread_mutex_unlock(&rma->lock);
    return rc;
}

void calls_close(struct rail *rail)
{
    struct calls *c = rail->calls;
    if (c == NULL) {
        return;
    }
    if (c->entry != PTL_INVALID_HANDLE) {
        while (PtlMEUnlink(c->entry) == PTL_IN_USE) {
        }
    }
    if (c->pt != PTL_PT_ANY) {
        PtlPTFree(rail->ni, c->pt);
    }
    if (c->probe != NULL) {
        probe_leave(rail, c->probe);
    }
    free(c);
    rail->calls = NULL;
}

/* ---- Ends ---- */

/* Notes that a part of a call is over. */
static void part_over(struct slot *s, unsigned part)
{
    if ((atomic_fetch_and(&s->left, ~part) & ~part) == 0) {
        atomic_fetch_add(&s->sequence, 1);
        atomic_store(&s->state, FREE);
    }
}

/* Ends a call (D1). */
static void call_over(struct slot *s, int code)
{
    if (atomic_exchange(&s->ended, true)) {
        return;
    }
    struct pw_rma_peer *peer = s->peer;
    uint32_t rail = s->rail;
    if (code != 0) {
        error_note(s->request, peer, code);
    } else if (s->result != NULL) {
        memcpy(s->result, s->comes, s->length);
    }
    if (s->request != NULL) {
        atomic_fetch_sub(&s->request->parts, 1);
    }
    part_over(s, ANSWER);
    atomic_fetch_sub(&peer->calls[rail], 1);
}

static bool is_from(const struct slot *s, ptl_process_t from, bool logical)
{
    return logical ? from.rank == s->target.rank
                   : from.phys.nid == s->target.phys.nid && from.phys.pid == s->target.phys.pid;
}

void call_answered(struct rail *rail, const ptl_event_t *event)
{
    unsigned number = (unsigned)(event->hdr_data >> 16 & 0xffff);
    int code = -(int)(event->hdr_data & 0xffff);
    if (rail->calls == NULL || number >= CALL_SLOTS) {
        return;
    }
    struct slot *s = &rail->calls->slots[number];
    if (atomic_load(&s->state) == WAITS &&
        atomic_load(&s->sequence) == (uint32_t)(event->hdr_data >> 32) &&
        is_from(s, event->initiator, rail->logical) &&
        (code != 0 || event->mlength == (s->result != NULL ? s->length : 0))) {
        KILL_POINT("rma-answered");
        call_over(s, code);
    }
}

struct counter *call_told(void *slot, int code)
{
    struct slot *s = slot;
    struct counter *counter = s->counter;
    if (code != 0) {
        call_over(s, code);
    }
    part_over(s, ACK);
    return counter;
}

/* Ends all calls to a process that has ended. */
static void target_ended(struct calls *c, ptl_process_t id)
{
    for (int i = 0; i < CALL_SLOTS; i++) {
        struct slot *s = &c->slots[i];
        if (atomic_load(&s->state) == WAITS && is_from(s, id, c->rail->logical)) {
            call_over(s, -EPIPE);
        }
    }
}

static const struct slot *oldest_of(const struct calls *c)
{
    const struct slot *oldest = NULL;
    for (int i = 0; i < CALL_SLOTS; i++) {
        const struct slot *s = &c->slots[i];
        if (atomic_load(&s->state) == WAITS && !atomic_load(&s->ended) &&
            (oldest == NULL || s->since < oldest->since)) {
            oldest = s;
        }
    }
    return oldest;
}

/* Asks whether the target of the oldest call is there (D3). */
void calls_ask(struct rail *rail)
{
    struct calls *c = rail->calls;
    if (c == NULL || atomic_exchange(&c->asking, true)) {
        return; /* another thread is at it */
    }
    const struct slot *s = oldest_of(c);
    if (c->probe == NULL && s != NULL) {
        c->probe = probe_make(rail, s->target);
        if (c->probe != NULL) {
            probe_begin(c->probe);
        }
    } else if (c->probe != NULL) {
        bool ended;
        if (probe_over(c->probe, &ended)) {
            if (ended) {
                target_ended(c, probe_target(c->probe));
            }
            probe_leave(rail, c->probe);
            c->probe = NULL;
        }
    }
    atomic_store(&c->asking, false);
}

int calls_wait(struct pw_rma_peer *peer, unsigned rail)
{
    int rc = 0;
    while (rc == 0 && atomic_load(&peer->calls[rail]) != 0) {
        rc = rail_event(&peer->rma->rails[rail]);
    }
    return rc;
}

int calls_wait_all(struct rail *rail)
{
    int rc = 0;
    for (int i = 0; rail->calls != NULL && i < CALL_SLOTS; i++) {
        while (rc == 0 && atomic_load(&rail->calls->slots[i].state) != FREE) {
            rc = rail_event(rail);
        }
    }
    return rc;
}

/* ---- Beginning ---- */

static struct slot *slot_take(struct calls *c, int *rc)
{
    for (*rc = 0; *rc == 0;) {
        for (int i = 0; i < CALL_SLOTS; i++) {
            enum state free = FREE;
            if (atomic_compare_exchange_strong(&c->slots[i].state, &free, FILLING)) {
                return &c->slots[i];
            }
        }
        *rc = rail_event(c->rail);
    }
    return NULL;
}

/* Writes what is asked into a slot. */
static void slot_fill(struct calls *c, struct slot *s, const struct atomic *a, uint64_t at,
                      size_t n)
{
    const struct pw_rma_key *key = a->o.key;
    const struct call_head head = {
        .magic = CALL_MAGIC,
        .version = CALL_VERSION,
        .slot = (uint16_t)(s - c->slots),
        .sequence = atomic_load(&s->sequence),
        .reply_pt = c->pt,
        .incarnation = key->is.incarnation,
        .bits = key->is.bits,
        .offset = a->offset + at,
        .call = pairs_call(a->op, a->type),
        .place = (uint64_t)(s->comes - (unsigned char *)c->slots),
        .length = (uint32_t)n,
        .fetches = a->result != NULL,
    };
    s->since = atomic_fetch_add(&c->made, 1);
    s->target = key->is.id;
    s->peer = key->peer;
    s->counter = key->counter;
    s->rail = key->is.rail;
    s->request = a->o.request;
    s->result = a->result != NULL ? (char *)a->result + at : NULL;
    s->length = n;
    memcpy(s->asks, &head, sizeof(head));
    if (a->op == PW_RMA_NO_OP) {
        memset(s->asks + sizeof(head), 0, n);
    } else {
        memcpy(s->asks + sizeof(head), (const char *)a->from + at, n);
    }
}

static int call_one(struct atomic *a, uint64_t at, size_t n)
{
    struct pw_rma_key *key = a->o.key;
    struct calls *c = key->rail->calls;
    int rc;
    struct slot *s = slot_take(c, &rc);
    if (s == NULL) {
        return rc;
    }
    slot_fill(c, s, a, at, n);
    atomic_fetch_add(&key->peer->calls[key->is.rail], 1);
    if (s->request != NULL) {
        atomic_fetch_add(&s->request->parts, 1);
    }
    atomic_store(&s->left, ACK | ANSWER);
    atomic_store(&s->ended, false);
    atomic_store(&s->state, WAITS);
    struct operation o = {
        .key = key, .user_ptr = (char *)s + USER_CALL, .md = key->counter->telling, .tells = true};
    rc = operation_message(&o);
    if (rc == 0) {
        atomic_went(&o);
        KILL_POINT("rma-calls");
        int sent = PtlPut(o.md, (uintptr_t)s->asks, sizeof(struct call_head) + n, PTL_ACK_REQ,
                          key->is.id, key->is.service_pt, 0, 0, o.user_ptr, 0);
        operation_sent(&o, sent, false);
        if (sent == PTL_OK) {
            return 0;
        }
    }
    call_told(s, rc != 0 ? rc : -ENOMEM);
    return rc;
}

int call_send(struct atomic *a, size_t length, size_t element)
{
    struct pw_rma_key *key = a->o.key;
    size_t most = CALL_MOST / element * element;
    int rc = calls_open(key->peer->rma, key->rail);
    for (size_t at = 0, n = 0; at < length && rc == 0; at += n) {
        n = least(length - at, most);
        rc = call_one(a, at, n);
    }
    return rc;
}
