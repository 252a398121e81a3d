/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: a slot is claimed and accepted; invariant set 3.
 *
 * The sender claims a slot; the receiver accepts it when the slot's bit is first set, and connects
 * back, so that responses have a way. If the peer is dead by then, the receiver takes its messages
 * without that, and drops the responses. A peer that lives but cannot be reached back is tried
 * again for a while and then refused, since it would wait for ever.
 */
#include "fabric/shm/connect.h"

#include "base/cancel.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "fabric/shm/asks.h"
#include "fabric/shm/receive.h"
#include "fabric/shm/send.h"
#include "fabric/shm/slots.h"
#include "fabric/shm/teardown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a claimed slot was left by an earlier process with the address of this one, which died
 * before it had filled the slot. A process has one slot in a segment at most. */
static bool left_over(struct segment *s, unsigned index)
{
    struct slot *slot = segment_slot(s, index);
    bool unready = slot != NULL && atomic_load(&slot->ready) == SLOT_UNREADY;
    if (slot != NULL) {
        segment_slot_unmap(s, slot);
    }
    return unready;
}

/* Claims a slot: a free one, or one that an earlier process has left. The owner word must still
 * have this address after the slot was found unready: a slot that the receiver frees meanwhile is
 * unready, too, and the receiver changes the owner word first. */
static bool take_slot(struct segment *s, unsigned index, uint64_t mine)
{
    uint64_t expected = 0;
    if (atomic_compare_exchange_strong(&s->header->owner[index], &expected, mine)) {
        return true;
    }
    return expected == mine && left_over(s, index) &&
           atomic_compare_exchange_strong(&s->header->owner[index], &expected, mine);
}

/* Backs a claimed slot with memory, and writes the identity of this NIC there. */
static struct slot *fill_slot(struct shm_fabric *f, struct segment *s, unsigned index,
                              struct reason *why)
{
    const struct segment_info *me = &f->segment->info;
    KILL_POINT("slot-claimed");
    struct slot *slot = segment_slot(s, index);
    if (slot == NULL) {
        reason_say(why, 0, "no memory for a connection (%llu bytes in %s): %s",
                   (unsigned long long)slot_first(&s->info), f->setup.options->text[OPT_SHM_DIR],
                   strerror(errno));
        /* Gives the slot back, unless the receiver is doing so. */
        uint64_t mine = address_word(me->nid, me->pid);
        atomic_compare_exchange_strong(&s->header->owner[index], &mine, 0);
        return NULL;
    }
    KILL_POINT("slot-backed");
    slot->nid = me->nid;
    slot->pid = me->pid;
    slot->process = me->process;
    slot->incarnation = f->setup.incarnation;
    slot->asymmetric = f->setup.asymmetric;
    atomic_store_explicit(&slot->ready, SLOT_READY, memory_order_release);
    KILL_POINT("slot-ready");
    full_fence();
    if (segment_closed(s)) {
        /* The receiver may have looked at new slots for the last time: accept_rest(). */
        segment_slot_unmap(s, slot);
        return NULL;
    }
    return slot;
}

/* Warns that a peer has no free slot, since the event that the program gets, when the NIC gives the
 * peer up, cannot tell. The NIC tries again until then; all tries make one warning, until another
 * peer has no free slot. */
static void note_full(struct shm_fabric *f, const struct segment *s)
{
    char note[LOG_NOTE];
    if (f->full != s->info.incarnation && log_again((uintptr_t)note_full, clock_ns(), note)) {
        log_line(LOG_WARN,
                 "all %u connections of PID %u are taken: one is waited for, "
                 "PINWHEEL_CONNECT_MS=%lld; start it with a larger PINWHEEL_SHM_PEERS%s",
                 s->info.slots, s->info.pid, (long long)f->setup.options->number[OPT_CONNECT_MS],
                 note);
    }
    f->full = s->info.incarnation;
}

/* Claims a free slot in the peer's segment. NULL with an empty `why`: all slots are taken, and the
 * peer was asked to free those of dead processes; or the peer is leaving. */
static struct slot *claim_slot(struct shm_fabric *f, struct segment *s, unsigned *index,
                               struct reason *why)
{
    const struct segment_info *me = &f->segment->info;
    uint64_t mine = address_word(me->nid, me->pid);
    why->text[0] = '\0';
    for (unsigned i = 0; i < s->info.slots; i++) {
        if (take_slot(s, i, mine)) {
            *index = i;
            return fill_slot(f, s, i, why);
        }
    }
    note_full(f, s);
    atomic_fetch_or(&s->header->flags, SEGMENT_SWEEP);
    uint32_t doorbell = atomic_load(&s->header->doorbell);
    if (doorbell_asleep(doorbell)) {
        shm_ring(f, s, doorbell);
    }
    return NULL;
}

static void watch_process(struct shm_peer *p)
{
    const struct segment_info *info = &p->remote->info;
    p->same_process = p->remote->own;
    p->references = proves_itself(info);
    if (p->same_process) {
        return;
    }
    int fd = forks_open((int)SYS_CALL(SYS_pidfd_open, info->process, 0));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
    /* Checked again, so that the pidfd is certainly that of the process with the cookie. */
    if (fd >= 0 && proves_itself(info) &&
        sys_epoll_ctl(p->fabric->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        p->pidfd = fd;
        return;
    }
    p->references = false;
    forks_close(fd);
}

/* Attaches the way to a peer: its segment, and a slot in it. */
static bool attach_out(struct shm_peer *p, struct segment *s, struct reason *why)
{
    struct shm_fabric *f = p->fabric;
    if (!tx_allocate(p, &s->info)) {
        tx_free(p);
        reason_say(why, 0, "out of memory");
        return false;
    }
    struct slot *slot = claim_slot(f, s, &p->out_index, why);
    if (slot == NULL) {
        tx_free(p);
        return false;
    }
    p->remote = s;
    p->fences = s->own || !f->setup.asymmetric || s->info.asymmetric == 0;
    watch_process(p);
    if (p->references) {
        p->buffer = aligned_alloc(64, f->setup.packet_size * FETCH_PACKETS);
        p->references = p->buffer != NULL;
    }
    tx_attach(p, slot);
    if (p->in != NULL) {
        atomic_store_explicit(&p->in->references, p->references, memory_order_release);
    }
    return true;
}

/* Makes the object of a peer; introduce() then tells the NIC of it. */
static struct shm_peer *new_peer(struct shm_fabric *f, const struct fabric_address *a)
{
    struct shm_peer *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->fabric = f;
    p->address = *a;
    p->pidfd = -1;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        list_init(&p->tx[c].filling);
        list_init(&p->tx[c].referred);
    }
    shm_rx_prepare(p);
    list_init(&p->active);
    list_init(&p->asking);
    list_push_back(&f->peers, &p->link);
    return p;
}

static bool introduce(struct shm_peer *p)
{
    struct shm_fabric *f = p->fabric;
    p->np = f->setup.up->peer_up(f->setup.nic, &p->address, (struct fabric_peer *)p);
    if (p->np == NULL) {
        return false;
    }
    p->source.np = p->np;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        p->rx[c].m.rx = f->setup.up->rx_new(p->np, (enum fabric_class)c);
        if (p->rx[c].m.rx == NULL) {
            return false;
        }
    }
    return true;
}

static struct shm_peer *find_peer(struct shm_fabric *f, uint32_t nid, uint32_t pid,
                                  uint64_t incarnation)
{
    LIST_EACH(struct shm_peer, p, &f->peers, link) {
        if (p->address.nid == nid && p->address.pid == pid && !p->dying &&
            p->address.incarnation == incarnation) {
            return p;
        }
    }
    return NULL;
}

enum fabric_connect shm_connect(struct fabric *fabric, uint32_t nid, uint32_t pid,
                                struct reason *why)
{
    struct shm_fabric *f = shm_of(fabric);
    struct segment *s;
    int rc = segment_open(f->setup.options, nid, pid, &s, why);
    if (rc != 0) {
        return rc == -ENOENT ? FABRIC_LATER : FABRIC_NEVER;
    }
    if (s->info.own_only != 0 && !s->own) {
        segment_release(s, false);
        return FABRIC_ELSEWHERE;
    }
    struct shm_peer *p = find_peer(f, nid, pid, s->info.incarnation);
    if (p != NULL && p->remote != NULL) {
        segment_release(s, false);
        return FABRIC_UP;
    }
    bool fresh = p == NULL;
    if (fresh) {
        struct fabric_address a = {nid, pid, s->info.incarnation, geteuid(), false, &fabric_shm};
        p = new_peer(f, &a);
    }
    if (p == NULL || !attach_out(p, s, why)) {
        segment_release(s, false);
        if (p != NULL && fresh) {
            peer_forget(p);
        }
        return p != NULL && why->text[0] == '\0' ? FABRIC_LATER : FABRIC_NEVER;
    }
    if (fresh && !introduce(p)) {
        peer_lost(p, "out of memory");
        return FABRIC_NEVER;
    }
    return FABRIC_UP;
}

enum way { WAY_FOUND, WAY_GONE, WAY_NONE };

/* Connects to a peer that has connected to this NIC. WAY_GONE: its process is dead, or leaves;
 * WAY_NONE: it cannot be reached now, and `why` says why. */
static enum way reach_back(struct shm_peer *p, struct reason *why)
{
    struct segment *s;
    int rc = segment_open(p->fabric->setup.options, p->address.nid, p->address.pid, &s, why);
    if (rc != 0) {
        return rc == -ENOENT ? WAY_GONE : WAY_NONE;
    }
    bool alive = s->info.incarnation == p->address.incarnation;
    if (alive && attach_out(p, s, why)) {
        return WAY_FOUND;
    }
    if (why->text[0] == '\0') {
        reason_say(why, 0, "its %u connections are taken (see PINWHEEL_SHM_PEERS there)",
                   s->info.slots);
    }
    alive = alive && !segment_closed(s);
    segment_release(s, false);
    return alive ? WAY_NONE : WAY_GONE;
}

/* Whether the claimant of a slot has another one here already, against the rules. It does not count
 * if the claimant has left the other one, as a NIC does that has given the connection up and begins
 * anew. */
static bool is_second(struct shm_fabric *f, unsigned index, struct shm_peer *p)
{
    if (atomic_load_explicit(&p->in->ready, memory_order_acquire) == SLOT_LEFT) {
        peer_lost(p, NULL);
        return false;
    }
    log_line(LOG_WARN, "a second connection of the same process was refused");
    withhold_slot(f, index, &p->address, true);
    return true;
}

/* Makes a peer of the claimant of a slot. It connects back first, so that the NIC meets the peer
 * with both ways. */
static struct shm_peer *meet_new(struct shm_fabric *f, unsigned index, struct fabric_address *a,
                                 bool left)
{
    struct reason why = {"out of memory"};
    struct shm_peer *p = new_peer(f, a);
    if (p != NULL) {
        why.text[0] = '\0';
        enum way way = left ? WAY_GONE : reach_back(p, &why);
        a->dead = p->address.dead = way == WAY_GONE;
        if (way != WAY_NONE) {
            if (introduce(p)) {
                return p;
            }
            reason_say(&why, 0, "out of memory");
        }
        peer_leave(p);
        peer_forget(p);
    }
    put_off_slot(f, index, a, why.text);
    return NULL;
}

static struct shm_peer *meet(struct shm_fabric *f, unsigned index)
{
    struct segment_header *h = f->segment->header;
    /* Cleared before the slot is read: a sender that becomes ready later sets the bit again. */
    clear_bit(f, index);
    uint64_t owner = atomic_load_explicit(&h->owner[index], memory_order_acquire);
    struct slot *slot = slot_is_claimed(owner) ? segment_slot(f->segment, index) : NULL;
    uint32_t ready = slot != NULL ? atomic_load(&slot->ready) : SLOT_UNREADY;
    if (ready == SLOT_UNREADY) {
        return NULL;
    }
    struct fabric_address a = {
        (uint32_t)(owner >> 32), (uint32_t)owner, slot->incarnation, geteuid(), false, &fabric_shm};
    struct shm_peer *p = find_peer(f, a.nid, a.pid, a.incarnation);
    if (p != NULL && p->in != NULL) {
        if (is_second(f, index, p)) {
            return NULL;
        }
        p = NULL;
    }
    p = p != NULL ? p : meet_new(f, index, &a, ready == SLOT_LEFT);
    if (p == NULL) {
        return NULL;
    }
    p->in_index = index;
    f->by_slot[index] = p;
    f->refuse_at[index] = 0;
    set_bit(f, index);
    shm_rx_attach(p, slot);
    if (shm_rx_asked(p)) {
        asks_attend(p); /* its bit in `asked` may have been taken before the peer was connected */
    }
    KILL_POINT("slot-accepted");
    atomic_store_explicit(&slot->references, p->references, memory_order_release);
    if (a.dead) {
        peer_lost(p, NULL); /* its messages are taken, and then the connection is torn down */
    }
    sweep_slots(f);
    return p;
}

struct shm_peer *accept_slot(struct shm_fabric *f, unsigned index)
{
    ERRNO_KEPT;
    NOT_CANCELLED;
    return meet(f, index);
}

void accept_rest(struct shm_fabric *f)
{
    for (unsigned i = 0; i < f->segment->info.slots; i++) {
        if (f->by_slot[i] == NULL && atomic_load(&f->segment->header->owner[i]) != 0) {
            accept_slot(f, i);
        }
    }
}
