/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages, which are announced (--rendezvous): the receiver gets the data when a recv is
 * there for them, and the send is over when they have left.
 *
 *      sender ── announcement, 16 B ──► receiver: its program (as RDMA), or a header handler of its
 *             ◄── get ──                NIC if the recv is posted (section 5.1 of the sPIN paper)
 *             ── data ──►
 *
 * A program gets when it takes the event of the announcement, so not while it computes. Where the
 * NIC matches, a message meets a posted recv when its first packet is ready, a short one as well:
 * it is written where it belongs. It does so only if all messages of this sender that came before
 * have met their recvs, since those are for the program to match, and so messages of a sender do
 * not overtake each other; else it is one that the program copies, or gets.
 */
#include "state.h"

enum { ANNOUNCEMENT = 16 };

bool nic_is_long(const struct nic_run *r, const struct goal_node *n)
{
    return r->m->rendezvous && r->m->copies != NIC_COPIES_NONE && n->type == GOAL_SEND &&
           n->size > r->m->eager;
}

void nic_announce(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ready)
{
    const struct goal_node *n = &r->ranks[rank].goal.nodes[node];
    const struct nic_message m = {.from = rank,
                                  .to = n->peer,
                                  .node = node,
                                  .tag = n->tag,
                                  .entry = NIC_NONE,
                                  .counts = NIC_NONE,
                                  .answers = NIC_NONE,
                                  .recv = NIC_NONE,
                                  .bytes = ANNOUNCEMENT,
                                  .kind = NIC_ANNOUNCE,
                                  .class = NIC_REQUEST};
    uint32_t i = nic_new(r, &m);
    if (i != NIC_NONE) {
        nic_depart(r, i, ready);
    }
}

void nic_pull(struct nic_run *r, const struct nic_message *announcement, uint32_t recv,
              uint64_t ready)
{
    const struct nic_rank *sender = &r->ranks[announcement->from];
    const struct nic_message m = {.from = announcement->to,
                                  .to = announcement->from,
                                  .node = announcement->node,
                                  .entry = NIC_NONE,
                                  .counts = NIC_NONE,
                                  .answers = NIC_NONE,
                                  .recv = recv,
                                  .asked = sender->goal.nodes[announcement->node].size,
                                  .kind = NIC_PULL,
                                  .class = NIC_REQUEST};
    uint32_t i = nic_new(r, &m);
    if (i != NIC_NONE) {
        nic_depart(r, i, ready);
    }
}

void nic_meet(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    struct nic_flow *f = nic_flow_of(r, m);
    struct nic_rank *k = &r->ranks[m->to];
    struct match_entry found;
    if (r->m->rendezvous && r->m->copies == NIC_COPIES_LATE && f->for_program == 0) {
        int any = match_take(&k->posted, &r->pool, m->from, m->tag, &found);
        r->memory_short |= any < 0;
        if (any == 1) {
            m->recv = found.ref;
            const struct nic_message copy = *m; /* a new message may move all others */
            if (m->kind == NIC_ANNOUNCE) {
                nic_pull(r, &copy, found.ref, r->now + r->m->handler);
            }
            return;
        }
    }
    f->for_program++;
}
