/* SPDX-License-Identifier: BSD-3-Clause */
/* Timelines from records; see spans.h. */
#include "spans.h"

const char *span_name(enum span_kind kind)
{
    static const char *const names[] = {
        [SPAN_CALC] = "calc",   [SPAN_SEND] = "send", [SPAN_REQUEST] = "request",
        [SPAN_REPLY] = "reply", [SPAN_DATA] = "data", [SPAN_RECV] = "recv",
    };
    return names[kind];
}

static uint64_t ps(const struct sim_record *r, enum sim_parameter which)
{
    return r->parameters->value[which] / SIM_AS_PER_PS;
}

/* Returns the time during which a step holds its cpu. */
static struct span on_cpu(const struct sim_record *r, const struct goal_node *n, uint64_t operation,
                          enum record_slot slot, enum span_kind kind)
{
    uint64_t begin = r->steps[operation * RECORD_SLOTS + slot].time;
    return (struct span){begin, record_free(r, operation, slot) - begin, SPAN_CPU, n->cpu, kind};
}

static int spans_of_send(const struct sim_record *r, const struct goal_node *n, uint64_t operation,
                         struct span spans[SPANS_MOST])
{
    struct charges c;
    int count = 0;
    enum record_slot slot = RECORD_BEGIN;
    enum span_kind kind = SPAN_SEND;
    if (record_charges(r, operation, &c)) {
        spans[count++] = on_cpu(r, n, operation, RECORD_BEGIN, SPAN_REQUEST);
        slot = RECORD_ANSWER;
        kind = SPAN_DATA;
    }
    spans[count++] = on_cpu(r, n, operation, slot, kind);
    spans[count] = (struct span){spans[count - 1].time, c.nic, SPAN_NIC_OUT, n->nic, kind};
    return count + 1;
}

static int spans_of_recv(const struct sim_record *r, const struct goal_node *n, uint64_t operation,
                         struct span spans[SPANS_MOST])
{
    struct charges c;
    int count = 0;
    if (record_charges(r, operation, &c)) {
        spans[count++] = on_cpu(r, n, operation, RECORD_ANSWER, SPAN_REPLY);
    }
    spans[count++] = on_cpu(r, n, operation, RECORD_TAKE, SPAN_RECV);
    spans[count++] = (struct span){r->steps[operation * RECORD_SLOTS + RECORD_IN].time, c.nic,
                                   SPAN_NIC_IN, n->nic, SPAN_RECV};
    return count;
}

int spans_of(const struct sim_record *r, uint64_t operation, struct span spans[SPANS_MOST])
{
    const struct goal_node *n = record_node(r, operation);
    switch (n->type) {
    case GOAL_SEND:
        return spans_of_send(r, n, operation, spans);
    case GOAL_RECV:
        return spans_of_recv(r, n, operation, spans);
    default:
        spans[0] = on_cpu(r, n, operation, RECORD_BEGIN, SPAN_CALC);
        return 1;
    }
}

static struct flight flight(const struct sim_record *r, uint64_t from, uint64_t to,
                            enum record_slot slot, enum span_kind kind)
{
    uint64_t leaves = record_handed(r, from, slot);
    uint64_t arrives = leaves + ps(r, SIM_L);
    if (r->ways != NULL) {
        const struct record_way *way = &r->ways[record_way(from, slot)];
        bool bytes = kind == SPAN_SEND || kind == SPAN_DATA;
        arrives = bytes ? way->arrival.first : way->last;
    }
    return (struct flight){from, to, leaves, arrives, kind};
}

int flights_of(const struct sim_record *r, uint64_t operation, struct flight flights[FLIGHTS_MOST])
{
    struct charges c;
    if (record_node(r, operation)->type != GOAL_RECV) {
        return 0;
    }
    uint64_t send = r->partner[operation];
    if (!record_charges(r, operation, &c)) {
        flights[0] = flight(r, send, operation, RECORD_BEGIN, SPAN_SEND);
        return 1;
    }
    flights[0] = flight(r, send, operation, RECORD_BEGIN, SPAN_REQUEST);
    flights[1] = flight(r, operation, send, RECORD_ANSWER, SPAN_REPLY);
    flights[2] = flight(r, send, operation, RECORD_ANSWER, SPAN_DATA);
    return 3;
}
