/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The race between falling asleep and being woken (invariant set 1, W1 to W3), on the
 * shared-memory fabric alone: no NIC thread, no time-out that could mend a lost
 * wake-up.
 *
 *      sleeper: arm ─ sleep ─ disarm ─ poll until round i has come ─ served = i
 *      sender:  served == i - 1 ─ a random delay ─ send round i
 *
 * and the same for a sender that sleeps because it found no room, in a ring of
 * few lines, until the other one has taken something out.
 *
 *     litmus_doorbell processes|threads wakeup|room SEED COUNT
 *
 * As processes, the two use the membarrier, or fences with PINWHEEL_MEMBARRIER=0;
 * as threads (two NICs of one process) always fences. The sleeper sleeps by
 * futex or, every fourth round, in epoll. When nothing moves for a while the
 * state is printed and the test has failed.
 */
#include "../splitmix.h"
#include "base/sys.h"
#include "fabric/shm/shm.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { STILL_S = 15, OTHER = 0, SENDER = 1 };

static struct shared {
    _Atomic uint32_t nid[2], pid[2];
    _Alignas(64) _Atomic uint64_t served; /* rounds that the sleeper has seen */
    _Alignas(64) _Atomic uint64_t sent;
    _Atomic uint64_t slept;   /* rounds in which it really slept */
    _Atomic uint64_t refused; /* in which the second look found something */
} * shared;

static uint64_t seed, count;
static struct options options;

/* ---- the least that a fabric needs above it ---- */

struct end {
    struct fabric *fabric;
    struct fabric_peer *peer;
    uint64_t got; /* the payload of the last message */
};

struct message_in_progress {
    struct fabric_rx rx; /* first */
    struct end *end;
    uint64_t data;
};

static struct nic_peer *peer_up(struct nic *nic, const struct fabric_address *a,
                                struct fabric_peer *fp)
{
    struct end *e = (struct end *)nic;
    e->peer = fp;
    return (struct nic_peer *)e;
}

static void peer_down(struct nic *nic, struct nic_peer *p)
{
    ((struct end *)nic)->peer = NULL;
}

static struct fabric_rx *rx_new(struct nic_peer *p, enum fabric_class class)
{
    struct message_in_progress *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->end = (struct end *)p;
    return &m->rx;
}

static void rx_free(struct nic_peer *p, struct fabric_rx *rx)
{
    free(rx);
}

/* Everything goes the ordinary way here. */
static enum rx_step rx_short(struct nic_peer *p, struct fabric_rx *rx, const void *payload)
{
    return RX_FIRST;
}

static enum rx_step rx_header(struct nic_peer *p, struct fabric_rx *rx)
{
    struct message_in_progress *m = (struct message_in_progress *)rx;
    rx->sink = RX_DEPOSIT;
    rx->base = &m->data;
    rx->room = sizeof(m->data);
    return RX_GO;
}

static enum rx_step rx_packet(struct nic_peer *p, struct fabric_rx *rx, void *data, uint64_t offset,
                              size_t length)
{
    return RX_GO;
}

static enum rx_step rx_done(struct nic_peer *p, struct fabric_rx *rx, enum fabric_status status)
{
    struct message_in_progress *m = (struct message_in_progress *)rx;
    if (status != FABRIC_OK || m->data != m->end->got + 1) {
        fprintf(stderr, "round %llu came after %llu, with status %d\n", (unsigned long long)m->data,
                (unsigned long long)m->end->got, status);
        exit(1);
    }
    m->end->got = m->data;
    return RX_GO;
}

static void sent(struct nic_peer *p, struct fabric_tx *tx, enum fabric_status status)
{
}

static void no_lock(struct nic *nic)
{
}

static const struct fabric_upcalls upcalls = {.peer_up = peer_up,
                                              .peer_down = peer_down,
                                              .rx_new = rx_new,
                                              .rx_free = rx_free,
                                              .rx_short = rx_short,
                                              .rx_header = rx_header,
                                              .rx_packet = rx_packet,
                                              .rx_done = rx_done,
                                              .sent = sent,
                                              .lock = no_lock,
                                              .unlock = no_lock};

static void open_end(struct end *e, int who)
{
    struct reason why = {""};
    uint32_t pid;
    struct fabric_setup setup = {
        .nic = (struct nic *)e,
        .up = &upcalls,
        .options = &options,
        .nid = 0x7f000001,
        .incarnation = seed * 2 + (uint64_t)who + 1,
        .packet_size = 4096,
        .asymmetric = options.number[OPT_MEMBARRIER] != 0 && membarrier_register() == 0 &&
                      membarrier_all() == 0,
    };
    if (options.number[OPT_MEMBARRIER] != 0 && !setup.asymmetric) {
        fprintf(stderr, "this kernel has no membarrier; fences are used\n");
    }
    if (fabric_shm.open(&setup, &e->fabric, &pid, &why) != 0) {
        fprintf(stderr, "%s\n", why.text);
        exit(1);
    }
    atomic_store(&shared->nid[who], setup.nid);
    atomic_store(&shared->pid[who], pid);
}

/* Falls asleep if nothing has come, and comes back when woken. */
static void sleep_once(struct end *e, bool by_futex)
{
    uint32_t word;
    if (!fabric_shm.arm(e->fabric, by_futex ? DOORBELL_FUTEX : DOORBELL_FD, &word)) {
        atomic_fetch_add_explicit(&shared->refused, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&shared->slept, 1, memory_order_relaxed);
    if (by_futex) {
        futex_wait(fabric_shm.home->doorbell(e->fabric), word, -1);
    } else {
        struct pollfd fd = {fabric_shm.fd(e->fabric), POLLIN, 0};
        poll(&fd, 1, -1);
        fabric_shm.fd_event(e->fabric);
    }
    fabric_shm.disarm(e->fabric, true);
}

static void pause_for(uint64_t pauses)
{
    for (; pauses > 0; pauses--) {
        cpu_pause();
    }
}

/* Stores to lines that no cache has. What is stored next becomes visible only
 * after them, which is when a missing fence shows. */
static void delay_stores(uint64_t *r, int who)
{
    enum { BYTES = 32 << 20, STORES = 24 };
    static unsigned char *lines[2];
    unsigned char **mine = &lines[who];
    if (*mine == NULL) {
        *mine = malloc(BYTES);
    }
    for (unsigned i = 0; *mine != NULL && i < STORES; i++) {
        ((volatile unsigned char *)*mine)[splitmix(r) % BYTES] = 1;
    }
}

static void connect_to_other(struct end *e)
{
    struct reason why = {""};
    while (atomic_load(&shared->pid[OTHER]) == 0) {
        sched_yield();
    }
    if (fabric_shm.connect(e->fabric, atomic_load(&shared->nid[OTHER]),
                           atomic_load(&shared->pid[OTHER]), &why) != FABRIC_UP) {
        fprintf(stderr, "no connection: %s\n", why.text);
        exit(1);
    }
}

/* ---- wakeup: the receiver sleeps ---- */

static void *wakeup_receiver(void *unused)
{
    struct end e = {0};
    uint64_t r = seed;
    open_end(&e, OTHER);
    for (uint64_t last = 0; last < count; last = e.got) {
        if (last % 2 == 0) {
            delay_stores(&r, OTHER);
        }
        sleep_once(&e, last % 4 != 3);
        while (fabric_shm.poll(e.fabric)) {
        }
        atomic_store(&shared->served, e.got);
        pause_for(splitmix(&r) % 64);
    }
    fabric_shm.close(e.fabric);
    return NULL;
}

static void *wakeup_sender(void *unused)
{
    struct end e = {0};
    uint64_t r = ~seed;
    open_end(&e, SENDER);
    connect_to_other(&e);
    for (uint64_t round = 1; round <= count; round++) {
        for (unsigned n = 0; atomic_load(&shared->served) != round - 1; n++) {
            if (n % 256 == 255) {
                sched_yield();
            }
            cpu_pause();
        }
        /* Around the sleep: before the arming, in its midst, or long after. */
        pause_for(splitmix(&r) % (splitmix(&r) % 16 == 0 ? 2000 : 100));
        if (round % 2 == 0) {
            delay_stores(&r, SENDER);
        }
        struct fabric_tx tx = {.base = &round, .length = sizeof(round)};
        while (fabric_shm.send(e.peer, FABRIC_REQUEST, &tx) == FABRIC_FULL) {
            fabric_shm.poll(e.fabric);
        }
        atomic_store_explicit(&shared->sent, round, memory_order_relaxed);
    }
    while (atomic_load(&shared->served) != count) {
        sched_yield();
    }
    fabric_shm.close(e.fabric);
    return NULL;
}

/* ---- room: the sender sleeps ---- */

static void *room_receiver(void *unused)
{
    struct end e = {0};
    uint64_t r = seed;
    open_end(&e, OTHER);
    for (uint64_t last = 0; last < count; last = e.got) {
        /* A full ring, then the moment at which the sender finds it so. */
        uint64_t full = last + (uint64_t)options.number[OPT_SHM_RING] - 1;
        for (unsigned n = 0; atomic_load(&shared->sent) < (full < count ? full : count); n++) {
            if (n % 256 == 255) {
                fabric_shm.poll(e.fabric); /* to be found, at the start */
                sched_yield();
            }
            cpu_pause();
        }
        if (last % 2 == 0) {
            delay_stores(&r, OTHER);
        }
        pause_for(splitmix(&r) % (splitmix(&r) % 16 == 0 ? 2000 : 20));
        fabric_shm.poll(e.fabric);
        atomic_store(&shared->served, e.got);
    }
    fabric_shm.close(e.fabric);
    return NULL;
}

static void *room_sender(void *unused)
{
    struct end e = {0};
    uint64_t r = ~seed;
    open_end(&e, SENDER);
    connect_to_other(&e);
    for (uint64_t round = 1; round <= count; round++) {
        if (splitmix(&r) % 4 == 0) {
            delay_stores(&r, SENDER);
        }
        struct fabric_tx tx = {.base = &round, .length = sizeof(round)};
        while (fabric_shm.send(e.peer, FABRIC_REQUEST, &tx) == FABRIC_FULL) {
            sleep_once(&e, round % 4 != 0);
            fabric_shm.poll(e.fabric);
        }
        atomic_store_explicit(&shared->sent, round, memory_order_relaxed);
    }
    while (atomic_load(&shared->served) != count) {
        sched_yield();
    }
    fabric_shm.close(e.fabric);
    return NULL;
}

typedef void *thread_body(void *);
static thread_body *body[2];

/* ---- the watch ---- */

static void print_segment(int who, const char *name)
{
    struct reason why = {""};
    struct segment *s;
    if (segment_open(&options, atomic_load(&shared->nid[who]), atomic_load(&shared->pid[who]), &s,
                     &why) != 0) {
        fprintf(stderr, "%s: %s\n", name, why.text);
        return;
    }
    uint32_t doorbell = atomic_load(&s->header->doorbell);
    struct slot *slot = segment_slot(s, 0);
    fprintf(stderr, "%s: doorbell 0x%08x: state %u, %s, generation %u; bitmap 0x%llx\n", name,
            doorbell, doorbell & DOORBELL_STATE,
            (doorbell & DOORBELL_RUNG) != 0 ? "rung" : "not rung", doorbell / DOORBELL_GENERATION,
            (unsigned long long)atomic_load(&s->header->bitmap[0]));
    if (slot != NULL) {
        const struct channel_index *c = &slot->channel[FABRIC_REQUEST];
        uint64_t head = atomic_load(&c->head);
        const struct record *next =
            (const struct record *)(slot_ring(slot, FABRIC_REQUEST, s->info.ring_lines) +
                                    (head & (s->info.ring_lines - 1)) * RECORD_LINE);
        fprintf(stderr, "    slot 0: ready %u, head %llu, next word 0x%08x, want %u\n",
                atomic_load(&slot->ready), (unsigned long long)head, atomic_load(&next->word),
                atomic_load(&c->want));
    }
}

static void print_state(void)
{
    fprintf(stderr, "nothing moves: %llu sent, %llu served, %llu sleeps\n",
            (unsigned long long)atomic_load(&shared->sent),
            (unsigned long long)atomic_load(&shared->served),
            (unsigned long long)atomic_load(&shared->slept));
    print_segment(OTHER, "receiver");
    print_segment(SENDER, "sender");
}

static int slow(void)
{
    const char *text = getenv("PTEST_SLOWDOWN");
    return text != NULL && atoi(text) > 0 ? atoi(text) : 1;
}

/* Looks now and then whether rounds go by; true once `over` says so. */
static bool watch(bool (*over)(void))
{
    uint64_t before = 0;
    int still = 0;
    while (!over()) {
        usleep(10000);
        uint64_t now = atomic_load(&shared->served);
        still = now == before ? still + 1 : 0;
        before = now;
        if (still > STILL_S * 100 * slow()) {
            print_state();
            return false;
        }
    }
    return true;
}

static pid_t child[2];
static bool child_failed;

static bool children_over(void)
{
    int status;
    for (int i = 0; i < 2; i++) {
        if (child[i] > 0 && waitpid(child[i], &status, WNOHANG) == child[i]) {
            child[i] = 0;
            child_failed |= status != 0;
        }
    }
    return child_failed || (child[0] == 0 && child[1] == 0);
}

static bool as_processes(void)
{
    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body[i](NULL);
            exit(0);
        }
    }
    bool good = watch(children_over);
    for (int i = 0; i < 2; i++) {
        if (child[i] > 0) {
            kill(child[i], SIGKILL);
            waitpid(child[i], NULL, 0);
        }
    }
    return good && !child_failed;
}

static bool rounds_over(void)
{
    return atomic_load(&shared->served) == count;
}

static bool as_threads(void)
{
    pthread_t thread[2];
    if (pthread_create(&thread[OTHER], NULL, body[OTHER], NULL) != 0 ||
        pthread_create(&thread[SENDER], NULL, body[SENDER], NULL) != 0) {
        perror("pthread_create");
        return false;
    }
    if (!watch(rounds_over)) {
        return false;
    }
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return true;
}

int main(int argc, char **argv)
{
    struct reason why;
    if (argc != 5) {
        fprintf(stderr, "usage: %s processes|threads wakeup|room SEED COUNT\n", argv[0]);
        return 2;
    }
    bool room = strcmp(argv[2], "room") == 0;
    body[OTHER] = room ? room_receiver : wakeup_receiver;
    body[SENDER] = room ? room_sender : wakeup_sender;
    seed = strtoull(argv[3], NULL, 10);
    count = strtoull(argv[4], NULL, 10);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || options_load(&options, why.text, sizeof(why.text)) != 0) {
        fprintf(stderr, "%s\n", shared == MAP_FAILED ? "no shared page" : why.text);
        return 2;
    }
    bool good = strcmp(argv[1], "threads") == 0 ? as_threads() : as_processes();
    printf("%s %s, %s: seed %llu, %llu rounds, %llu sleeps, %llu refused by the second look\n",
           good ? "ok    " : "FAILED", argv[1], argv[2], (unsigned long long)seed,
           (unsigned long long)atomic_load(&shared->served),
           (unsigned long long)atomic_load(&shared->slept),
           (unsigned long long)atomic_load(&shared->refused));
    return !good;
}
