/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP fabric: its operations.
 *
 * The socket is either `hot`, and then every poll looks at it, or armed in the epoll that
 * the NIC thread waits on. Who polls for shared memory need not pay for a look at a socket
 * where nothing happens; who sleeps is woken by it. Between the two:
 *
 *      armed ──packet: fd_event()──► hot ──COOL_NS without a packet, or arm()──► armed
 */
#include "fabric/udp/udp.h"

#include "base/log.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "fabric/iface.h"

#define RECEIVES 32        /* looks at the socket of one poll */
#define COOL_NS 10000000   /* so long nothing comes: other fabrics are not held up by looks */
#define BLOCKED_NS 5000000 /* how often a message that waits for our own side is tried */
#define NEAR_NS 200000     /* too short for a sleep */
#define PORT_TRIES 64      /* ports that the system may give us and we cannot use */
#define RTO_FIRST_NS 10000000
#define ACK_NS 30000   /* with UDP_BACK_NS, 50 us */
#define LONG_POLL 8192 /* bytes that a poll brings: more take time, which it is not blamed for */

enum checksum { CHECKSUM_AUTO, CHECKSUM_HEADER, CHECKSUM_ALL };

/* ---- opening ---- */

/* The longest packet that the interface of an address carries whole. */
static uint32_t longest_packet(uint32_t nid, int fd)
{
    struct iface face;
    struct ifreq request = {0};
    if (!iface_of(nid, &face)) {
        return SLMP_PACKET_MIN;
    }
    memcpy(request.ifr_name, face.name, sizeof(face.name));
    if (ioctl(fd, SIOCGIFMTU, &request) != 0 || request.ifr_mtu <= UDP_IP_HEADERS) {
        return 1472; /* Ethernet's */
    }
    uint32_t most = (uint32_t)request.ifr_mtu - UDP_IP_HEADERS;
    return most < SLMP_PACKET_MAX ? most : SLMP_PACKET_MAX;
}

/* The packets of a full window of one peer fit into the socket's buffer, of which the kernel
 * takes twice a packet's length for each. */
static void set_sizes(struct fabric *f)
{
    const int64_t *o = f->options->number;
    struct slmp_config *c = &f->config;
    uint32_t most = longest_packet(f->nid, f->socket.fd);
    uint32_t wanted = (uint32_t)o[OPT_UDP_PACKET];
    uint32_t fair = (uint32_t)f->socket.receive / 64;
    fair = fair < 1472 ? 1472 : fair;
    c->packet_size = wanted != 0 && wanted < most ? wanted : most < fair ? most : fair;
    c->packet_size = c->packet_size < SLMP_PACKET_MIN ? SLMP_PACKET_MIN : c->packet_size;
    c->window = 16;
    while (c->window < 256 &&
           4 * (uint64_t)c->window * c->packet_size <= (uint64_t)f->socket.receive) {
        c->window *= 2;
    }
    c->plain_window = 16;
}

static void set_config(struct fabric *f, uint64_t incarnation)
{
    struct slmp_config *c = &f->config;
    *c = slmp_defaults();
    c->mode = SLMP_OWN;
    c->ordered = true;
    c->incarnation = incarnation;
    udp_socket_secrets(c);
    c->rto_initial = RTO_FIRST_NS;
    c->ack_delay = ACK_NS;
    c->silence = f->options->number[OPT_UDP_SILENCE_MS] * 1000000;
    /* What does not leave the host is as safe as memory. */
    int64_t checksum = f->options->number[OPT_UDP_CHECKSUM];
    c->cover = checksum == CHECKSUM_ALL || (checksum == CHECKSUM_AUTO && f->nid >> 24 != 127);
    set_sizes(f);
}

/* With a key every packet is proved, and holders of the key are one principal. */
static int take_key(struct fabric *f, const struct slmp_key *given, struct slmp_key *key,
                    struct reason *why)
{
    const char *path = f->options->text[OPT_JOB_KEY_FILE];
    if (path[0] != '\0') {
        struct reason wrong;
        if (slmp_key_read(key, path, &wrong) != 0) {
            return reason_say(why, -EACCES, "%s=%s", option_table[OPT_JOB_KEY_FILE].env,
                              wrong.text);
        }
    } else if (given == NULL) {
        return 0;
    } else {
        *key = *given;
    }
    f->config.key = key;
    f->config.self = (struct slmp_address){f->nid, udp_socket_port(&f->socket)};
    f->keyed = f->open_to_all = true;
    return 0;
}

static int start_engine(struct fabric *f, const struct slmp_key *given, struct reason *why)
{
    struct slmp_upcalls up = {.context = f,
                              .opened = udp_opened,
                              .closed = udp_closed,
                              .begin = udp_begin,
                              .data = udp_data,
                              .done = udp_done,
                              .sent = udp_sent,
                              .version = udp_other_version,
                              .whose = udp_whose,
                              .busy = udp_busy};
    struct slmp_key key;
    int rc = take_key(f, given, &key, why);
    if (rc == 0) {
        f->careful = f->config.cover || f->keyed || UDP_ALWAYS_CAREFUL;
        f->engine = slmp_open(&f->config, &up);
        f->config.key = NULL; /* the engine has a copy */
        if (f->engine == NULL) {
            char text[SLMP_TEXT];
            rc = -errno;
            slmp_key_trouble(text);
            reason_say(why, rc, "cannot begin with UDP: %s", rc == -ELIBACC ? text : strerror(-rc));
        }
    }
    explicit_bzero(&key, sizeof(key));
    return rc;
}

/* Binds to the port of a PID, or to one that the system picks and that is a PID. */
static int open_socket(struct fabric *f, uint32_t wanted, struct reason *why)
{
    int buffers = (int)f->options->number[OPT_UDP_BUFFER];
    uint32_t base = (uint32_t)f->options->number[OPT_UDP_PORT_BASE];
    if (wanted > base && wanted < base + 1024) {
        return reason_say(why, -EADDRINUSE,
                          "PID %u is not free over UDP: its port is that of PID %u, see "
                          "PINWHEEL_UDP_PORT_BASE=%u",
                          wanted, wanted - base, base);
    }
    for (int i = 0; i < PORT_TRIES; i++) {
        int rc = udp_socket_open(&f->socket, f->nid, udp_port_of(f->options, wanted), buffers, why);
        if (rc == -EADDRINUSE) {
            return reason_add(why, rc, ": ask for another PID than %u or PTL_PID_ANY", wanted);
        }
        if (rc != 0) {
            return rc;
        }
        uint16_t port = udp_socket_port(&f->socket);
        f->pid = udp_pid_of(f->options, port);
        if (f->pid >= 1024 || wanted != 0) {
            return 0;
        }
        udp_socket_close(&f->socket);
    }
    return reason_say(why, -EADDRINUSE,
                      "the system gives UDP ports that are those of PIDs below 1024: change "
                      "PINWHEEL_UDP_PORT_BASE=%u",
                      base);
}

static int open_epoll(struct fabric *f)
{
    struct epoll_event event = {.events = EPOLLONESHOT};
    f->epoll_fd = forks_open(epoll_create1(EPOLL_CLOEXEC));
    return f->epoll_fd < 0 ? -errno
                           : sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->socket.fd, &event);
}

static struct keep fabrics;

/* From here on a look finds nothing, until another fabric has the memory. */
static void free_fabric(struct fabric *f, bool leaked)
{
    udp_socket_close(&f->socket);
    forks_close(f->epoll_fd);
    udp_spare_free(f);
    udp_memories_free(f);
    atomic_store_explicit(&f->hot, false, memory_order_relaxed);
    atomic_store_explicit(&f->attention, false, memory_order_relaxed);
    if (!leaked) {
        keep_put(&fabrics, f);
    }
}

static struct fabric *new_fabric(const struct fabric_setup *setup)
{
    struct fabric *f = keep_take(&fabrics, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    memset(f, 0, offsetof(struct fabric, hot));
    size_t after = offsetof(struct fabric, armed);
    memset((char *)f + after, 0, sizeof(*f) - after);
    f->nic = setup->nic;
    f->up = setup->up;
    f->options = setup->options;
    f->nid = setup->nid;
    f->packet_size = setup->packet_size;
    f->inline_max = (size_t)setup->options->number[OPT_SHM_INLINE];
    f->alone = setup->alone;
    f->epoll_fd = f->socket.fd = -1;
    f->open_to_all = setup->options->number[OPT_UDP_OPEN] != 0;
    list_init(&f->peers);
    list_init(&f->ready);
    list_init(&f->spare[0]);
    list_init(&f->spare[1]);
    list_init(&f->free_buffers);
    list_init(&f->free_pieces);
    return f;
}

static int udp_open_nic(const struct fabric_setup *setup, struct fabric **result, uint32_t *pid,
                        struct reason *why)
{
    struct fabric *f = new_fabric(setup);
    if (f == NULL) {
        return reason_say(why, -ENOMEM, "out of memory");
    }
    int rc = open_socket(f, setup->pid, why);
    if (rc == 0 && (rc = open_epoll(f)) != 0) {
        reason_say(why, rc, "cannot watch the UDP socket: %s%s", strerror(-rc), log_remedy(-rc));
    }
    if (rc != 0) {
        free_fabric(f, false);
        return rc;
    }
    f->socket.adapts = true;
    set_config(f, setup->incarnation);
    udp_learn_locals(f);
    rc = start_engine(f, setup->key, why);
    if (rc != 0) {
        free_fabric(f, false);
        return rc;
    }
    f->deadline = SLMP_NEVER;
    atomic_store_explicit(&f->hot, true, memory_order_relaxed);
    *pid = f->pid;
    *result = f;
    return 0;
}

/* Peers learn it from a packet that ends their session; who does not get it finds nobody. */
static void udp_close(struct fabric *f)
{
    int64_t now = udp_socket_now(&f->socket);
    slmp_flush(f->engine);
    udp_flush(f, now);
    LIST_EACH (struct fabric_peer, p, &f->peers, link) {
        if (p->session != NULL) {
            slmp_leave(f->engine, p->session);
        }
    }
    udp_flush(f, now);
    slmp_close(f->engine);
    bool leaked = false;
    while (!list_empty(&f->peers)) {
        struct fabric_peer *p = container_of(f->peers.next, struct fabric_peer, link);
        if (!udp_bury(p)) {
            list_remove(&p->link); /* a handler never came back: its peer is leaked, not freed */
            list_remove(&p->ready);
            leaked = true;
        }
    }
    free_fabric(f, leaked);
}

/* ---- polling ---- */

/* Goes on with the peers that have something, each once. Handlers may run without the lock
 * meanwhile, and peers come and go. */
static bool take_ready(struct fabric *f)
{
    bool moved = false;
    struct list now;
    list_init(&now);
    list_move_all(&now, &f->ready);
    for (struct fabric_peer *p; (p = LIST_POP(struct fabric_peer, &now, ready)) != NULL;) {
        moved |= udp_take(p);
        if (udp_wants_poll(p)) {
            udp_attend(p);
        }
    }
    return moved;
}

static bool bury_one(struct fabric *f)
{
    LIST_EACH (struct fabric_peer, p, &f->peers, link) {
        if (p->dying) {
            list_remove(&p->link); /* to the end, so that each has its turn */
            list_push_back(&f->peers, &p->link);
            return udp_bury(p);
        }
    }
    return false;
}

static void arm_socket(struct fabric *f, bool armed)
{
    struct epoll_event event = {.events = EPOLLONESHOT | (armed ? EPOLLIN : 0)};
    sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_MOD, f->socket.fd, &event);
    f->armed = armed;
    atomic_store_explicit(&f->hot, !armed, memory_order_relaxed);
}

/* Packets have come. Their acknowledgements may wait for an answer to ride on, or for others to
 * share one, as long as somebody will look at the clock in time: who has come back soon each
 * time. Otherwise they leave now, before the program has the news and handlers the thread. */
static void acknowledge(struct fabric *f, int64_t now)
{
    if (!udp_is_habit(&f->polls)) {
        slmp_flush(f->engine);
        udp_flush(f, now);
    }
}

/* One message alone is served, and perhaps answered, before the kernel is asked for more. */
static bool receive_all(struct fabric *f, int64_t *now, bool *moved)
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
        udp_habit_begin(&f->polls, end - *now < ACK_NS ? end : *now);
    }
    return any;
}

/* Whether nothing has come for long, and others are to be served. */
static bool may_cool(struct fabric *f, bool any, int64_t now)
{
    if (any || f->hot_until == 0) {
        f->hot_until = now + COOL_NS;
    }
    return !f->alone && now >= f->hot_until && f->deadline == SLMP_NEVER;
}

/* Does what is due; `any`: packets have come. True if anything happened for the NIC. */
static bool keep_up(struct fabric *f, int64_t now, bool any)
{
    bool moved = false;
    f->behind = false;
    if (now >= f->ask_at) {
        udp_ask_silent(f, now);
        any = true;
    }
    if (f->socket.tells) {
        udp_bury_refused(f);
    }
    if (!list_empty(&f->ready)) {
        moved |= take_ready(f);
    }
    if (f->dying != 0) {
        moved |= bury_one(f);
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

/* A program that gets something is given it at once, and what is due waits for the next poll:
 * it may answer, and acknowledgements ride on that. */
static bool udp_poll(struct fabric *f)
{
    bool moved = false, news = false;
    bool hot = atomic_load_explicit(&f->hot, memory_order_relaxed);
    int64_t now = udp_socket_now(&f->socket);
    udp_habit_end(&f->returns, now);
    udp_habit_end(&f->polls, now);
    if (f->posted != 0 || f->behind) {
        moved = keep_up(f, now, f->behind);
    }
    bool any = hot && receive_all(f, &now, &news);
    f->behind = news;
    if (!news) {
        moved |= keep_up(f, now, any);
    }
    bool attend = f->behind || !list_empty(&f->ready) || f->dying != 0;
    atomic_store_explicit(&f->attention, attend, memory_order_relaxed);
    if (hot && may_cool(f, any, now)) {
        arm_socket(f, true);
    }
    return moved || news;
}

static bool udp_peek(struct fabric *f)
{
    return atomic_load_explicit(&f->hot, memory_order_relaxed) ||
           atomic_load_explicit(&f->attention, memory_order_relaxed);
}

static int udp_fd(struct fabric *f)
{
    return f->epoll_fd;
}

static void udp_fd_event(struct fabric *f)
{
    struct epoll_event event;
    sys_epoll_wait(f->epoll_fd, &event, 1, 0);
    arm_socket(f, false);
}

/* ---- sleeping ---- */

static bool anybody_expected(struct fabric *f)
{
    LIST_EACH (struct fabric_peer, p, &f->peers, link) {
        if (udp_expects(p)) {
            return true;
        }
    }
    return false;
}

static int64_t udp_next_deadline(struct fabric *f)
{
    int64_t at = f->posted != 0 || f->behind ? udp_socket_now(&f->socket) : f->deadline;
    LIST_EACH (struct fabric_peer, p, &f->peers, link) {
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

/* Whether something can be done without anybody else. */
static bool anything_left(struct fabric *f)
{
    bool blocked = false, waits = false;
    LIST_EACH (struct fabric_peer, p, &f->peers, link) {
        unsigned state = udp_state(p);
        bool stuck = (state & RX_BLOCKED) != 0;
        if (p->dying || (!stuck && udp_wants_poll(p))) {
            return true;
        }
        blocked |= stuck && (state & RX_OURS) != 0;
        waits |= udp_unsent(p);
    }
    /* A suspended handler that waits for no peer goes on as soon as it is asked. */
    return blocked && !waits;
}

static bool udp_arm(struct fabric *f, enum bell_kind kind, uint32_t *word)
{
    slmp_flush(f->engine);
    udp_flush(f, udp_socket_now(&f->socket));
    if (f->behind || f->deadline < udp_socket_now(&f->socket) + NEAR_NS || anything_left(f)) {
        return false;
    }
    if (kind == BELL_FD) {
        f->polls = (struct udp_habit){0}; /* the polls of late were the NIC thread's */
    }
    arm_socket(f, true);
    return true;
}

static void udp_disarm(struct fabric *f, bool polled)
{
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

static void udp_report(struct fabric *f, struct fabric_report *r)
{
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
    LIST_EACH (const struct fabric_peer, p, &f->peers, link) {
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
    .open = udp_open_nic,
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
