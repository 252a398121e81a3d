/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP fabric: its operations; open.c has those that open and close it.
 *
 * The socket is either `hot`, and each poll looks at it; or armed in the epoll that the NIC thread
 * waits on. So a thread that polls shared memory does not pay for looks at a silent socket, and a
 * sleeping NIC thread is woken by it. Between the two:
 *
 *      armed ──packet: fd_event()──► hot ──COOL_NS without a packet, or arm()──► armed
 */
#include "fabric/udp/udp.h"

#include "fabric/udp/channel.h"
#include "fabric/udp/open.h"
#include "fabric/udp/peer.h"
#include "fabric/udp/send.h"
#include "fabric/udp/stage.h"

#define RECEIVES 32 /* looks at the socket in one poll */
/* after so long without packets looks at the socket no longer hold up other fabrics */
#define COOL_NS 10000000
#define BLOCKED_NS 5000000 /* between two tries of a message that waits for this process */
#define NEAR_NS 200000     /* a shorter time is not worth a sleep */
/* bytes brought by a poll, beyond which the time it takes does not count for the program's habit */
#define LONG_POLL 8192

/* ---- polling ---- */

/* Goes on with the peers that are ready, each once. Handlers may run without the lock meanwhile,
 * and peers come and go. */
static bool take_ready(struct udp_fabric *f)
{
    bool moved = false;
    struct list now;
    list_init(&now);
    list_move_all(&now, &f->ready);
    for (struct udp_peer *p; (p = LIST_POP(struct udp_peer, &now, ready)) != NULL;) {
        moved |= udp_take(p);
        if (udp_wants_poll(p)) {
            udp_attend(p);
        }
    }
    return moved;
}

static bool tear_down_one(struct udp_fabric *f)
{
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        if (p->dying) {
            list_remove(&p->link); /* moves to the end, so that each dying peer has its turn */
            list_push_back(&f->peers, &p->link);
            return udp_tear_down(p);
        }
    }
    return false;
}

static void arm_socket(struct udp_fabric *f, bool armed)
{
    struct epoll_event event = {.events = EPOLLONESHOT | (armed ? EPOLLIN : 0)};
    sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, f->socket.fd, &event);
    f->armed = armed;
    atomic_store_explicit(&f->hot, !armed, memory_order_relaxed);
}

/* Called when packets have come. Their acknowledgements may wait, to leave with an answer or to be
 * joined, if the program has the habit of polling again soon. Otherwise they leave now, before the
 * program gets the messages and handlers take the thread. */
static void acknowledge(struct udp_fabric *f, int64_t now)
{
    if (!udp_is_habit(&f->polls)) {
        slmp_flush(f->engine);
        udp_flush(f, now);
    }
}

/* Receives packets. A single message is served, and perhaps answered, before the kernel is asked
 * for more. */
static bool receive_all(struct udp_fabric *f, int64_t *now, bool *moved)
{
    const struct slmp_counters *c = slmp_counters(f->engine);
    uint64_t before = c->bytes_in;
    bool any = false, more = true;
    for (int i = 0; i < RECEIVES && (more || !*moved) && udp_receive(f, *now, &more); i++) {
        any = true;
        acknowledge(f, *now);
        *moved |= !list_empty(&f->ready) && take_ready(f);
        *now = more ? udp_socket_now(&f->socket) : *now;
    }
    if (any) {
        int64_t end = c->bytes_in - before > LONG_POLL ? udp_socket_now(&f->socket) : *now;
        f->polls.since = end - *now < UDP_ACK_NS ? end : *now;
    }
    return any;
}

/* Whether polls may leave out the socket, as no packet has come for a long time, and the NIC has
 * another fabric to poll. */
static bool may_cool(struct udp_fabric *f, bool any, int64_t now)
{
    if (any || f->hot_until == 0) {
        f->hot_until = now + COOL_NS;
    }
    return !f->setup.alone && now >= f->hot_until && f->deadline == SLMP_NEVER;
}

/* Does the work that is due; `any`: packets have come. True if anything has happened for the
 * NIC. */
static bool keep_up(struct udp_fabric *f, int64_t now, bool any)
{
    bool moved = false;
    f->behind = false;
    if (now >= f->ask_at) {
        udp_ask_silent(f, now);
        any = true;
    }
    if (f->socket.tells) {
        udp_tear_down_refused(f);
    }
    if (!list_empty(&f->ready)) {
        moved |= take_ready(f);
    }
    if (f->dying != 0) {
        moved |= tear_down_one(f);
    }
    if (any || f->posted != 0 || f->deadline <= now) {
        slmp_advance(f->engine, now);
        f->deadline = slmp_deadline(f->engine);
    }
    if (f->posted != 0 || f->deadline <= now) {
        udp_flush(f, now);
    }
    moved |= f->moved;
    f->moved = false;
    return moved;
}

/* If messages have come, the program gets them at once, and work that is due waits for the next
 * poll: the program may answer, and acknowledgements can leave with that. */
static bool udp_poll(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    bool moved = false, came = false;
    bool hot = atomic_load_explicit(&f->hot, memory_order_relaxed);
    int64_t now = udp_socket_now(&f->socket);
    udp_habit_end(&f->returns, now);
    udp_habit_end(&f->polls, now);
    if (f->posted != 0 || f->behind) {
        moved = keep_up(f, now, f->behind);
    }
    bool any = hot && receive_all(f, &now, &came);
    f->behind = came;
    if (!came) {
        moved |= keep_up(f, now, any);
    }
    bool attend = f->behind || !list_empty(&f->ready) || f->dying != 0;
    atomic_store_explicit(&f->attention, attend, memory_order_relaxed);
    if (hot && may_cool(f, any, now)) {
        arm_socket(f, true);
    }
    return moved || came;
}

static bool udp_peek(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    return atomic_load_explicit(&f->hot, memory_order_relaxed) ||
           atomic_load_explicit(&f->attention, memory_order_relaxed);
}

static int udp_fd(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    return f->epoll_fd;
}

static void udp_fd_event(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    struct epoll_event event;
    sys_epoll_wait(f->epoll_fd, &event, 1, 0);
    arm_socket(f, false);
}

/* ---- sleeping ---- */

static bool anybody_expected(struct udp_fabric *f)
{
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        if (udp_expects(p)) {
            return true;
        }
    }
    return false;
}

static int64_t udp_next_deadline(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    int64_t at = f->posted != 0 || f->behind ? udp_socket_now(&f->socket) : f->deadline;
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        if ((udp_state(p) & RX_BLOCKED) != 0) {
            int64_t soon = udp_socket_now(&f->socket) + BLOCKED_NS;
            at = soon < at ? soon : at;
            break;
        }
    }
    if (f->ask_at < at && anybody_expected(f)) {
        at = f->ask_at;
    }
    return at == SLMP_NEVER ? -1 : at;
}

/* Whether there is work that waits for no peer. */
static bool anything_left(struct udp_fabric *f)
{
    bool blocked = false, waits = false;
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        unsigned state = udp_state(p);
        bool stuck = (state & RX_BLOCKED) != 0;
        if (p->dying || (!stuck && udp_wants_poll(p))) {
            return true;
        }
        blocked |= stuck && (state & RX_OURS) != 0;
        waits |= udp_unacknowledged(p);
    }
    /* A suspended handler that waits for no peer can go on as soon as it is tried. */
    return blocked && !waits;
}

static bool udp_arm(struct fabric *fabric, enum doorbell_kind kind, uint32_t *word)
{
    struct udp_fabric *f = udp_of(fabric);
    slmp_flush(f->engine);
    udp_flush(f, udp_socket_now(&f->socket));
    if (f->behind || f->deadline < udp_socket_now(&f->socket) + NEAR_NS || anything_left(f)) {
        return false;
    }
    if (kind == DOORBELL_FD) {
        f->polls = (struct udp_habit){0}; /* the last polls were those of the NIC thread */
    }
    arm_socket(f, true);
    return true;
}

static void udp_disarm(struct fabric *fabric, bool polled)
{
    struct udp_fabric *f = udp_of(fabric);
    if (f->armed) {
        arm_socket(f, false);
    }
}

static void udp_info(const struct options *o, struct fabric_info *info)
{
    struct slmp_config c = slmp_defaults();
    info->inline_max = (size_t)o->number[OPT_SHM_INLINE];
    info->peer_memory = 0;
    info->peer_memory_most = 0;
    info->max_peers = c.peers_max;
    info->contact_ns = o->number[OPT_UDP_SILENCE_MS] * 1000000;
}

static void udp_report(struct fabric *fabric, struct fabric_report *r)
{
    struct udp_fabric *f = udp_of(fabric);
    const struct slmp_counters *c = slmp_counters(f->engine);
    uint64_t peers = 0;
    r->packets_in = c->packets_in;
    r->packets_out = c->packets_out;
    r->resent = c->retransmitted;
    r->timeouts = c->timeouts;
    r->duplicates = c->duplicates;
    r->forged = c->forged;
    r->replayed = c->replayed;
    r->shortened = c->shortened + f->socket.narrowed;
    r->dropped = c->malformed + c->corrupt + c->version + c->stale + c->beyond + c->refused +
                 c->no_room + c->forged + c->replayed + f->foreign + f->misshapen;
    LIST_EACH(const struct udp_peer, p, &f->peers, link) {
        struct slmp_peer_info info = slmp_peer_info(f->engine, &p->at);
        if (peers < FABRIC_REPORT_PEERS) {
            r->peer[peers] = (struct fabric_peer_report){.nid = p->address.nid,
                                                         .pid = p->address.pid,
                                                         .rtt = info.rtt,
                                                         .window = info.window,
                                                         .flight = info.flight,
                                                         .resent = info.retransmitted,
                                                         .dropped = info.dropped};
        }
        peers++;
    }
    r->peers = peers;
}

const struct fabric_ops fabric_udp = {
    .name = "udp",
    .open = udp_open,
    .close = udp_close,
    .connect = udp_connect,
    .send = udp_send,
    .send_short = udp_send_short,
    .send_line = udp_send_line,
    .unsent = udp_unsent,
    .poll = udp_poll,
    .peek = udp_peek,
    .fd = udp_fd,
    .fd_event = udp_fd_event,
    .next_deadline = udp_next_deadline,
    .arm = udp_arm,
    .disarm = udp_disarm,
    .info = udp_info,
    .report = udp_report,
};
