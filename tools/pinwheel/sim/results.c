/* SPDX-License-Identifier: BSD-3-Clause */
/* What `pinwheel sim` prints and writes of a run at its end. */
#include "results.h"

#include "hot.h"
#include "pinwheel/util/json.h"
#include "spans.h"
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void results_json(const struct sim *s, const struct coordinator_result *r)
{
    printf("{\"ranks\": %d, \"time_ps\": %" PRIu64 ", \"messages\": %" PRIu64
           ", \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"handlers\": %" PRIu64
           ", \"refused\": %" PRIu64 ", \"resent\": %" PRIu64
           ",\n \"egress\": {\"rank\": %u, \"busy_ps\": %" PRIu64
           "}, \"dma\": {\"rank\": %u, \"busy_ps\": %" PRIu64
           "}, \"hpus\": {\"rank\": %u, \"busy_ps\": %" PRIu64 ", \"count\": %u}, \"channel\": "
           "{\"number\": %u, \"busy_ps\": %" PRIu64 "}, \"stuck\": %s, \"reproducible\": %s",
           s->launch.size, r->end, r->counts.messages, r->counts.packets, r->counts.bytes,
           r->counts.handlers, r->refused, r->resent, r->egress_rank, r->egress, r->dma_rank,
           r->dma, r->hpus_rank, r->hpus, s->setup.machine.hpus, r->channel_number, r->channel,
           r->stuck ? "true" : "false", r->outside == 0 && s->compute == 0 ? "true" : "false");
    if (r->hot != NULL) {
        printf(",\n \"profile\": ");
        hot_json(r->hot, stdout);
    }
    puts("}");
}

void results_text(const struct sim *s, const struct coordinator_result *r)
{
    if (s->compute != 0) {
        fprintf(stderr, "pinwheel sim: irreproducible: --compute measured counts real time\n");
    }
    if (r->outside != 0 && strcmp(r->outside_of, SIM_MEMORY_WAITS) == 0) {
        fprintf(stderr,
                "pinwheel sim: irreproducible: rank %u has waited for memory (" SIM_MEMORY_WAITS
                ")%s\n",
                r->outside_rank, r->outside > 1 ? ", and others did" : "");
    } else if (r->outside != 0) {
        fprintf(stderr,
                "pinwheel sim: irreproducible: rank %u went on for %s from outside of the job%s\n",
                r->outside_rank, r->outside_of, r->outside > 1 ? ", and others did" : "");
    }
    fprintf(stderr,
            "pinwheel sim: %d ranks, %.5f us; %" PRIu64 " messages, %" PRIu64 " packets, %" PRIu64
            " bytes, %" PRIu64 " handler calls\n",
            s->launch.size, (double)r->end / 1e6, r->counts.messages, r->counts.packets,
            r->counts.bytes, r->counts.handlers);
    if (r->stats != NULL && r->nics) {
        char text[STATS_LIMIT];
        stats_limit(r->stats, text, sizeof(text));
        fprintf(stderr, "pinwheel sim: %s\n", text);
    }
}

int results_stats(const struct sim *s, const struct coordinator_result *r)
{
    if (s->stats == STATS_NONE) {
        return 0;
    }
    if (r->stats == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for --stats\n");
        return 1;
    }
    if (s->stats == STATS_TEXT) {
        stats_print(r->stats, stderr);
        return 0;
    }
    struct json j = {.to = s->stats == STATS_FILE ? fopen(s->stats_file, "we") : stdout};
    bool failed = j.to == NULL;
    if (!failed) {
        json_open_object(&j, NULL);
        stats_json(r->stats, &j);
        json_close_object(&j);
        failed = json_end(&j) != 0;
        failed |= s->stats == STATS_FILE && fclose(j.to) != 0;
    }
    if (failed) {
        fprintf(stderr, "pinwheel sim: --stats=%s: %s\n", s->stats_file, strerror(errno));
    }
    return failed;
}

static int written(int rc, const char *option, const char *path)
{
    if (rc != 0) {
        fprintf(stderr, "pinwheel sim: %s %s: %s\n", option, path, strerror(errno));
    }
    return rc != 0;
}

int results_spans(const struct sim *s, const struct coordinator_result *r)
{
    int failed = 0;
    if (s->setup.spans == 0) {
        return 0;
    }
    if (r->spans == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for the spans of --timeline, --trace\n");
        return 1;
    }
    if (r->spans->missed != 0) {
        fprintf(stderr,
                "pinwheel sim: %" PRIu64 " of %" PRIu64 " spans had no room in --spans %" PRIu64
                " and are left out\n",
                r->spans->missed, r->spans->missed + r->spans->count, s->setup.spans);
    }
    if (s->timeline != NULL) {
        failed |= written(timeline_draw(r->spans, s->timeline, s->launch.argv[0]), "--timeline",
                          s->timeline);
    }
    if (s->trace != NULL) {
        failed |= written(sim_trace_write(r->spans, s->trace), "--trace", s->trace);
    }
    return failed;
}
