/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record (record.h) as a timeline: when, and for how long, each operation held a cpu or nic, and
 * which messages went between which operations.
 */
#ifndef SIM_SPANS_H
#define SIM_SPANS_H

#include "sim/models/record.h"

/* The resources of a rank that a span occupies. */
enum span_lane { SPAN_CPU, SPAN_NIC_OUT, SPAN_NIC_IN, SPAN_LANES };

enum span_kind { SPAN_CALC, SPAN_SEND, SPAN_REQUEST, SPAN_REPLY, SPAN_DATA, SPAN_RECV };

struct span {
    uint64_t time, length; /* ps */
    enum span_lane lane;
    uint8_t number; /* index of the cpu or nic */
    enum span_kind kind;
};

/* A transfer between two ranks: data, or the request or reply of a rendezvous, which has one
 * byte. */
struct flight {
    uint64_t from, to;        /* the operations at its two ends */
    uint64_t leaves, arrives; /* ps, of the transfer's first byte */
    enum span_kind kind;      /* SPAN_SEND, SPAN_DATA; SPAN_REQUEST, SPAN_REPLY */
};

enum { SPANS_MOST = 3, FLIGHTS_MOST = 3 };

const char *span_name(enum span_kind kind);

/* spans_of() stores the spans of an operation, those on cpus first, and returns how many there
 * are. */
int spans_of(const struct sim_record *r, uint64_t operation, struct span spans[SPANS_MOST]);

/* flights_of() stores the transfers that belong to the message of a recv, the one with the data
 * last, and returns how many there are; 0 for other operations. */
int flights_of(const struct sim_record *r, uint64_t operation, struct flight flights[FLIGHTS_MOST]);

#endif
