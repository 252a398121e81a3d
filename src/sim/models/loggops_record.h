/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing a record (record.h) while the pinwheel model runs. Each call stands
 * behind recording(), which is all that a run without a record pays.
 */
#ifndef SIM_LOGGOPS_RECORD_H
#define SIM_LOGGOPS_RECORD_H

#include "loggops.h"
#include "record.h"

static inline bool recording(const struct worker *w)
{
    return __builtin_expect(w->s->record != NULL, 0);
}

/* loggops_record_start() notes that a claim starts now, before it takes anything;
 * `waited`: because something that it needs was given back. */
void loggops_record_start(struct worker *w, const struct rank *r, const struct event *e,
                          bool waited);

/* loggops_record_cause() says what the next loggops_resolve() comes from, and
 * loggops_record_ready() that it is what an operation was waiting for. */
void loggops_record_cause(struct worker *w, const struct event *e, enum record_why why);
void loggops_record_ready(struct worker *w, uint32_t rank, uint32_t op);

void loggops_record_post(struct worker *w, const struct event *e);

/* loggops_record_match() notes which message a recv met, at `e`, and for a
 * rendezvous why its reply wants to leave. */
void loggops_record_match(struct worker *w, const struct event *e, uint32_t recv,
                          const struct event *message);

/* loggops_record_reply() notes why data want to leave: a reply arrived. */
void loggops_record_reply(struct worker *w, const struct event *e);

/* loggops_record_in() notes when a nic begins to bring in a message, before the model takes the
 * nic. The message arrived at `arrived`. Its nic alone could end it at `by_nic`; its sender's cpu,
 * or the network, could at `by_cpu`. */
void loggops_record_in(struct worker *w, const struct event *e, uint32_t recv, uint64_t arrived,
                       uint64_t begin, uint64_t by_nic, uint64_t by_cpu);

/* loggops_record_way() notes what became of a message on a network, which is delivered
 * now, and loggops_record_left() that the last byte of data left its host.
 * loggops_record_taken(): a packet takes a channel. */
void loggops_record_way(struct worker *w, const struct event *arrival, const struct net_arrival *a,
                        uint64_t now);
void loggops_record_left(struct worker *w, const struct event *arrival, uint64_t time,
                         uint64_t waited);
void loggops_record_taken(struct worker *w, const struct event *arrival, uint32_t channel,
                          uint64_t now, uint64_t length);

#endif
