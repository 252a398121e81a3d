/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel sim --trace`: the timeline in the format of Chrome's trace viewer, which Perfetto reads
 * as well. A rank is a process, a resource of it a thread; a packet is a flow from where it leaves
 * to where it comes. Times are microseconds, exact to the picosecond.
 */
#include "pinwheel/util/json.h"
#include "spans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void write_time(FILE *to, const char *name, uint64_t ps)
{
    fprintf(to, ",\"%s\":%" PRIu64 ".%06" PRIu64, name, ps / 1000000, ps % 1000000);
}

/* Names a rank, and the resources of the machine that it has. */
static void write_names(FILE *to, uint32_t rank, uint32_t hpus, bool phases)
{
    fprintf(to,
            ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":"
            "\"rank %" PRIu32 "\"}}",
            rank, rank);
    for (unsigned lane = phases ? LANE_PHASE : LANE_HOST; lane < LANE_HPU + hpus; lane++) {
        char name[24];
        spans_lane_name(lane, name, sizeof(name));
        fprintf(to,
                ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%u,\"name\":\"thread_name\","
                "\"args\":{\"name\":\"%s\"}}",
                rank, lane, name);
    }
}

static void write_flow(FILE *to, const char *phase, const struct rank_span *s, size_t id)
{
    fprintf(to, ",\n{\"ph\":%s,\"pid\":%" PRIu32 ",\"tid\":%u,\"id\":%zu,\"cat\":\"packet\"", phase,
            s->rank, spans_lane(&s->is), id);
    write_time(to, "ts", s->is.begin);
    fputs(",\"name\":\"packet\"}", to);
}

static void write_span(FILE *to, const struct sim_spans *all, const struct rank_span *s)
{
    fprintf(to, ",\n{\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%u", s->rank, spans_lane(&s->is));
    write_time(to, "ts", s->is.begin);
    write_time(to, "dur", s->is.end - s->is.begin);
    fputs(",\"name\":", to);
    json_text(to, spans_what(s));
    fputs(",\"args\":{", to);
    if (s->is.what == SIM_SPAN_OUT || s->is.what == SIM_SPAN_IN) {
        fprintf(to, "\"peer\":%" PRIu32 ",\"message\":%" PRIu64 ",\"offset\":%" PRIu64 ",",
                s->is.peer, s->is.message, s->is.offset);
    }
    fprintf(to, "\"bytes\":%" PRIu32 "}}", s->is.bytes);
    const struct rank_span *sent = s->is.what == SIM_SPAN_IN ? spans_sent(all, s) : NULL;
    if (sent != NULL) {
        size_t id = (size_t)(s - all->span);
        write_flow(to, "\"s\"", sent, id);
        write_flow(to, "\"f\",\"bp\":\"e\"", s, id);
    }
}

int sim_trace_write(const struct sim_spans *s, const char *path)
{
    FILE *to = fopen(path, "we");
    if (to == NULL) {
        return -1;
    }
    fprintf(to,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"spans\":%zu,\"left_out\":%" PRIu64
            "},\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_labels\",\"args\":"
            "{\"labels\":\"virtual time\"}}",
            s->count, s->missed);
    for (uint32_t rank = 0; rank < s->ranks; rank++) {
        write_names(to, rank, s->hpus, s->phases);
    }
    for (size_t i = 0; i < s->count; i++) {
        write_span(to, s, &s->span[i]);
    }
    fputs("\n]}\n", to);
    int failed = ferror(to);
    if (fclose(to) != 0) {
        return -1;
    }
    errno = failed ? EIO : errno;
    return failed ? -1 : 0;
}
