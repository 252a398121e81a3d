/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end. A peer that is lost is emptied, told that this NIC has left its slot, and
 * torn down; a peer that owes something is probed. Invariant set 3. */
#include "fabric/shm/teardown.h"

#include "base/cancel.h"
#include "base/ip.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "fabric/shm/poll.h"
#include "fabric/shm/receive.h"
#include "fabric/shm/send.h"
#include "fabric/shm/slots.h"
#include "fabric/shm/tx_payload.h"

#include <stdio.h>
#include <stdlib.h>

static void free_peer(struct shm_peer *p)
{
    struct shm_fabric *f = p->fabric;
    if (p->pidfd >= 0) {
        sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, p->pidfd, NULL);
        forks_close(p->pidfd);
    }
    if (p->remote != NULL) {
        segment_slot_unmap(p->remote, p->out);
        segment_release(p->remote, false);
    }
    tx_free(p);
    free(p->buffer);
    f->dying -= p->dying;
    list_remove(&p->active);
    list_remove(&p->asking);
    list_remove(&p->link);
    f->flowing = f->flowing == p ? NULL : f->flowing;
    free(p);
}

void peer_leave(struct shm_peer *p)
{
    if (p->remote != NULL && !p->left) {
        p->left = true;
        atomic_store_explicit(&p->out->ready, SLOT_LEFT, memory_order_release);
        atomic_fetch_or(&p->remote->header->flags, SEGMENT_LEFT);
        KILL_POINT("slot-left");
        shm_signal(p);
    }
}

void peer_forget(struct shm_peer *p)
{
    struct shm_fabric *f = p->fabric;
    if (p->np != NULL) {
        for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
            if (p->rx[c].m.rx != NULL) {
                f->setup.up->rx_free(p->np, p->rx[c].m.rx);
            }
        }
        f->setup.up->peer_down(f->setup.nic, p->np);
    }
    free_peer(p);
}

/* Whether the claimant of a slot may still write to it: until it has stored SLOT_LEFT, its last
 * store there, or its name or process is gone. A closed segment is not enough: a process that
 * closes its NIC first closes the segment, and then leaves its slots one by one. */
static bool may_write(const struct shm_peer *p)
{
    const struct fabric_address *a = &p->address;
    if (!p->broken && atomic_load_explicit(&p->in->ready, memory_order_acquire) == SLOT_LEFT) {
        return false;
    }
    return !segment_left(p->fabric->setup.options, a->nid, a->pid, &a->incarnation);
}

/* Frees the slot of a peer, unless the claimant may still write to it. */
static void vacate_slot(struct shm_peer *p)
{
    struct shm_fabric *f = p->fabric;
    f->by_slot[p->in_index] = NULL;
    shm_ignore(f, p);
    clear_bit(f, p->in_index);
    if (may_write(p)) {
        withhold_slot(f, p->in_index, &p->address, p->broken);
    } else {
        clear_slot(f, p->in, p->in_index);
    }
}

struct peer_name peer_name(const struct fabric_address *a)
{
    struct peer_name name;
    snprintf(name.text, sizeof(name.text), "NID %s PID %u", ip_text(a->nid).text, a->pid);
    return name;
}

void peer_lost(struct shm_peer *p, const char *why)
{
    if (why != NULL && !p->broken) {
        log_line(LOG_WARN, "connection to %s ended: %s", peer_name(&p->address).text, why);
        p->broken = true;
    }
    shm_attend(p->fabric);
    p->fabric->dying += !p->dying;
    p->dying = true;
    tx_stop(p);
}

bool peer_empty(struct shm_peer *p)
{
    tx_cancel(p); /* a get of the dead peer would wait until its reply has left */
    peer_leave(p);
    bool moved = shm_rx_asks(p);
    return shm_rx_advance(p) || moved;
}

bool peer_tear_down(struct shm_peer *p)
{
    shm_rx_cut(p);
    if ((shm_rx_state(p) & RX_BUSY) != 0) {
        return false; /* a handler works on its last message */
    }
    tx_cancel(p);
    ERRNO_KEPT;
    NOT_CANCELLED;
    if (p->in != NULL) {
        vacate_slot(p);
    }
    peer_forget(p);
    return true;
}

/* A pidfd tells when a process ends; but not that it runs another program (exec) under the same
 * pid, nor that its NIC has given up the connection. So a peer that owes something is probed,
 * too. */
bool peer_is_probed(struct shm_peer *p)
{
    return !p->dying &&
           ((p->pidfd < 0 && !p->same_process) || shm_unsent((struct fabric_peer *)p) ||
            (shm_rx_state(p) & RX_BUSY) != 0 || p->fabric->setup.up->expects(p->np));
}

/* Whether a peer no longer exists, or no longer reads the slot of this connection. */
static bool is_lost(struct shm_peer *p)
{
    const struct segment *s = p->remote, *mine = p->fabric->segment;
    if (!segment_alive(p->remote)) {
        return true;
    }
    uint64_t owner = atomic_load(&s->header->owner[p->out_index]);
    if (owner == address_word(mine->info.nid, mine->info.pid) || owner == OWNER_ASKED) {
        return false; /* if OWNER_ASKED, the next probe sees what has become of it */
    }
    if (!segment_closed(s)) {
        log_line(LOG_WARN, "%s has refused or ended the connection: what it has logged says why",
                 peer_name(&p->address).text);
    }
    return true;
}

void peers_probe(struct shm_fabric *f)
{
    ERRNO_KEPT;
    NOT_CANCELLED;
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if (!peer_is_probed(p)) {
            continue;
        }
        if (is_lost(p)) {
            peer_lost(p, NULL);
        } else if (p->rung == 0) {
            shm_signal(p); /* its doorbell could not be rung, or was not */
        }
    }
    for (unsigned i = 0; i < f->segment->info.slots && f->put_off; i++) {
        if (f->refuse_at[i] != 0) {
            set_bit(f, i);
        }
    }
    f->put_off = false;
}
