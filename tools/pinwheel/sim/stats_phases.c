/* SPDX-License-Identifier: BSD-3-Clause */
/* What was taken by phase, where a program has named some (PtlSimMark()). */
#include "fabric/sim/mark.h"
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void stats_take_phases(struct rank_stats *to, const struct sim_figures *f, uint64_t now)
{
    to->phases = f->phases < SIM_PHASES ? f->phases : SIM_PHASES;
    for (uint32_t i = 0; i < to->phases; i++) {
        struct stats_phase *p = &to->phase[i];
        *p = (struct stats_phase){.begun = f->phase[i].begun,
                                  .first = f->phase[i].first,
                                  .ranks = 1,
                                  .taken = sim_phase_taken(f, now, i)};
        snprintf(p->name, sizeof(p->name), "%.*s", SIM_NAME - 1, f->phase[i].name);
        p->longest = p->taken.time;
    }
}

/* The place of a phase in a sum, by its name. */
static struct stats_phase *place_of(struct rank_stats *to, const struct stats_phase *p)
{
    uint32_t i = 0;
    while (i < to->phases && strcmp(to->phase[i].name, p->name) != 0) {
        i++;
    }
    if (i == to->phases && i < SIM_PHASES) {
        to->phase[to->phases++] = (struct stats_phase){.first = SIM_NEVER};
        snprintf(to->phase[i].name, SIM_NAME, "%s", i < SIM_PHASES - 1 ? p->name : "(others)");
    }
    return &to->phase[i < SIM_PHASES ? i : SIM_PHASES - 1];
}

void stats_add_phases(struct rank_stats *to, const struct rank_stats *r)
{
    static const struct sim_taken nothing;
    for (uint32_t i = 0; i < r->phases; i++) {
        const struct stats_phase *p = &r->phase[i];
        struct stats_phase *sum = place_of(to, p);
        sum->begun += p->begun;
        sum->first = p->first < sum->first ? p->first : sum->first;
        sum->longest = p->longest > sum->longest ? p->longest : sum->longest;
        sum->ranks += p->ranks;
        sim_taken_add(&sum->taken, &nothing, &p->taken);
    }
}

/* ---- printed ---- */

static double part(uint64_t taken, uint64_t of)
{
    return of != 0 ? 100 * (double)taken / (double)of : 0;
}

void stats_print_phases(const struct sim_stats *s, const struct rank_stats *sum, FILE *to)
{
    if (sum->phases == 0) {
        return;
    }
    fprintf(to, "\n%-32s %5s %8s %12s %12s %12s %9s %10s %13s %6s %6s %6s %9s\n", "phase", "ranks",
            "begun", "first (us)", "mean (us)", "longest (us)", "messages", "packets", "bytes",
            "egress", "DMA", "HPUs", "handlers");
    for (uint32_t i = 0; i < sum->phases; i++) {
        const struct stats_phase *p = &sum->phase[i];
        const struct sim_taken *t = &p->taken;
        fprintf(to,
                "%-32s %5u %8" PRIu64 " %12.5f %12.5f %12.5f %9" PRIu64 " %10" PRIu64 " %13" PRIu64
                " %6.1f %6.1f %6.1f %9" PRIu64 "\n",
                p->name, p->ranks, p->begun, (double)p->first / 1e6,
                (double)t->time / 1e6 / p->ranks, (double)p->longest / 1e6, t->messages, t->packets,
                t->bytes, part(t->egress, t->time), part(t->dma, t->time),
                part(t->hpu, t->time * s->hpus), t->handlers);
    }
}

void stats_json_phases(const struct rank_stats *r, struct json *j)
{
    json_open_array(j, "phases");
    for (uint32_t i = 0; i < r->phases; i++) {
        const struct stats_phase *p = &r->phase[i];
        const struct sim_taken *t = &p->taken;
        json_open_object(j, NULL);
        json_string(j, "name", p->name);
        json_unsigned(j, "ranks", p->ranks);
        json_unsigned(j, "begun", p->begun);
        json_unsigned(j, "first_ps", p->first);
        json_unsigned(j, "time_ps", t->time);
        json_unsigned(j, "longest_ps", p->longest);
        json_unsigned(j, "messages", t->messages);
        json_unsigned(j, "packets", t->packets);
        json_unsigned(j, "bytes", t->bytes);
        json_unsigned(j, "egress_ps", t->egress);
        json_unsigned(j, "dma_ps", t->dma);
        json_unsigned(j, "hpu_ps", t->hpu);
        json_unsigned(j, "handler_calls", t->handlers);
        json_unsigned(j, "shortage_ps", t->shortage);
        json_unsigned(j, "looks", t->looks);
        json_unsigned(j, "skipped_ps", t->skipped);
        json_close_object(j);
    }
    json_close_array(j);
}
