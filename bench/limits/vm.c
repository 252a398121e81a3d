/* SPDX-License-Identifier: BSD-3-Clause */
/* process_vm_readv: the kernel copies from the other process's private memory. */
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

static uint8_t *memory;
static struct {
    pid_t pid;
    void *memory;
} peer;

enum { SEED = 7 };

static int open_memory(void)
{
    memory = malloc(TURN_SIZE_MAX);
    if (memory == NULL) {
        return turn_fail("no memory for a buffer of %d bytes", TURN_SIZE_MAX);
    }
    turn_fill(memory, TURN_SIZE_MAX, SEED + (uint64_t)turn_rank());
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama guards processes */
    struct {
        pid_t pid;
        void *memory;
    } mine = {getpid(), memory};
    return turn_exchange(&mine, sizeof(mine), &peer, sizeof(peer)) == sizeof(peer) ? 0 : -1;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    struct iovec to = {memory, work->size}, from = {peer.memory, work->size};
    for (uint64_t i = 0; turn_rank() == 0 && i < iterations; i++) {
        ssize_t n = process_vm_readv(peer.pid, &to, 1, &from, 1, 0);
        if (n != (ssize_t)work->size) {
            return turn_fail("process_vm_readv: %s", n < 0 ? strerror(errno) : "read in part");
        }
    }
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return work->check && turn_rank() == 0 ? turn_check(memory, work->size, SEED + 1) : 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_GET, .run = run, .end = end},
};

const struct limit limit_vm = {"process_vm", open_memory, duties, 1};
