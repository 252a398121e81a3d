/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload by reference: copies from the sender's memory into ours, without the lock.
 *
 * Each is a number of process_vm_readv calls of at most REFERENCE_RUN bytes. Addresses
 * on both sides are named by others; the kernel says EFAULT for what is not there. What
 * was read counts only if the peer still proves itself after it: one that has died may have had
 * its pid taken over, and one that runs another program now has kept it.
 *
 * A vector is the NIC's, which may take it back whenever the lock is free (it makes the
 * sink RX_DISCARD then): so with the lock held it is asked for the next addresses, and the
 * call is made with those.
 */
#include "fabric/shm/shm.h"

#include "base/killpoint.h"

#define REFERENCE_RUN ((uint64_t)4 << 20) /* bytes of one process_vm_readv */

static uint64_t one_run(uint64_t n)
{
    return n < REFERENCE_RUN ? n : REFERENCE_RUN;
}

/* One of the same process need not be asked. */
static bool peer_gone(const struct fabric_peer *p)
{
    return p->pidfd >= 0 && !proves_itself(&p->remote->info);
}

static pid_t process_of(const struct fabric_peer *p)
{
    return p->remote == NULL ? -1 : p->remote->info.process;
}

/* One call, which may copy less than it is asked for; adds what it did to *done. */
static enum fabric_status read_run(pid_t process, const struct iovec *local, int count,
                                   uint64_t from, uint64_t n, uint64_t *done)
{
    struct iovec remote = {(void *)(uintptr_t)from, n};
    ssize_t got = sys_process_vm_readv(process, local, (unsigned long)count, &remote, 1);
    KILL_POINT("reference-read");
    if (got > 0) {
        *done += (uint64_t)got;
        return FABRIC_OK;
    }
    if (got == -EINTR) {
        return FABRIC_OK;
    }
    return got == -ESRCH ? FABRIC_UNDELIVERABLE : FABRIC_SEGV;
}

enum fabric_status reference_fetch(struct fabric_peer *p, void *to, uint64_t from, uint64_t n)
{
    struct fabric *f = p->fabric;
    pid_t process = process_of(p);
    enum fabric_status status = FABRIC_OK;
    f->up->unlock(f->nic);
    for (uint64_t done = 0; done < n && status == FABRIC_OK;) {
        struct iovec local = {(void *)((uintptr_t)to + done), one_run(n - done)};
        status = read_run(process, &local, 1, from + done, local.iov_len, &done);
    }
    if (peer_gone(p)) {
        status = FABRIC_UNDELIVERABLE;
    }
    f->up->lock(f->nic);
    return status;
}

/* Fills as many parts of the vector as one call can, from `*done` on. */
static enum fabric_status scatter_run(struct fabric_peer *p, struct rx_channel *r, uint64_t n,
                                      uint64_t *done)
{
    struct fabric *f = p->fabric;
    const struct fabric_rx *rx = r->m.rx;
    pid_t process = process_of(p);
    struct iovec local[IOV_MAX];
    uint64_t run;
    int count = vector_pieces(rx->vector, &r->m.cursor, rx->skip + *done, one_run(n - *done), local,
                              IOV_MAX, &run);
    if (count < 0) {
        return FABRIC_SEGV;
    }
    f->up->unlock(f->nic);
    enum fabric_status status = read_run(process, local, count, r->address + *done, run, done);
    if (peer_gone(p)) {
        status = FABRIC_UNDELIVERABLE;
    }
    f->up->lock(f->nic);
    return status;
}

enum fabric_status reference_deposit(struct fabric_peer *p, struct rx_channel *r, uint64_t n)
{
    const struct fabric_rx *rx = r->m.rx;
    if (rx->vector == NULL) {
        return reference_fetch(p, rx->base, r->address, n);
    }
    enum fabric_status status = FABRIC_OK;
    for (uint64_t done = 0; done < n && status == FABRIC_OK && rx->sink == RX_DEPOSIT;) {
        status = scatter_run(p, r, n, &done);
    }
    return status;
}
