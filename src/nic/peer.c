/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: other NICs, by address. The first request for an address, or the first contact from there,
 * makes a peer. It goes when its process does: then the operations for it end as UNDELIVERABLE, and
 * the next request makes a new one.
 *
 *   SOUGHT (no fabric peer, until its deadline) ──peer_up──► UP ──peer_down──► gone
 *        └── deadline: waiting operations end as UNDELIVERABLE; the next request seeks it anew
 *
 * A peer that is sought has two deadlines, one in case that it is not there and one in case that it
 * has answered. Both are fixed when the first request begins to wait for it, whatever the peer
 * does. The NIC remembers SOUGHT_MOST peers that it has sought in vain.
 */
#include "nic/peer.h"

#include "base/cancel.h"
#include "base/log.h"
#include "fabric/iface.h"
#include "nic/answer.h"
#include "nic/ask.h"
#include "nic/deliver.h"
#include "nic/initiate.h"
#include "nic/plain.h"
#include "nic/progress.h"
#include "nic/receive.h"
#include "nic/timed.h"

#include <stdlib.h>

#define RETRY_NS 2000000 /* between two attempts to reach a peer that is not there */

enum { SOUGHT_MOST = 256 };

static struct list *bucket(struct nic *nic, uint32_t nid, uint32_t pid)
{
    return &nic->peers[(nid * 31u + pid * 2654435761u) % PEER_BUCKETS];
}

static struct nic_peer *find(struct nic *nic, uint32_t nid, uint32_t pid)
{
    LIST_EACH(struct nic_peer, p, bucket(nic, nid, pid), link) {
        if (p->nid == nid && p->pid == pid) {
            return p;
        }
    }
    return NULL;
}

static struct nic_peer *add(struct nic *nic, uint32_t nid, uint32_t pid)
{
    struct nic_peer *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->nic = nic;
    p->nid = nid;
    p->pid = pid;
    p->self = nid == nic->nid && pid == nic->pid && nic->time == NULL;
    p->staged = p->self || !nic->fastpath;
    p->uid = p->self ? nic->uid : 0;
    p->outstanding_most = (unsigned)nic->process->options.number[OPT_OUTSTANDING];
    list_init(&p->waiting);
    list_init(&p->asks);
    list_init(&p->detached);
    list_init(&p->busy);
    list_init(&p->sought);
    list_push_back(bucket(nic, nid, pid), &p->link);
    list_push_back(&nic->all_peers, &p->all);
    return p;
}

/* Tries to reach a peer: this NIC itself by the home fabric; others also by that, unless net_only
 * forbids it; and beyond the host by the other fabric only. */
static enum fabric_connect reach(struct nic_peer *p, struct reason *why)
{
    struct nic *nic = p->nic;
    enum fabric_connect found = FABRIC_ELSEWHERE;
    if (p->self || !nic->net_only) {
        found = nic->ops->connect(nic->fabric, p->nid, p->pid, why);
    }
    bool beyond =
        found == FABRIC_LATER && nic->time == NULL && !iface_of(p->nid, &(struct iface){0});
    if (nic->net != NULL && !p->self && (found == FABRIC_ELSEWHERE || beyond)) {
        return nic->net_ops->connect(nic->net, p->nid, p->pid, why);
    }
    if (found == FABRIC_ELSEWHERE) {
        return reason_say(
            why, FABRIC_NEVER,
            "PID %u takes messages over UDP only, and this process none: start both with the same "
            "PINWHEEL_FABRIC, or this one with PINWHEEL_UDP_OPEN=1",
            p->pid);
    }
    if (beyond) {
        iface_refuse_beyond(p->nid, why);
        return FABRIC_NEVER;
    }
    return found;
}

static int64_t patience(const struct nic *nic)
{
    return nic->process->options.number[OPT_CONNECT_MS] * 1000000;
}

/* Returns when a sought peer is given up. One that has answered exists, however slow it is: it has
 * until the later deadline, as long as the fabric says that contact is being made. */
static int64_t given_up_at(const struct nic_peer *p)
{
    return p->answered ? p->contact : p->deadline;
}

/* Makes one attempt to reach a sought peer. It logs why an attempt is hopeless, since the event
 * that the program gets cannot tell. */
static void seek(struct nic_peer *p)
{
    struct nic *nic = p->nic;
    struct reason why = {""};
    p->retry = nic->now() + RETRY_NS;
    ERRNO_KEPT;
    int cancel = cancel_off();
    enum fabric_connect found = reach(p, &why);
    cancel_back(cancel);
    p->answered = found == FABRIC_SOON;
    if (found == FABRIC_NEVER) {
        log_line(p->told ? LOG_INFO : LOG_WARN, "%s", why.text);
        p->told = true;
        p->deadline = 0;
    }
}

/* Makes every NI forget where it has found the peer. */
static void uncache(struct nic_peer *p)
{
    if (p->nic->last_peer == p) {
        p->nic->last_peer = NULL;
    }
    for (unsigned k = 0; k < NI_KINDS; k++) {
        struct ni *ni = p->nic->ni[k];
        for (uint64_t r = 0; ni != NULL && r < ni->map_size; r++) {
            if (ni->map_peers[r] == p) {
                ni->map_peers[r] = NULL;
            }
        }
    }
}

static void note_found(struct nic_peer *p)
{
    p->nic->sought_count -= !list_empty(&p->sought);
    list_remove(&p->sought);
}

static void free_peer(struct nic_peer *p)
{
    note_found(p);
    list_remove(&p->link);
    list_remove(&p->all);
    free(p);
}

void peer_let_go(struct nic_peer *p)
{
    if (p->dead && list_empty(&p->detached)) {
        free_peer(p);
    }
}

/* Notes one more peer that is sought, and forgets the oldest ones beyond SOUGHT_MOST for which no
 * operation waits. */
static void seek_another(struct nic_peer *p)
{
    struct nic *nic = p->nic;
    list_push_back(&nic->sought, &p->sought);
    nic->sought_count++;
    for (struct list *l = nic->sought.next; nic->sought_count > SOUGHT_MOST && l != &nic->sought;) {
        struct nic_peer *old = container_of(l, struct nic_peer, sought);
        l = l->next;
        if (old != p && peer_nothing_waits(old)) {
            uncache(old);
            free_peer(old);
        }
    }
}

struct nic_peer *peer_get(struct nic *nic, uint32_t nid, uint32_t pid)
{
    struct nic_peer *p = find(nic, nid, pid);
    if (p == NULL) {
        p = add(nic, nid, pid);
        if (p == NULL) {
            return NULL;
        }
        if (!p->self) {
            seek_another(p);
        }
    }
    if (p->fabric == NULL && peer_nothing_waits(p)) {
        p->deadline = nic->now() + patience(nic);
        p->contact = p->deadline + nic->contact_ns;
        seek(p);
    }
    return p;
}

struct nic_peer *peer_look_up(struct ni *ni, ptl_process_t target)
{
    if (!ni_is_logical(ni)) {
        ni->nic->last_peer = peer_get(ni->nic, target.phys.nid, target.phys.pid);
        return ni->nic->last_peer;
    }
    if (target.rank >= ni->map_size) {
        return NULL;
    }
    struct nic_peer *p = ni->map_peers[target.rank];
    if (p == NULL || p->fabric == NULL) {
        p = peer_get(ni->nic, ni->map[target.rank].phys.nid, ni->map[target.rank].phys.pid);
        ni->map_peers[target.rank] = p;
    }
    return p;
}

/* Gives back the place of an operation that waited. Its origin and share are passed by themselves,
 * since the operation may have ended. */
static void give_place(struct nic *nic, enum op_origin origin, struct share *share)
{
    nic->queued_program -= origin == FROM_PROGRAM;
    if (origin == FROM_HANDLER) {
        share_give(share);
    }
}

static void fail_waiting(struct nic_peer *p)
{
    for (struct op *op; (op = LIST_POP(struct op, &p->asks, link)) != NULL;) {
        ask_give_place(op);
        op_fail(op, PTL_NI_UNDELIVERABLE);
    }
    for (struct op *op; (op = LIST_POP(struct op, &p->waiting, link)) != NULL;) {
        give_place(p->nic, op->request.origin, op->share);
        op_fail(op, PTL_NI_UNDELIVERABLE);
    }
    peer_rest(p);
}

/* Sends the operations that wait for a peer; returns whether any left. */
static bool send_waiting(struct nic_peer *p)
{
    struct nic *nic = p->nic;
    bool sent = asks_send(p);
    for (struct op *op; (op = LIST_POP(struct op, &p->waiting, link)) != NULL;) {
        enum op_origin origin = op->request.origin; /* op_send() may end the op */
        struct share *share = op->share;
        if (!op_send(op)) {
            list_insert_after(&p->waiting, &op->link);
            return sent;
        }
        give_place(nic, origin, share);
        wakeup_tell(&nic->wakeup); /* a program thread may sleep until the queue has a place */
        sent = true;
    }
    peer_rest(p);
    return sent;
}

bool peers_advance(struct nic *nic)
{
    bool moved = false;
    for (struct list *l = nic->busy.next, *next; l != &nic->busy; l = next) {
        next = l->next;
        struct nic_peer *p = container_of(l, struct nic_peer, busy);
        if (p->fabric == NULL) {
            int64_t now = nic->now();
            if (now - p->retry > patience(nic) / 4) {
                /* no thread has tried meanwhile: the process was stopped */
                p->deadline += now - p->retry;
                p->contact += now - p->retry;
            }
            if (now < given_up_at(p) && now >= p->retry) {
                seek(p);
            }
            if (p->fabric == NULL && now >= given_up_at(p)) {
                fail_waiting(p);
                moved = true;
                continue;
            }
        }
        moved |= p->fabric != NULL && send_waiting(p);
    }
    return moved;
}

int64_t peers_deadline(struct nic *nic)
{
    int64_t first = -1;
    LIST_EACH(struct nic_peer, p, &nic->busy, busy) {
        if (p->fabric == NULL && (first < 0 || p->retry < first)) {
            first = p->retry;
        }
    }
    return first;
}

static struct nic_peer *peer_up(struct nic *nic, const struct fabric_address *a,
                                struct fabric_peer *fp)
{
    struct nic_peer *p = a->dead ? NULL : find(nic, a->nid, a->pid);
    if (p != NULL && p->fabric != NULL) {
        /* The peer is an earlier incarnation that is not torn down yet: it keeps its operations,
         * but a search by address must not find it any more. */
        uncache(p);
        list_remove(&p->link);
        p = NULL;
    }
    if (p == NULL) {
        p = add(nic, a->nid, a->pid);
    }
    if (p != NULL) {
        note_found(p);
        p->uid = a->uid;
        p->fabric = fp;
        p->ops = a->ops;
    }
    if (p != NULL && a->dead) {
        /* The NIC still takes the messages that the dead peer has sent. A search by address must
         * not find it: a living process may have the address. */
        list_remove(&p->link);
    }
    return p;
}

static void peer_down(struct nic *nic, struct nic_peer *p)
{
    p->fabric = NULL;
    uncache(p);
    fail_waiting(p);
    detach_peer_down(p);
    TABLE_EACH(struct op, op, &nic->operations) {
        if (op->peer == p) {
            op_fail(op, PTL_NI_UNDELIVERABLE);
        }
    }
    list_remove(&p->link);
    p->dead = true;
    peer_let_go(p);
}

static void sent(struct nic_peer *p, struct fabric_tx *tx, enum fabric_status status)
{
    const struct message *m = (const struct message *)tx->header;
    if (m->type == MESSAGE_REPLY) {
        rx_reply_sent(tx, status);
        return;
    }
    struct op *op = container_of(tx, struct op, tx);
    op->fabric_has = false;
    if (!op->left) {
        op_left(op, (ptl_ni_fail_t)status);
    } else if (!op->expects) {
        op_end(op); /* its answer came before the fabric had let go of its buffer */
    }
}

void peers_free(struct nic *nic)
{
    for (struct nic_peer *p; (p = LIST_FIRST(struct nic_peer, &nic->all_peers, all)) != NULL;) {
        fail_waiting(p);
        free_peer(p);
    }
}

static bool expects(struct nic_peer *p)
{
    return p->outstanding != 0;
}

static bool needs(struct nic_peer *p)
{
    const struct rx *rx = p->rx[FABRIC_REQUEST];
    return p->outstanding != 0 || !peer_nothing_waits(p) || !list_empty(&p->detached) ||
           (rx != NULL && rx->ack_count != 0);
}

#define UPCALLS(short_cut)                                                                         \
    {                                                                                              \
        .peer_up = peer_up, .peer_down = peer_down, .rx_new = rx_new, .rx_free = rx_free,          \
        .rx_short = (short_cut), .rx_header = rx_header, .rx_packet = rx_packet,                   \
        .rx_done = rx_done, .sent = sent, .expects = expects, .needs = needs, .lock = nic_step_in, \
        .unlock = nic_step_out, .time_used = timed_used, .give_lock = timed_give,                  \
        .take_lock = timed_take, .happened = timed_happened, .tally = timed_tally,                 \
        .rx_early = timed_early, .rx_passes = timed_passes, .hpu_fails = timed_hpu_fails,          \
        .hpus_free = timed_hpus_free,                                                              \
    }

const struct fabric_upcalls nic_upcalls = UPCALLS(plain_short);
const struct fabric_upcalls nic_upcalls_staged = UPCALLS(staged_short);
