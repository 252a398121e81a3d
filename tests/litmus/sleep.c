/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sleep/wake race through the whole library: a thread that waits in
 * PtlCTWait or PtlEQWait, and sleeps at once instead of spinning, is woken by a
 * put, by an ack, or by its own process; LITMUS_ROUNDS times, each waiting for
 * the one before. A lost wake-up is a hang; the state of both doorbells is then
 * printed. The lease is a second long, so that the NIC thread, which looks after
 * a NIC when its lease is over, does not cover a lost wake-up soon enough to
 * hide it in a run of many.
 */
#include "port.h"

#include "fabric/shm/layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STILL_MS = 10000, SLOT_ROUND = 40, LIMIT_S = 3600 };

static unsigned char buffer[64];
static atomic_bool over;
static struct port p;

static uint64_t rounds(void)
{
    const char *text = getenv("LITMUS_ROUNDS");
    return text != NULL ? strtoull(text, NULL, 10) : 10000;
}

/* Prints the doorbell of the segment of one rank. */
static void print_doorbell(int rank)
{
    const char *folder =
        getenv("PINWHEEL_SHM_DIR") != NULL ? getenv("PINWHEEL_SHM_DIR") : "/dev/shm";
    char end[64], path[512];
    snprintf(end, sizeof(end), "-%08x-%u", p.phys[rank].phys.nid, p.phys[rank].phys.pid);
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, "pinwheel-", 9) != 0 || length < strlen(end) ||
            strcmp(e->d_name + length - strlen(end), end) != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        int fd = open(path, O_RDONLY);
        struct segment_header *h = mmap(NULL, SEGMENT_HEADER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0 && h != MAP_FAILED) {
            uint32_t doorbell = atomic_load(&h->doorbell);
            fprintf(stderr,
                    "    rank %d: round %llu, doorbell 0x%08x: state %u, %s; bitmap 0x%llx\n", rank,
                    (unsigned long long)ptest_look(rank, SLOT_ROUND), doorbell, doorbell & 7,
                    (doorbell & 8) != 0 ? "rung" : "not rung",
                    (unsigned long long)atomic_load(&h->bitmap[0]));
        }
    }
    if (d != NULL) {
        closedir(d);
    }
}

static void *watch(void *unused)
{
    uint64_t before = ~0ull;
    for (int still = 0; !atomic_load(&over); ptest_sleep_ms(100)) {
        uint64_t now = ptest_look(0, SLOT_ROUND) + ptest_look(1, SLOT_ROUND);
        still = now == before ? still + 100 : 0;
        before = now;
        if (still > STILL_MS * ptest_slow()) {
            print_doorbell(0);
            print_doorbell(1);
            FAIL("nothing moves: a wake-up was lost");
        }
    }
    return NULL;
}

static void begin(const char *membarrier, int rank, int size)
{
    setenv("PINWHEEL_SPIN_US", "0", 1);
    setenv("PINWHEEL_YIELD_US", "0", 1);
    setenv("PINWHEEL_LEASE_US", "1000000", 1);
    setenv("PINWHEEL_MEMBARRIER", membarrier, 1);
    port_open(&p, KIND_MP, rank, size);
}

static void delay(uint64_t *r)
{
    uint64_t most = splitmix(r) % 8 == 0 ? 4000 : 200;
    for (uint64_t n = splitmix(r) % most; n > 0; n--) {
        __builtin_ia32_pause();
    }
}

/* A ping-pong in which both sides sleep for what comes next. */
static void ping_pong(const char *membarrier, int rank, int size, bool by_event)
{
    pthread_t watcher;
    uint64_t r = 11 + (uint64_t)rank, n = rounds();
    begin(membarrier, rank, size);
    ptl_handle_ct_t arrived = port_ct(&p);
    ptl_me_t me = port_entry(&p, buffer, 8,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE |
                                 (by_event ? 0 : PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE));
    me.ct_handle = arrived;
    port_append(&p, &me, NULL);
    ptl_handle_md_t md = port_quiet_md(&p, buffer + 8, 8, 0, PTL_CT_NONE);
    BARRIER();
    CHECK_EQ(pthread_create(&watcher, NULL, watch, NULL), 0);
    for (uint64_t i = 1; i <= n; i++) {
        if (rank == 0) {
            delay(&r);
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, i));
        }
        if (by_event) {
            ptl_event_t e;
            OK(PtlEQWait(p.eq, &e));
            CHECK_EQ(e.hdr_data, i);
        } else {
            ptl_ct_event_t value;
            OK(PtlCTWait(arrived, i, &value));
            CHECK_EQ(value.success, i);
            CHECK_EQ(value.failure, 0);
        }
        if (rank == 1) {
            delay(&r);
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, i));
        }
        ptest_show(SLOT_ROUND, i);
    }
    BARRIER();
    atomic_store(&over, true);
    pthread_join(watcher, NULL);
    port_close(&p);
}

PTEST_LIMIT(counter_membarrier, 2, LIMIT_S)
{
    ping_pong("1", rank, size, false);
}

PTEST_LIMIT(counter_fence, 2, LIMIT_S)
{
    ping_pong("0", rank, size, false);
}

PTEST_LIMIT(event_membarrier, 2, LIMIT_S)
{
    ping_pong("1", rank, size, true);
}

PTEST_LIMIT(event_fence, 2, LIMIT_S)
{
    ping_pong("0", rank, size, true);
}

/* One side sleeps for acks only; the other one makes no call at all, so its NIC
 * thread is woken each time. */
PTEST_LIMIT(acks_of_a_silent_target, 2, LIMIT_S)
{
    pthread_t watcher;
    uint64_t r = 17, n = rounds() / 2;
    begin("1", rank, size);
    port_target(&p, buffer, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    BARRIER();
    if (rank == 0) {
        ptl_handle_ct_t acked = port_ct(&p);
        ptl_handle_md_t md = port_quiet_md(&p, buffer, 8, PTL_MD_EVENT_CT_ACK, acked);
        CHECK_EQ(pthread_create(&watcher, NULL, watch, NULL), 0);
        for (uint64_t i = 1; i <= n; i++) {
            ptl_ct_event_t value;
            delay(&r);
            OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            OK(PtlCTWait(acked, i, &value));
            CHECK_EQ(value.success, i);
            ptest_show(SLOT_ROUND, i);
        }
        atomic_store(&over, true);
        pthread_join(watcher, NULL);
    }
    port_close(&p);
}

/* Two threads of one process wake each other by counters of their own NIC. */
static ptl_handle_ct_t mine[2];

static void *other_thread(void *unused)
{
    uint64_t r = 19;
    for (uint64_t i = 1; i <= rounds(); i++) {
        ptl_ct_event_t value;
        OK(PtlCTWait(mine[1], i, &value));
        delay(&r);
        OK(PtlCTInc(mine[0], (ptl_ct_event_t){1, 0}));
    }
    return NULL;
}

PTEST_LIMIT(threads_of_one_nic, 1, LIMIT_S)
{
    pthread_t thread, watcher;
    uint64_t r = 23;
    begin("1", rank, size);
    mine[0] = port_ct(&p);
    mine[1] = port_ct(&p);
    CHECK_EQ(pthread_create(&watcher, NULL, watch, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
    for (uint64_t i = 1; i <= rounds(); i++) {
        ptl_ct_event_t value;
        delay(&r);
        OK(PtlCTInc(mine[1], (ptl_ct_event_t){1, 0}));
        OK(PtlCTWait(mine[0], i, &value));
        ptest_show(SLOT_ROUND, i);
    }
    pthread_join(thread, NULL);
    atomic_store(&over, true);
    pthread_join(watcher, NULL);
    port_close(&p);
}
