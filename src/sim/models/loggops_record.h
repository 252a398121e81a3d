/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a record (record.h) while the pinwheel model runs. Each call is made only if recording()
 * is true, which is all that a run without a record has to test.
 */
#ifndef SIM_LOGGOPS_RECORD_H
#define SIM_LOGGOPS_RECORD_H

#include "loggops.h"
#include "record.h"

static inline bool recording(const struct worker *w)
{
    return __builtin_expect(w->s->record != NULL, 0);
}

/* loggops_record_start() notes that a claim starts now, before the model takes its cpu and nic for
 * it. `waited`: it starts because another claim has freed one of these. */
void loggops_record_start(struct worker *w, const struct rank *r, const struct event *e,
                          bool waited);

/* loggops_record_cause() notes the step that causes the next call of loggops_resolve().
 * loggops_record_ready() notes that this step met the last dependency of operation `op`. */
void loggops_record_cause(struct worker *w, const struct event *e, enum record_why why);
void loggops_record_ready(struct worker *w, uint32_t rank, uint32_t op);

void loggops_record_post(struct worker *w, const struct event *e);

/* loggops_record_match() notes which message a recv was matched with at the event `e`, and for a
 * rendezvous that this is why its reply becomes ready. */
void loggops_record_match(struct worker *w, const struct event *e, uint32_t recv,
                          const struct event *message);

/* loggops_record_reply() notes that data become ready because their reply has arrived. */
void loggops_record_reply(struct worker *w, const struct event *e);

/* loggops_record_in() notes that a nic begins at `begin` to take in a message that arrived at
 * `arrived`; it is called before the model takes the nic. If only the nic counted the last byte
 * would be in at `by_nic`; if only the sender's cpu, or the network, counted, at `by_cpu`. */
void loggops_record_in(struct worker *w, const struct event *e, uint32_t recv, uint64_t arrived,
                       uint64_t begin, uint64_t by_nic, uint64_t by_cpu);

/* loggops_record_way() notes the times of a message that the network delivers now;
 * loggops_record_left() notes when the last byte of data has left its host. loggops_record_taken()
 * notes that a packet of the message takes a channel. */
void loggops_record_way(struct worker *w, const struct event *arrival, const struct net_arrival *a,
                        uint64_t now);
void loggops_record_left(struct worker *w, const struct event *arrival, uint64_t time,
                         uint64_t waited);
void loggops_record_taken(struct worker *w, const struct event *arrival, uint32_t channel,
                          uint64_t now, uint64_t length);

#endif
