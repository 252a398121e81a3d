/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer process, and two rings of messages between it and this one; see peer.h. */
#include "peer.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 64,
    BYTES = 4096,
    KIND_FIREHOSE = 0,
    KIND_ANSWER = 100,
    SPINS = 2000,
    ALIGNED = 2 << 20
};

/* Messages to one process. Its senders take turns by `lock`. */
struct peer_ring {
    _Alignas(64) _Atomic uint64_t sent;
    _Atomic bool lock;
    _Alignas(64) _Atomic uint64_t taken;
    struct {
        uint32_t kind, length;
        unsigned char bytes[BYTES];
    } slot[SLOTS];
};

struct ask {
    uint64_t addr, len;
};

/* The last element of the ring of this process: what the peer answers to PEER_STATS. */
struct shared {
    struct peer_ring there, here;
    struct pw_firehose_stats stats;
};

uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- rings ---- */

static void ring_put(struct peer_ring *r, uint32_t kind, const void *bytes, size_t length)
{
    while (atomic_exchange_explicit(&r->lock, true, memory_order_acquire)) {
        sched_yield();
    }
    uint64_t at = atomic_load_explicit(&r->sent, memory_order_relaxed);
    while (at - atomic_load_explicit(&r->taken, memory_order_acquire) == SLOTS) {
        sched_yield();
    }
    r->slot[at % SLOTS].kind = kind;
    r->slot[at % SLOTS].length = (uint32_t)length;
    memcpy(r->slot[at % SLOTS].bytes, bytes, length);
    atomic_store_explicit(&r->sent, at + 1, memory_order_release);
    atomic_store_explicit(&r->lock, false, memory_order_release);
}

/* Takes a message; returns its length, or -1: there is none, or another thread takes it. */
static int ring_take(struct peer_ring *r, uint32_t *kind, void *bytes)
{
    static _Atomic bool busy; /* of this process, which takes from one ring only */
    uint64_t at = atomic_load_explicit(&r->taken, memory_order_relaxed);
    if (at == atomic_load_explicit(&r->sent, memory_order_acquire) ||
        atomic_exchange_explicit(&busy, true, memory_order_acquire)) {
        return -1;
    }
    int length = -1;
    at = atomic_load_explicit(&r->taken, memory_order_relaxed);
    if (at != atomic_load_explicit(&r->sent, memory_order_acquire)) {
        *kind = r->slot[at % SLOTS].kind;
        length = (int)r->slot[at % SLOTS].length;
        memcpy(bytes, r->slot[at % SLOTS].bytes, (size_t)length);
        atomic_store_explicit(&r->taken, at + 1, memory_order_release);
    }
    atomic_store_explicit(&busy, false, memory_order_release);
    return length;
}

/* ---- the client of the tables, in both processes ---- */

static int send(void *client, unsigned node, const void *bytes, size_t length)
{
    struct peer *p = client;
    ring_put(node == 1 ? p->there : p->here, KIND_FIREHOSE, bytes, length);
    return 0;
}

/* The bytes of the first region and of those that follow it in memory, whose number is *joined: one
 * call locks them all. */
static size_t join(const struct pw_firehose_region *regions, size_t count, size_t *joined)
{
    size_t length = regions[0].len;
    for (*joined = 1; *joined < count && regions[*joined].addr == regions[0].addr + length;
         ++*joined) {
        length += regions[*joined].len;
    }
    return length;
}

static void unlock(const struct pw_firehose_region *regions, size_t count)
{
    for (size_t i = 0, n; i < count; i += n) {
        size_t length = join(&regions[i], count - i, &n);
        munlock((void *)(uintptr_t)regions[i].addr, length);
    }
}

int peer_move(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
              struct pw_firehose_region *pins, size_t pin_count)
{
    unlock(unpins, unpin_count);
    for (size_t i = 0, n; i < pin_count; i += n) {
        size_t length = join(&pins[i], pin_count - i, &n);
        if (mlock((void *)(uintptr_t)pins[i].addr, length) != 0) {
            int error = -errno;
            unlock(pins, i + n); /* mlock() may have locked some of the range */
            return error;
        }
    }
    return 0;
}

/* Receives one message in this process. */
static void receive(void *client)
{
    struct peer *p = client;
    unsigned char bytes[BYTES];
    uint32_t kind;
    int length = ring_take(p->here, &kind, bytes);
    if (length >= 0 && kind == KIND_FIREHOSE) {
        pw_firehose_deliver(p->table, 1, bytes, (size_t)length);
    } else if (length >= 0) {
        memcpy(&p->answer, bytes, sizeof(p->answer));
        p->answered = true;
    }
}

static const struct pw_firehose_ops ops = {.move = peer_move, .send = send, .poll = receive};

static struct pw_firehose *open_table(struct peer *p, const struct pw_firehose_config *config,
                                      unsigned self)
{
    struct pw_firehose_config c = *config;
    struct pw_firehose *table;
    c.nodes = 2;
    c.self = self;
    c.ops = &ops;
    c.client = p;
    int rc = pw_firehose_init(&c, &table, NULL);
    if (rc != 0) {
        fprintf(stderr, "bench: no table of Firehose: %s\n", strerror(-rc));
        return NULL;
    }
    return table;
}

/* ---- the peer ---- */

static void give_up_right(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) == 0) {
        data[0].effective &= ~(1u << CAP_IPC_LOCK);
        data[0].permitted &= ~(1u << CAP_IPC_LOCK);
        syscall(SYS_capset, &head, data);
    }
}

static void answer_ask(struct peer *p, uint32_t kind, const struct ask *ask)
{
    void *at = (void *)(uintptr_t)ask->addr;
    int answer = 0;
    if (kind == PEER_STATS) {
        pw_firehose_stats(p->table, &((struct shared *)(void *)p->there)->stats);
    } else if ((kind == PEER_PIN ? mlock(at, ask->len) : munlock(at, ask->len)) != 0) {
        answer = -errno;
    }
    ring_put(p->here, KIND_ANSWER, &answer, sizeof(answer));
}

static _Noreturn void peer_main(struct peer *p)
{
    unsigned char bytes[BYTES];
    for (unsigned idle = 0;; idle++) {
        uint32_t kind;
        int length = ring_take(p->there, &kind, bytes);
        if (length < 0) {
            if (idle > SPINS) {
                sched_yield(); /* others may share the core */
            }
            __builtin_ia32_pause();
            continue;
        }
        idle = 0;
        if (kind == KIND_FIREHOSE) {
            pw_firehose_deliver(p->table, 0, bytes, (size_t)length);
        } else {
            struct ask ask;
            memcpy(&ask, bytes, sizeof(ask));
            answer_ask(p, kind, &ask);
        }
        pw_firehose_poll(p->table);
    }
}

int peer_start(struct peer *p, size_t size, const struct pw_firehose_config *config, unsigned flags)
{
    unsigned kind = MFD_CLOEXEC | ((flags & PEER_HUGE) != 0 ? MFD_HUGETLB | MFD_HUGE_2MB : 0u);
    *p = (struct peer){.size = size, .file = memfd_create("firehose", kind)};
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *room = mmap(NULL, size + ALIGNED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || room == MAP_FAILED || p->file < 0 ||
        ftruncate(p->file, (off_t)size) != 0 ||
        (p->memory = mmap(room + ALIGNED - (uintptr_t)room % ALIGNED, size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, p->file, 0)) == MAP_FAILED) {
        fprintf(stderr, "bench: no %zu bytes of memory: %s\n", size, strerror(errno));
        return -1;
    }
    memset(p->memory, 1, size);
    p->there = &shared->there;
    p->here = &shared->here;
    if (config != NULL && (p->table = open_table(p, config, 0)) == NULL) {
        return -1;
    }
    p->pid = fork();
    if (p->pid < 0) {
        fprintf(stderr, "bench: no process: %s\n", strerror(errno));
        return -1;
    }
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((flags & PEER_LIMITED) != 0) {
            give_up_right();
        }
        while (config == NULL) {
            pause();
        }
        p->table = open_table(p, config, 1);
        if (p->table == NULL) {
            _exit(1);
        }
        peer_main(p);
    }
    return 0;
}

void peer_stop(struct peer *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    if (p->table != NULL) {
        pw_firehose_peer_dead(p->table, 1);
        pw_firehose_fini(p->table);
    }
    munmap(p->memory, p->size);
    munmap(p->there, sizeof(struct shared));
    close(p->file);
}

int peer_ask(struct peer *p, enum peer_asks what, uint64_t addr, uint64_t len)
{
    struct ask ask = {addr, len};
    p->answered = false;
    ring_put(p->there, what, &ask, sizeof(ask));
    while (!p->answered) {
        receive(p);
    }
    return p->answer;
}

void peer_stats(struct peer *p, struct pw_firehose_stats *stats)
{
    peer_ask(p, PEER_STATS, 0, 0);
    *stats = ((struct shared *)(void *)p->there)->stats;
}

static void pinned(void *context, struct pw_firehose_request *request, int error, int local_hit)
{
    atomic_store((_Atomic int *)context, error == 0 ? 1 : error);
}

int peer_pin(struct peer *p, uint64_t addr, uint64_t len, struct pw_firehose_request *request)
{
    _Atomic int done = 0;
    int rc = pw_firehose_remote_pin(p->table, 1, addr, len, PW_FIREHOSE_RETURN_IF_PINNED, request,
                                    NULL, pinned, (void *)&done);
    if (rc <= 0) {
        return rc;
    }
    for (unsigned idle = 0; atomic_load(&done) == 0; idle++) {
        receive(p);
        pw_firehose_poll(p->table);
        if (idle > SPINS) {
            sched_yield();
        }
    }
    return atomic_load(&done) == 1 ? 0 : atomic_load(&done);
}
