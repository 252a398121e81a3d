/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal run --trace`: the timeline in the format of Chrome's trace viewer,
 * which Perfetto reads as well. A rank is a process; its threads are its cpus, and
 * the two sides of its nics. A packet network is one more process, whose threads are the
 * channels that packets took. Times are microseconds, exact to the picosecond.
 */
#include "run.h"

#include "sim/report/spans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Threads of a rank: its cpus, then the sending sides of its nics, then the receiving sides. */
enum { NUMBERS = 256 };

static unsigned thread_of(enum span_lane lane, uint8_t number)
{
    return (unsigned)lane * NUMBERS + number;
}

static void write_time(FILE *to, const char *name, uint64_t ps)
{
    fprintf(to, ",\"%s\":%" PRIu64 ".%06" PRIu64, name, ps / 1000000, ps % 1000000);
}

/* Begins an event behind another one; the first of all events is that of write_head(). */
static void begin_event(FILE *to, char phase, uint32_t rank, unsigned thread)
{
    fprintf(to, ",\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%u", phase, rank, thread);
}

static void write_span(FILE *to, const struct goal_run *r, uint64_t operation,
                       const struct span *span)
{
    const struct goal_node *n = record_node(&r->record, operation);
    uint32_t rank, op;
    record_find(&r->record, operation, &rank, &op);
    begin_event(to, 'X', rank, thread_of(span->lane, span->number));
    write_time(to, "ts", span->time);
    write_time(to, "dur", span->length);
    fprintf(to, ",\"name\":\"%s\",\"args\":{\"operation\":%" PRIu32, span_name(span->kind), op);
    if (n->type != GOAL_CALC) {
        uint64_t other = n->type == GOAL_SEND ? operation : r->record.partner[operation];
        uint32_t peer = n->peer;
        const struct goal_node *send = record_node(&r->record, other);
        if (n->type == GOAL_RECV) {
            record_find(&r->record, other, &peer, &op);
        }
        fprintf(to, ",\"peer\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"tag\":%" PRIu32, peer,
                (uint64_t)send->size, (uint32_t)send->tag);
    }
    fputs("}}", to);
}

/* Writes an arrow from the cpu that sent a message to the cpu that receives it. */
static void write_arrow(FILE *to, const struct goal_run *r, uint64_t recv)
{
    struct flight flights[FLIGHTS_MOST];
    int count = flights_of(&r->record, recv, flights);
    if (count == 0) {
        return;
    }
    const struct flight *f = &flights[count - 1];
    const uint64_t ends[2] = {f->from, f->to};
    for (int i = 0; i < 2; i++) {
        struct span spans[SPANS_MOST];
        uint32_t rank, op;
        const struct span *cpu = &spans[spans_of(&r->record, ends[i], spans) - 2];
        record_find(&r->record, ends[i], &rank, &op);
        begin_event(to, i == 0 ? 's' : 'f', rank, thread_of(SPAN_CPU, cpu->number));
        write_time(to, "ts", cpu->time);
        fprintf(to, ",\"id\":%" PRIu64 ",\"cat\":\"message\",\"name\":\"message\"%s}", recv,
                i == 0 ? "" : ",\"bp\":\"e\"");
    }
}

/* Writes the names of a rank and of its threads that are used. */
static void write_names(FILE *to, const struct goal_run *r, uint32_t rank)
{
    static const char *const lanes[] = {
        [SPAN_CPU] = "cpu %u", [SPAN_NIC_OUT] = "nic %u out", [SPAN_NIC_IN] = "nic %u in"};
    bool used[SPAN_LANES * NUMBERS] = {false};
    for (uint64_t i = r->record.first[rank]; i < r->record.first[rank + 1]; i++) {
        struct span spans[SPANS_MOST];
        int count = spans_of(&r->record, i, spans);
        for (int k = 0; k < count; k++) {
            used[thread_of(spans[k].lane, spans[k].number)] = true;
        }
    }
    begin_event(to, 'M', rank, 0);
    fprintf(to, ",\"name\":\"process_name\",\"args\":{\"name\":\"rank %" PRIu32 "\"}}", rank);
    begin_event(to, 'M', rank, 0);
    fprintf(to, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}", rank);
    for (unsigned thread = 0; thread < SPAN_LANES * NUMBERS; thread++) {
        if (used[thread]) {
            begin_event(to, 'M', rank, thread);
            fputs(",\"name\":\"thread_name\",\"args\":{\"name\":\"", to);
            fprintf(to, lanes[thread / NUMBERS], thread % NUMBERS);
            fputs("\"}}", to);
        }
    }
}

/* ---- Channels of a network ---- */

static void write_taken(FILE *to, const struct goal_run *r, const struct record_taken *t)
{
    uint64_t operation = t->way / 2;
    const struct goal_node *n = record_node(&r->record, operation);
    struct charges c;
    uint32_t rank, op, peer = n->peer, other;
    bool rendezvous = record_charges(&r->record, operation, &c), answer = t->way % 2 != 0;
    enum span_kind kind = n->type == GOAL_RECV ? SPAN_REPLY
                          : answer             ? SPAN_DATA
                          : rendezvous         ? SPAN_REQUEST
                                               : SPAN_SEND;
    record_find(&r->record, operation, &rank, &op);
    if (kind == SPAN_REPLY) {
        record_find(&r->record, r->record.partner[operation], &peer, &other);
    }
    begin_event(to, 'X', r->goal.ranks, t->channel);
    write_time(to, "ts", t->time);
    write_time(to, "dur", t->length);
    fprintf(to,
            ",\"name\":\"%s %" PRIu32 " to %" PRIu32 "\",\"args\":{\"rank\":%" PRIu32
            ",\"operation\":%" PRIu32 "}}",
            span_name(kind), rank, peer, rank, op);
}

/* Writes the name of a channel, made of its ends, whose names a Graphviz file may have chosen. */
static void write_channel_name(FILE *to, const struct goal_run *r, uint32_t channel)
{
    char text[300];
    goal_net_channel(r, channel, text, sizeof(text));
    begin_event(to, 'M', r->goal.ranks, channel);
    fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", to);
    json_string(&(struct json){.to = to}, NULL, text);
    fputs("}}", to);
}

static int write_channels(FILE *to, const struct goal_run *r)
{
    const struct sim_record *rec = &r->record;
    bool *named = calloc(r->net.graph.channels, sizeof(*named));
    if (named == NULL) {
        return -1;
    }
    begin_event(to, 'M', r->goal.ranks, 0);
    fputs(",\"name\":\"process_name\",\"args\":{\"name\":\"network\"}}", to);
    begin_event(to, 'M', r->goal.ranks, 0);
    fprintf(to, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
            r->goal.ranks);
    for (uint64_t i = 0; i < rec->taken_count; i++) {
        if (!named[rec->taken[i].channel]) {
            named[rec->taken[i].channel] = true;
            write_channel_name(to, r, rec->taken[i].channel);
        }
        write_taken(to, r, &rec->taken[i]);
    }
    free(named);
    return 0;
}

/* ---- The file ---- */

/* Writes the end of the file, with how many spans of channels it has and how many were left out. */
static void write_end(FILE *to, const struct goal_run *r)
{
    fputs("\n]", to);
    if (r->in.network != NULL) {
        fprintf(to, ",\"otherData\":{\"channel_spans\":%" PRIu64 ",\"left_out\":%" PRIu64 "}",
                r->record.taken_count, r->record.taken_missed);
    }
    if (r->record.taken_missed > 0) {
        fprintf(stderr,
                "pinwheel goal run: --trace: of %" PRIu64 " times that a packet took a channel "
                "the first %" PRIu64 " are shown\n",
                r->record.taken_count + r->record.taken_missed, r->record.taken_count);
    }
    fputs("}\n", to);
}

/* Writes the first event, which has the parameters of the run. */
static void write_head(FILE *to, const struct goal_run *r)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_labels\",\"args\":{\"labels\":\"",
          to);
    int first = r->in.network != NULL ? SIM_o : SIM_L;
    for (int i = first; i < SIM_PARAMETERS; i++) {
        char text[64];
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, text, sizeof(text));
        fprintf(to, "%s%s %s", i > first ? ", " : "", sim_parameter_name((enum sim_parameter)i),
                text);
    }
    fputs("\"}}", to);
}

int goal_trace_write(const struct goal_run *r)
{
    FILE *to = fopen(r->trace, "we");
    if (to == NULL) {
        return -1;
    }
    write_head(to, r);
    for (uint32_t rank = 0; rank < r->goal.ranks; rank++) {
        if (r->record.first[rank] < r->record.first[rank + 1]) {
            write_names(to, r, rank);
        }
    }
    for (uint64_t i = 0; i < r->goal.nodes; i++) {
        struct span spans[SPANS_MOST];
        int count = spans_of(&r->record, i, spans);
        for (int k = 0; k < count; k++) {
            write_span(to, r, i, &spans[k]);
        }
        write_arrow(to, r, i);
    }
    int no_memory = r->in.network != NULL ? write_channels(to, r) : 0;
    write_end(to, r);
    int failed = ferror(to);
    if (fclose(to) != 0) {
        return -1;
    }
    if (failed || no_memory) {
        errno = failed ? EIO : ENOMEM;
    }
    return failed || no_memory ? -1 : 0;
}
