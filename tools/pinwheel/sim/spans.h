/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What took a resource of which rank, and when, of a simulated job that was asked to note it: read
 * from the memory that ranks share when all is over (spans.c), drawn (timeline.c), and written for
 * Perfetto (trace.c).
 */
#ifndef PINWHEEL_SIM_SPANS_H
#define PINWHEEL_SIM_SPANS_H

#include "coordinator.h"

#include <stddef.h>

/* The lines of a rank, from the top. */
enum { LANE_PHASE, LANE_HOST, LANE_OUT, LANE_IN, LANE_DMA, LANE_HPU, LANES = LANE_HPU + SIM_HPUS };

struct rank_span {
    uint32_t rank;
    size_t order;     /* in which the ranks noted them */
    const char *name; /* of a handler, of a phase; NULL of others */
    struct sim_span is;
};

struct sim_spans {
    uint32_t ranks, hpus; /* `hpus` is of each */
    uint64_t end;         /* ps, of the last one */
    uint64_t missed;      /* that found no room */
    bool phases;          /* some are of phases */
    size_t count;
    /* of handlers and phases, by rank */
    char (*names)[SIM_HANDLERS + SIM_PHASES][SIM_NAME];
    struct rank_span **sent; /* packets that left, by what tells them apart */
    size_t sent_count;
    struct rank_span span[]; /* by (begin, rank, order) */
};

/* spans_take() reads the spans of a job that is over; NULL: no memory. */
struct coordinator;
struct sim_spans *spans_take(struct coordinator *c);
void spans_free(struct sim_spans *s);

/* spans_lane() is the line of a span, spans_what() what it is, in words. */
unsigned spans_lane(const struct sim_span *s);
const char *spans_what(const struct rank_span *s);
/* spans_lane_name() writes the name of a line. */
void spans_lane_name(unsigned lane, char *text, size_t size);

/* spans_sent() finds where the packet left that a span of kind SIM_SPAN_IN is the arrival of; NULL:
 * that was not noted. */
const struct rank_span *spans_sent(const struct sim_spans *s, const struct rank_span *in);

/* timeline_draw() draws a timeline to the file `path`, and its data to one of the same name with
 * .csv; trace_write() writes it for Perfetto. -1 with errno set. */
enum { TIMELINE_RANKS = 64, TIMELINE_SPANS = 8000 };
int timeline_draw(const struct sim_spans *s, const char *path, const char *program);
int sim_trace_write(const struct sim_spans *s, const char *path);

#endif
