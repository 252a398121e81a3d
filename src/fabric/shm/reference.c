/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload by reference: the receiver copies it from the sender's memory, without the lock.
 *
 * A copy is a number of calls of process_vm_readv, of REFERENCE_RUN bytes at most. Programs and
 * peers have named the addresses on both sides; the kernel returns EFAULT for those without memory.
 * Bytes that were read count only if the peer proves itself afterwards (proves_itself()): the pid
 * of one that has died may belong to another process, and one that runs another program has kept
 * it.
 *
 * The NIC has lent the memory of a deposit, and may take it back while the lock is free, by making
 * the sink RX_DISCARD. So before each call the receiver reads the next addresses under the lock.
 */
#include "fabric/shm/reference.h"

#include "base/killpoint.h"

#define REFERENCE_RUN ((uint64_t)4 << 20) /* bytes of one process_vm_readv */

static uint64_t one_run(uint64_t n)
{
    return n < REFERENCE_RUN ? n : REFERENCE_RUN;
}

/* Makes one call, which may copy fewer bytes than asked for, and adds those to *done. A peer in the
 * same process need not prove itself. */
static enum fabric_status read_run(struct shm_peer *p, const struct iovec *local, int count,
                                   uint64_t from, uint64_t n, uint64_t *done)
{
    struct shm_fabric *f = p->fabric;
    pid_t process = p->remote == NULL ? -1 : p->remote->info.process;
    struct iovec remote = {(void *)(uintptr_t)from, n};
    f->setup.up->unlock(f->setup.nic);
    ssize_t got = sys_process_vm_readv(process, local, (unsigned long)count, &remote, 1);
    KILL_POINT("reference-read");
    bool gone = got == -ESRCH || (p->pidfd >= 0 && !proves_itself(&p->remote->info));
    f->setup.up->lock(f->setup.nic);
    *done += got > 0 ? (uint64_t)got : 0;
    return gone ? FABRIC_UNDELIVERABLE : got > 0 || got == -EINTR ? FABRIC_OK : FABRIC_SEGV;
}

enum fabric_status reference_fetch(struct shm_peer *p, void *to, uint64_t from, uint64_t n)
{
    enum fabric_status status = FABRIC_OK;
    for (uint64_t done = 0; done < n && status == FABRIC_OK;) {
        struct iovec local = {(void *)((uintptr_t)to + done), one_run(n - done)};
        status = read_run(p, &local, 1, from + done, local.iov_len, &done);
    }
    return status;
}

/* Copies as much as one call can, from `*done` on. */
static enum fabric_status deposit_run(struct shm_peer *p, struct rx_channel *r, uint64_t n,
                                      uint64_t *done)
{
    const struct fabric_rx *rx = r->m.rx;
    uint64_t run = one_run(n - *done);
    struct iovec local[IOV_MAX];
    local[0] = (struct iovec){(void *)((uintptr_t)rx->base + *done), run};
    int count = rx->vector == NULL ? 1
                                   : vector_pieces(rx->vector, &r->m.cursor, rx->skip + *done, run,
                                                   local, IOV_MAX, &run);
    return count < 0 ? FABRIC_SEGV : read_run(p, local, count, r->address + *done, run, done);
}

enum fabric_status reference_deposit(struct shm_peer *p, struct rx_channel *r, uint64_t n)
{
    enum fabric_status status = FABRIC_OK;
    for (uint64_t done = 0; done < n && status == FABRIC_OK && r->m.rx->sink == RX_DEPOSIT;) {
        status = deposit_run(p, r, n, &done);
    }
    return status;
}
