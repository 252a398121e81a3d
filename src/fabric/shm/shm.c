/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory fabric: how it is opened, armed for sleep, and closed. This file has the
 * doorbell, and the half of invariant set 1 that goes to sleep; poll.c finds messages. */
#include "fabric/shm/shm.h"

#include "base/killpoint.h"
#include "base/log.h"
#include "fabric/shm/asks.h"
#include "fabric/shm/connect.h"
#include "fabric/shm/poll.h"
#include "fabric/shm/receive.h"
#include "fabric/shm/send.h"
#include "fabric/shm/teardown.h"
#include "fabric/shm/tx_payload.h"

#include <stdio.h>
#include <string.h>

#define PROBE_NS 250000000 /* between two probes whether peers still exist */
#define BLOCKED_NS 5000000 /* between two tries of a message that waits for this process */

socklen_t doorbell_address(struct sockaddr_un *address, const struct segment_info *owner)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    int n =
        snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "pinwheel-%08x-%u-%016llx",
                 owner->nid, owner->pid, (unsigned long long)owner->incarnation);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_doorbell(struct shm_fabric *f)
{
    struct sockaddr_un address;
    socklen_t length = doorbell_address(&address, &f->segment->info);
    f->doorbell_fd = forks_open(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    f->ring_fd = forks_open(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    f->epoll_fd = forks_open(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (f->doorbell_fd < 0 || f->ring_fd < 0 || f->epoll_fd < 0 ||
        bind(f->doorbell_fd, (struct sockaddr *)&address, length) != 0) {
        return -errno;
    }
    return sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->doorbell_fd, &event);
}

static uint32_t first_cells(const int64_t *options)
{
    int64_t first = options[OPT_SHM_CELLS_FIRST];
    return (uint32_t)(first < options[OPT_SHM_CELLS] ? first : options[OPT_SHM_CELLS]);
}

static void fill_info(struct shm_fabric *f, const struct fabric_setup *setup,
                      struct segment_info *h)
{
    const int64_t *o = setup->options->number;
    h->magic = SEGMENT_MAGIC;
    h->version = SEGMENT_VERSION;
    h->header_bytes = sizeof(struct segment_header);
    h->incarnation = setup->incarnation;
    h->cookie = f->cookie;
    h->cookie_at = (uint64_t)(uintptr_t)&f->cookie;
    h->nid = setup->nid;
    h->pid = setup->pid;
    owner_describe(h);
    h->asymmetric = setup->asymmetric;
    h->own_only = setup->own_only;
    h->slots = (uint32_t)o[OPT_SHM_PEERS];
    h->ring_lines = (uint32_t)o[OPT_SHM_RING];
    h->cells = (uint32_t)o[OPT_SHM_CELLS];
    h->cells_first = first_cells(o);
    h->cell_size = (uint32_t)setup->packet_size;
    h->slot_bytes = slot_size(h->ring_lines, h->cells, h->cell_size);
    h->file_bytes = SEGMENT_SLOTS_AT + h->slots * h->slot_bytes;
}

static struct keep fabrics;

/* Makes a fabric new, or one that was closed. Fields that threads may read without the lock are
 * kept, but say that there are no peers. */
static struct shm_fabric *new_fabric(void)
{
    struct shm_fabric *f = keep_take(&fabrics, sizeof(*f));
    if (f != NULL) {
        size_t after = offsetof(struct shm_fabric, epoll_fd);
        memset(f, 0, offsetof(struct shm_fabric, header));
        memset((char *)f + after, 0, sizeof(*f) - after);
    }
    return f;
}

/* Frees a fabric. A thread that reads it without the lock finds nothing from now on, until another
 * fabric has the memory. */
static void drop_fabric(struct shm_fabric *f)
{
    atomic_store_explicit(&f->listening_count, 0, memory_order_relaxed);
    atomic_store_explicit(&f->words, 0, memory_order_relaxed);
    atomic_store_explicit(&f->attention, false, memory_order_relaxed);
    for (unsigned w = 0; w < SLOT_WORDS; w++) {
        atomic_store_explicit(&f->known[w], 0, memory_order_relaxed);
    }
    keep_put(&fabrics, f);
}

static int shm_open_nic(const struct fabric_setup *setup, struct fabric **result, uint32_t *pid,
                        struct reason *why)
{
    struct shm_fabric *f = new_fabric();
    if (f == NULL) {
        return reason_say(why, -ENOMEM, "out of memory");
    }
    f->setup = *setup;
    f->epoll_fd = f->doorbell_fd = f->ring_fd = -1;
    list_init(&f->peers);
    list_init(&f->active);
    list_init(&f->asking);
    if (sys_getrandom(&f->cookie, sizeof(f->cookie)) != sizeof(f->cookie)) {
        f->cookie = (uint64_t)clock_ns();
    }
    struct segment_info info = {0};
    fill_info(f, setup, &info);
    int rc = segment_create(setup->options, &info, &f->segment, why);
    if (rc == 0) {
        rc = open_doorbell(f);
        if (rc != 0) {
            reason_say(why, rc, "cannot make the NIC's socket: %s%s", strerror(-rc),
                       log_remedy(-rc));
            segment_release(f->segment, true);
        }
    }
    if (rc != 0) {
        forks_close(f->epoll_fd);
        forks_close(f->doorbell_fd);
        forks_close(f->ring_fd);
        drop_fabric(f);
        return rc;
    }
    atomic_store_explicit(&f->header, f->segment->header, memory_order_relaxed);
    atomic_store_explicit(&f->words, (f->segment->info.slots + 63) / 64, memory_order_relaxed);
    *pid = f->segment->info.pid;
    *result = (struct fabric *)f;
    return 0;
}

/* Ends every connection, also those that were claimed but not accepted yet. Peers learn it by
 * SLOT_LEFT, or at the latest by the closed segment. No other thread is inside any more. */
static void shm_close(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    bool leaked = false;
    atomic_fetch_or(&f->segment->header->flags, SEGMENT_CLOSED);
    accept_rest(f);
    for (struct shm_peer *p; (p = LIST_FIRST(struct shm_peer, &f->peers, link)) != NULL;) {
        peer_lost(p, NULL);
        p->broken = true; /* so that only messages in progress can still move: */
        while (peer_empty(p)) {
        }
        if (!peer_tear_down(p)) {
            /* a handler never ended: its peer is leaked, since the handler may use it */
            list_remove(&p->link);
            leaked = true;
        }
    }
    forks_close(f->epoll_fd);
    forks_close(f->doorbell_fd);
    forks_close(f->ring_fd);
    segment_release(f->segment, true);
    if (!leaked) {
        drop_fabric(f); /* otherwise the thread of that handler still uses it */
    }
}

bool shm_unsent(struct fabric_peer *peer)
{
    struct shm_peer *p = shm_peer_of(peer);
    for (struct tx_channel *t = p->tx; t < p->tx + FABRIC_CLASSES && !p->dying; t++) {
        if (t->index != NULL &&
            (tx_under_way(t) ||
             atomic_load_explicit(&t->index->head, memory_order_relaxed) != t->tail)) {
            return true;
        }
    }
    return false;
}

static bool shm_flows(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    return f->flowing != NULL && !f->flowing->dying && tx_flows(f->flowing);
}

/* Tells peers on which core a thread of this process waits, and adds the cores of theirs to
 * `others`. The core of a process that sleeps and was not rung does not count, as it needs none. */
static void shm_waits_on(struct fabric *fabric, int core, int64_t now, cpu_set_t *others)
{
    struct shm_fabric *f = shm_of(fabric);
    atomic_store_explicit(&f->segment->header->core, core_word(core, now), memory_order_relaxed);
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if (p->remote == NULL || p->same_process) {
            continue;
        }
        struct segment_header *h = p->remote->header;
        uint32_t doorbell = atomic_load_explicit(&h->doorbell, memory_order_relaxed);
        int on = core_of(atomic_load_explicit(&h->core, memory_order_relaxed), now);
        if (!doorbell_asleep(doorbell) || (doorbell & DOORBELL_RUNG) != 0) {
            CPU_SET(on, others); /* CPU_SET() ignores a number that is too large */
        }
    }
}

static int shm_fd(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    return f->epoll_fd;
}

static void shm_fd_event(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    struct epoll_event events[32];
    int n = sys_epoll_wait(f->epoll_fd, events, 32, 0);
    for (int i = 0; i < n; i++) {
        struct shm_peer *p = events[i].data.ptr;
        if (p == NULL) {
            char drop[64];
            while (sys_recvfrom(f->doorbell_fd, drop, sizeof(drop), MSG_DONTWAIT, NULL, NULL) >=
                   0) {
            }
            continue;
        }
        sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, p->pidfd, NULL);
        peer_lost(p, NULL);
    }
}

/* A message that waits may wait for a handler whose patience ends, of which no doorbell tells.
 * Peers for which a pidfd does not tell enough are probed. */
static int64_t shm_next_deadline(struct fabric *fabric)
{
    struct shm_fabric *f = shm_of(fabric);
    int64_t now = clock_ns(), deadline = -1;
    bool probe = f->put_off;
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if ((shm_rx_state(p) & RX_BLOCKED) != 0) {
            deadline = now + BLOCKED_NS;
        }
        probe |= peer_is_probed(p);
    }
    if (probe && f->next_probe <= now) {
        f->next_probe = now + PROBE_NS;
        peers_probe(f);
    }
    if (probe && (deadline < 0 || f->next_probe < deadline)) {
        deadline = f->next_probe;
    }
    return deadline;
}

static void set_doorbell(struct shm_fabric *f, uint32_t state)
{
    f->generation += DOORBELL_GENERATION;
    atomic_store_explicit(&f->segment->header->doorbell, f->generation | state,
                          memory_order_release);
}

/* The second look of invariant set 1: whether there is anything that the first look has missed. The
 * bits of blocked peers stay set, since they are tried again anyway. */
static bool anything_left(struct shm_fabric *f)
{
    uint64_t known[SLOT_WORDS] = {0};
    bool blocked = false, starved = false;
    if ((atomic_load(&f->segment->header->flags) & (SEGMENT_SWEEP | SEGMENT_ASKED)) != 0) {
        return true;
    }
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        unsigned state = shm_rx_state(p);
        bool waits = (state & RX_BLOCKED) != 0;
        if (p->in != NULL && list_empty(&p->asking) && shm_rx_asked(p)) {
            asks_attend(p); /* its sender may have been stopped before it set its bit */
            return true;
        }
        if (p->dying || shm_rx_visible(p) || (tx_pending(p) && tx_has_room(p))) {
            return true;
        }
        if (p->in != NULL && atomic_load(&p->in->ready) == SLOT_LEFT && !waits) {
            return true;
        }
        if (p->in != NULL && waits) {
            known[p->in_index / 64] |= 1ull << (p->in_index % 64);
        }
        blocked |= waits && (state & RX_OURS) != 0;
        starved |= tx_pending(p);
    }
    for (unsigned w = 0; w < f->words; w++) {
        uint64_t bits = atomic_load_explicit(&f->segment->header->bitmap[w], memory_order_acquire);
        if ((bits & ~known[w]) != 0) {
            return true;
        }
    }
    /* A suspended handler that waits for no peer can go on as soon as it is tried. */
    return blocked && !starved;
}

static bool shm_arm(struct fabric *fabric, enum doorbell_kind kind, uint32_t *word)
{
    struct shm_fabric *f = shm_of(fabric);
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if (p->in != NULL && (shm_rx_state(p) & RX_BLOCKED) == 0) {
            clear_bit(f, p->in_index);
            shm_ignore(f, p);
        }
    }
    set_doorbell(f, kind == DOORBELL_FUTEX ? DOORBELL_ASLEEP_FUTEX : DOORBELL_ASLEEP_FD);
    KILL_POINT("asleep");
    full_fence();
    if (f->setup.asymmetric) {
        membarrier_all();
    }
    if (anything_left(f)) {
        /* From here on polls look again at the rings whose bits were cleared. */
        LIST_EACH(struct shm_peer, p, &f->peers, link) {
            if (p->in != NULL) {
                set_bit(f, p->in_index);
            }
        }
        set_doorbell(f, DOORBELL_POLLED);
        return false;
    }
    *word = f->generation | (kind == DOORBELL_FUTEX ? DOORBELL_ASLEEP_FUTEX : DOORBELL_ASLEEP_FD);
    return true;
}

static void shm_disarm(struct fabric *fabric, bool polled)
{
    struct shm_fabric *f = shm_of(fabric);
    set_doorbell(f, polled ? DOORBELL_POLLED : DOORBELL_AWAKE);
}

static void *shm_stats(struct fabric *fabric)
{
    return (char *)shm_of(fabric)->segment->header + SEGMENT_HEADER_BYTES;
}

static _Atomic uint32_t *shm_doorbell(struct fabric *fabric)
{
    return &shm_of(fabric)->segment->header->doorbell;
}

static void shm_info(const struct options *o, struct fabric_info *info)
{
    uint32_t lines = (uint32_t)o->number[OPT_SHM_RING];
    info->inline_max = inline_most(o, lines);
    struct segment_info g = {
        .ring_lines = lines,
        .cells = (uint32_t)o->number[OPT_SHM_CELLS],
        .cells_first = first_cells(o->number),
        .cell_size = (uint32_t)o->number[OPT_PACKET_SIZE],
    };
    info->peer_memory = 2 * slot_first(&g);
    info->peer_memory_most = 2 * slot_size(lines, g.cells, g.cell_size);
    info->max_peers = (unsigned)o->number[OPT_SHM_PEERS];
}

static const struct fabric_home home = {
    .doorbell = shm_doorbell,
    .stats = shm_stats,
    .flows = shm_flows,
    .waits_on = shm_waits_on,
    .forget = segment_forget,
};

const struct fabric_ops fabric_shm = {
    .name = "shm",
    .open = shm_open_nic,
    .close = shm_close,
    .connect = shm_connect,
    .send = shm_send,
    .send_short = shm_send_short,
    .send_line = shm_send_line,
    .unsent = shm_unsent,
    .poll = shm_poll,
    .peek = shm_peek,
    .foresee = shm_foresee,
    .foresend = shm_foresend,
    .fd = shm_fd,
    .fd_event = shm_fd_event,
    .next_deadline = shm_next_deadline,
    .arm = shm_arm,
    .disarm = shm_disarm,
    .info = shm_info,
    .home = &home,
};
