/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookup: which entry a request is for, whether the initiator may access it, and whether there is
 * room for the message's event and header. The checks come in the order of the specification:
 * interface, portal table entry, match, permission, room.
 */
#include "nic/lookup.h"

#include "base/paths.h"
#include "nic/entry.h"
#include "nic/pt.h"
#include "nic/spin_calls.h"
#include "nic/turn.h"

/* Messages of one flood follow each other in less than this. */
#define FLOOD_GAP_NS 50000

struct fits_context {
    struct match_header header;
    uint64_t remote_offset;
    const struct rx *rx;
    /* The first entry that matches but is reserved by a message of the same peer, and whether that
     * message is still in its channel. */
    const struct match_entry **kept;
    bool *in_channel;
    bool *refused; /* an entry that matches was passed over: it does not fit, or is reserved */
};

static bool entry_fits(const struct match_entry *entry, const struct match_header *header)
{
    const struct le *le = container_of(entry, struct le, match);
    const struct fits_context *c = container_of(header, struct fits_context, header);
    bool fits = le_fits(le, c->remote_offset, header->length);
    bool left = fits && le->reserved && detach_keeps(c->rx->peer, le);
    bool kept = left || (fits && le->reserved && turn_keeps(c->rx, le));
    if (kept && (*c->kept == NULL || entry->sequence < (*c->kept)->sequence)) {
        *c->kept = entry;
        *c->in_channel = !left;
    }
    *c->refused |= !fits || le->reserved;
    return fits && !le->reserved;
}

/* Returns the first entry of a list that the message matches. If an earlier message of this peer
 * has reserved one before it, which that message may yet give back, the message waits
 * (rx->held). */
static struct le *first_of(struct rx *rx, struct match_list *list, struct fits_context *c)
{
    const struct match_entry *kept = NULL;
    bool in_channel = false;
    c->kept = &kept;
    c->in_channel = &in_channel;
    struct match_entry *e = match_first(list, &c->header);
    if (kept != NULL && (e == NULL || kept->sequence < e->sequence)) {
        rx->held = true;
        rx->held_by_turn = in_channel;
        return NULL;
    }
    return e == NULL ? NULL : container_of(e, struct le, match);
}

/* Returns the entry that an earlier search has found, if that search was for the same key and the
 * entry fits; else NULL. */
static inline struct le *found_before(const struct pt *pt, const struct fits_context *c)
{
    const struct found *f = &pt->found;
    if (f->le == NULL || f->bits != c->header.bits || f->nid != c->header.nid ||
        f->pid != c->header.pid) {
        return NULL;
    }
    bool fits = !f->le->reserved && le_fits(f->le, c->remote_offset, c->header.length);
    return !f->le->match.picky || fits ? f->le : NULL;
}

static inline void note_found(struct pt *pt, struct le *le, const struct match_header *h)
{
    pt->found = (struct found){le, h->nid, h->pid, h->bits};
}

/* Returns the entry that the message matches, of the priority list or else of the overflow list. */
static struct le *find_entry(struct rx *rx, struct pt *pt)
{
    struct fits_context c;
    c.header = target_key(&rx->at, rx->m);
    if (likely(pt->recent != NULL &&
               match_is_first(&pt->priority, &pt->recent->match, &c.header))) {
        COUNT_PATH(match_recent);
        return pt->recent;
    }
    c.header.fits = entry_fits;
    c.header.length = rx->m->length;
    c.remote_offset = rx->m->remote_offset;
    struct le *le = found_before(pt, &c);
    if (le != NULL) {
        COUNT_PATH(match_found);
        return le;
    }
    COUNT_PATH(match_search);
    bool refused = false;
    c.refused = &refused;
    c.rx = rx;
    le = pt->recent = first_of(rx, &pt->priority, &c);
    if (le != NULL && !refused && le_lasts(le)) {
        note_found(pt, le, &c.header);
    }
    bool over = le == NULL && !rx->held && pt->overflow.entries != 0;
    return over ? first_of(rx, &pt->overflow, &c) : le;
}

static struct le *drop(struct rx *rx, ptl_sr_index_t reg)
{
    rx->at.ni->registers[reg]++;
    return NULL;
}

static inline bool check_permission(struct rx *rx, const struct le *le, ptl_ni_fail_t *fail)
{
    unsigned needed = rx->m->type == MESSAGE_GET     ? PTL_ME_OP_GET
                      : rx->m->type == MESSAGE_FETCH ? PTL_ME_OP_GET | PTL_ME_OP_PUT
                                                     : PTL_ME_OP_PUT;
    *fail = le_permits(le, rx->peer->uid, needed);
    if (unlikely(*fail != PTL_NI_OK)) {
        drop(rx, *fail == PTL_NI_PERM_VIOLATION ? PTL_SR_PERMISSION_VIOLATIONS
                                                : PTL_SR_OPERATION_VIOLATIONS);
    }
    return *fail == PTL_NI_OK;
}

/*
 * Whether a message for which flow control has no room shall wait. While it waits, its channel
 * stands still and its sender is held back; a program that is busy takes its events meanwhile, or
 * enables the portal table entry again, and no sender has to recover. Messages that follow one that
 * waited in vain are of the same flood: the NIC refuses them at once. A message to oneself never
 * waits, on any path: the program that would have to act may be the one that is sending it.
 */
__attribute__((noinline)) static bool may_wait(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    int64_t patience = nic->process->options.number[OPT_FLOWCTRL_MS] * 1000000;
    /* A simulated NIC holds nobody back. */
    if (patience == 0 || rx->peer->self || nic->time != NULL) {
        return false;
    }
    int64_t now = nic->now();
    int64_t *refused_at = &rx->peer->rx[FABRIC_REQUEST]->refused_at;
    bool same_flood = *refused_at != 0 && now - *refused_at < FLOOD_GAP_NS;
    if (rx->wait_end == 0 && !same_flood) {
        rx->wait_end = now + patience;
        nic->stats->waited++;
    }
    rx->held = now < rx->wait_end;
    if (!rx->held) {
        *refused_at = now;
    }
    return rx->held;
}

/* Has a message for which there is no room wait, or drops it; with flow control it then also
 * disables the portal table entry. */
__attribute__((noinline)) static struct le *no_room(struct rx *rx, struct pt *pt,
                                                    const struct le *le, ptl_ni_fail_t *fail)
{
    *fail = PTL_NI_DROPPED;
    if ((pt->options & PTL_PT_FLOWCTRL) != 0) {
        if (may_wait(rx)) {
            return NULL;
        }
        *fail = PTL_NI_PT_DISABLED;
        pt_refuse(rx->at.ni, rx->m->pt_index, le);
    }
    return drop(rx, PTL_SR_DROP_COUNT);
}

/* Takes room for the unexpected header of a message, and checks that for its event; false: none. */
__attribute__((noinline)) static bool find_room(struct rx *rx, const struct pt *pt,
                                                const struct le *le)
{
    bool header = le_leaves_header(le);
    if (!pt_queue_has_room(pt)) {
        return false;
    }
    rx->at.unexpected = header ? table_add(&rx->at.ni->unexpected) : NULL;
    return !header || rx->at.unexpected != NULL;
}

struct le *rx_look_up(struct rx *rx, ptl_ni_fail_t *fail)
{
    struct nic *nic = rx->peer->nic;
    struct ni *ni = rx->m->ni < NI_KINDS ? nic->ni[rx->m->ni] : NULL;
    *fail = PTL_NI_DROPPED;
    if (ni == NULL) {
        return NULL;
    }
    rx->at.ni = ni;
    struct pt *pt = rx->at.pt = ni_pt(ni, rx->m->pt_index);
    if (!target_source(&rx->at, rx, rx->m) || pt == NULL) {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    if (unlikely(!pt_is_open(pt))) {
        if (pt->refusing && may_wait(rx)) {
            return NULL;
        }
        *fail = pt->allocated ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    struct le *le = find_entry(rx, pt);
    if (le == NULL) {
        return rx->held ? NULL : no_room(rx, pt, NULL, fail);
    }
    *fail = PTL_NI_OK;
    if (!check_permission(rx, le, fail)) {
        return NULL;
    }
    bool room = le->plain ? pt_queue_has_room(pt) : find_room(rx, pt, le);
    return room ? le : no_room(rx, pt, le, fail);
}

void rx_forget_found(const struct rx *rx)
{
    const struct message *m = rx->m;
    struct ni *ni = m->ni < NI_KINDS ? rx->peer->nic->ni[m->ni] : NULL;
    struct pt *pt = ni != NULL ? ni_pt(ni, m->pt_index) : NULL;
    if (pt != NULL) {
        pt->recent = NULL;
        pt->found.le = NULL;
    }
}
