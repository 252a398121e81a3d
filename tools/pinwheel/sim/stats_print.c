/* SPDX-License-Identifier: BSD-3-Clause */
/* What a simulated job has taken, for people and for programs. */
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Below this part of the time nothing that is taken can be said to limit a job. */
#define LIMITS_FROM 0.5

static double part(uint64_t taken, uint64_t of)
{
    return of != 0 ? (double)taken / (double)of : 0;
}

static double us(uint64_t ps)
{
    return (double)ps / 1e6;
}

/* ---- what limits ---- */

static const char *ordinal(uint32_t n)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    return n % 100 / 10 == 1 || n % 10 > 3 ? ends[0] : ends[n % 10];
}

/* What one HPU more would gain, as far as this run can tell. */
static void gain(const struct sim_stats *s, bool handlers, char *text, size_t size)
{
    uint64_t shortage = stats_shortage(s);
    uint32_t next = s->hpus + 1;
    if (!handlers) {
        snprintf(text, size, "no handler ran");
    } else if (shortage == 0) {
        snprintf(text, size, "a %u%s HPU gains nothing: no call waited for one", next,
                 ordinal(next));
    } else if (next > SIM_HPUS || s->per_host > 1) {
        snprintf(text, size, "calls waited for HPUs");
    } else {
        snprintf(text, size, "a %u%s HPU gains %.1f %% (--sweep hpus=%u:%u runs it)", next,
                 ordinal(next), 100 * part(stats_gain(s), s->end), s->hpus, next);
    }
}

void stats_limit(const struct sim_stats *s, char *text, size_t size)
{
    struct stats_use use[STATS_RESOURCES];
    struct rank_stats sum;
    char all[200] = "", more[120];
    unsigned order[STATS_RESOURCES];
    size_t at = 0;
    stats_use(s, use);
    stats_sum(s, &sum);
    for (unsigned i = 0; i < STATS_RESOURCES; i++) {
        unsigned k = i;
        for (; k > 0 && use[order[k - 1]].part < use[i].part; k--) {
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    for (unsigned i = 0; i < STATS_RESOURCES; i++) {
        const struct stats_use *u = &use[order[i]];
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s %.1f %%", i != 0 ? ", " : "",
                               stats_resource((enum stats_resource)order[i]), 100 * u->part);
    }
    gain(s, sum.counts.handlers != 0, more, sizeof(more));
    const struct stats_use *most = &use[order[0]];
    bool host = s->per_host > 1 && order[0] != STATS_HOST;
    if (most->part < LIMITS_FROM) {
        snprintf(text, size, "limited by latency, nothing is full: %s; %s", all, more);
    } else {
        snprintf(text, size, "limited by %s of %s %u: %s; %s",
                 stats_resource((enum stats_resource)order[0]),
                 most->inner ? "channel"
                 : host      ? "host"
                             : "rank",
                 most->rank, all, more);
    }
}

/* ---- tables ---- */

void stats_name(const struct rank_stats *r, char *text, size_t size)
{
    if (r->process == 0) {
        snprintf(text, size, "%u", r->rank);
    } else {
        snprintf(text, size, "%u.%u", r->rank, r->process);
    }
}

static void print_row(FILE *to, const char *name, const struct sim_stats *s,
                      const struct rank_stats *r, uint32_t of)
{
    const struct sim_counts *c = &r->counts;
    uint64_t end = s->end * of;
    fprintf(to,
            "%6s %6.1f %6.1f %6.1f %6.1f %6.1f %6.1f %6.1f %8.2f %5" PRIu64 " %8.2f %5" PRIu64
            " %8.2f %5" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8" PRIu64 " %7" PRIu64 " %8" PRIu64
            " %9" PRIu64 " %10.3f\n",
            name, 100 * part(c->host, end), 100 * part(c->memory, end),
            100 * part(r->link_out, end), 100 * part(r->link_in, end), 100 * part(c->egress, end),
            100 * part(c->dma, end), 100 * part(sim_hpus_taken(c), end * s->hpus),
            part(c->egress_queue.waited, end), c->egress_queue.most, part(c->dma_queue.waited, end),
            c->dma_queue.most, part(c->hpu_queue.waited, end), c->hpu_queue.most, c->messages,
            r->matched, r->dropped, r->lost, r->disabled, c->looks, us(c->skipped));
}

static void print_handlers(FILE *to, const struct sim_stats *s, const struct rank_stats *sum)
{
    fprintf(to, "\n%-32s %9s %14s %10s %12s %12s\n", "handler", "calls", "cycles", "each",
            "waited (us)", "longest (us)");
    for (unsigned i = 0; i < SIM_HANDLERS && sum->counts.handler[i].function != 0; i++) {
        const struct sim_handler *h = &sum->counts.handler[i];
        double cycles = (double)h->taken * s->clock_mhz / 1e6;
        fprintf(to, "%-32s %9" PRIu64 " %14.0f %10.1f %12.3f %12.3f\n",
                h->name[0] != '\0' ? h->name : "(not registered)", h->calls, cycles,
                h->calls != 0 ? cycles / (double)h->calls : 0, us(h->waited), us(h->wait));
    }
}

void stats_print(const struct sim_stats *s, FILE *to)
{
    struct rank_stats sum;
    stats_sum(s, &sum);
    fprintf(
        to,
        "\n%6s %48s %14s %14s %14s\n"
        "%6s %6s %6s %6s %6s %6s %6s %6s %8s %5s %8s %5s %8s %5s %9s %9s %8s %7s %8s %9s %10s\n",
        "", "taken, % of the time", "egress queue", "DMA queue", "HPU queue", "rank", "host",
        "memory", "out", "in", "egress", "DMA", "HPUs", "mean", "most", "mean", "most", "mean",
        "most", "messages", "matched", "dropped", "lost", "disabled", "looks", "skipped us");
    for (uint32_t i = 0; i < s->ranks; i++) {
        char name[16];
        stats_name(&s->rank[i], name, sizeof(name));
        print_row(to, name, s, &s->rank[i], 1);
    }
    print_row(to, "all", s, &sum, s->ranks);
    if (sum.counts.handlers != 0) {
        print_handlers(to, s, &sum);
    }
    stats_print_phases(s, &sum, to);
}

/* ---- JSON ---- */

static void json_queue(struct json *j, const char *name, const struct sim_queue *q, uint64_t end)
{
    json_open_object(j, name);
    json_unsigned(j, "waited_ps", q->waited);
    json_real(j, "mean", part(q->waited, end));
    json_unsigned(j, "most", q->most);
    json_close_object(j);
}

static void json_counts(struct json *j, const struct sim_stats *s, const struct rank_stats *r,
                        uint32_t of)
{
    const struct sim_counts *c = &r->counts;
    json_unsigned(j, "time_ps", r->now);
    json_unsigned(j, "link_out_ps", r->link_out);
    json_unsigned(j, "link_in_ps", r->link_in);
    json_unsigned(j, "host_ps", c->host);
    json_unsigned(j, "memory_ps", c->memory);
    json_unsigned(j, "egress_ps", c->egress);
    json_unsigned(j, "dma_ps", c->dma);
    json_open_array(j, "hpu_ps");
    for (unsigned k = 0; k < s->hpus && k < SIM_HPUS; k++) {
        json_unsigned(j, NULL, c->hpu[k]);
    }
    json_close_array(j);
    json_queue(j, "egress_queue", &c->egress_queue, s->end * of);
    json_queue(j, "dma_queue", &c->dma_queue, s->end * of);
    json_queue(j, "hpu_queue", &c->hpu_queue, s->end * of);
    json_unsigned(j, "messages", c->messages);
    json_unsigned(j, "packets", c->packets);
    json_unsigned(j, "bytes", c->bytes);
    json_unsigned(j, "requests", r->requests);
    json_unsigned(j, "matched", r->matched);
    json_unsigned(j, "dropped", r->dropped);
    json_unsigned(j, "lost_packets", r->lost);
    json_unsigned(j, "lost_bytes", r->lost_bytes);
    json_unsigned(j, "disabled", r->disabled);
    json_unsigned(j, "buffers_most", r->buffers_most);
    json_unsigned(j, "looks", c->looks);
    json_unsigned(j, "skipped_ps", c->skipped);
    json_unsigned(j, "handler_calls", c->handlers);
    json_open_array(j, "handlers");
    for (unsigned i = 0; i < SIM_HANDLERS && c->handler[i].function != 0; i++) {
        const struct sim_handler *h = &c->handler[i];
        json_open_object(j, NULL);
        json_string(j, "name", h->name);
        json_unsigned(j, "calls", h->calls);
        json_unsigned(j, "cycles",
                      (uint64_t)((unsigned __int128)h->taken * s->clock_mhz / 1000000));
        json_unsigned(j, "taken_ps", h->taken);
        json_unsigned(j, "waited_ps", h->waited);
        json_unsigned(j, "longest_wait_ps", h->wait);
        json_close_object(j);
    }
    json_close_array(j);
    stats_json_phases(r, j);
}

void stats_json(const struct sim_stats *s, struct json *j)
{
    struct stats_use use[STATS_RESOURCES];
    struct rank_stats sum;
    char text[STATS_LIMIT];
    stats_use(s, use);
    stats_sum(s, &sum);
    stats_limit(s, text, sizeof(text));
    json_unsigned(j, "ranks", s->ranks);
    json_unsigned(j, "hpus", s->hpus);
    json_unsigned(j, "clock_mhz", s->clock_mhz);
    json_unsigned(j, "time_ps", s->end);
    json_string(j, "limit", text);
    json_unsigned(j, "shortage_ps", stats_shortage(s));
    json_unsigned(j, "gain_ps", stats_gain(s));
    json_open_object(j, "use");
    for (unsigned i = 0; i < STATS_RESOURCES; i++) {
        json_open_object(j, stats_resource((enum stats_resource)i));
        json_real(j, "part", use[i].part);
        json_unsigned(j, use[i].inner ? "channel" : "rank", use[i].rank);
        json_close_object(j);
    }
    json_close_object(j);
    json_open_object(j, "sum");
    json_counts(j, s, &sum, s->ranks);
    json_close_object(j);
    json_open_array(j, "by_rank");
    for (uint32_t i = 0; i < s->ranks; i++) {
        json_open_object(j, NULL);
        json_unsigned(j, "rank", s->rank[i].rank);
        json_unsigned(j, "process", s->rank[i].process);
        json_counts(j, s, &s->rank[i], 1);
        json_close_object(j);
    }
    json_close_array(j);
}
