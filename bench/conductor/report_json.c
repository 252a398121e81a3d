/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for programs: one object a row, in an array `rows`. */
#include "conductor.h"

#include "base/build.h"
#include "pinwheel/util/json.h"

static void row(struct json *j, const struct bench_case *c, const struct stats_pair *p,
                const char *peer, enum stats_mode mode)
{
    json_open_object(j, NULL);
    json_string(j, "bench", c->bench->name);
    json_unsigned(j, "size", c->size);
    json_string(j, "metric", c->bench->metric);
    json_string(j, "unit", c->bench->unit);
    json_real(j, "ours", p->ours.median);
    if (peer != NULL) {
        json_string(j, "peer", peer);
        json_real(j, "peer_value", p->theirs.median);
        json_real(j, "ratio", p->ratio);
    } else {
        json_null(j, "peer");
        json_null(j, "peer_value");
        json_null(j, "ratio");
    }
    json_string(j, "mode", stats_mode_names[mode]);
    json_number(j, "rounds", p->ours.count);
    json_real(j, "ours_spread", stats_spread(&p->ours));
    if (peer != NULL) {
        json_real(j, "peer_spread", stats_spread(&p->theirs));
    }
    json_close_object(j);
}

static void rows_of(struct json *j, const struct run *r, const struct bench_case *c,
                    enum stats_mode mode)
{
    bool any = false;
    for (int s = 0; c->theirs >= 0 && s < r->subjects; s++) {
        if (!bench_compares(c->bench, r->stages[s].subject)) {
            continue;
        }
        struct stats_pair p = results_against(r, c, s, mode);
        if (p.theirs.count > 0) {
            row(j, c, &p, r->stages[s].subject->name, mode);
            any = true;
        }
    }
    struct stats_pair alone = {.ours = results_of(r, c, mode)};
    if (!any && alone.ours.count > 0) {
        row(j, c, &alone, NULL, mode);
    }
}

static void targets(struct json *j, const struct run *r)
{
    struct target_result results[TARGETS_MAX];
    int count = results_targets(r, results);
    json_open_array(j, "targets");
    for (int i = 0; i < count; i++) {
        const struct target_result *t = &results[i];
        json_open_object(j, NULL);
        json_string(j, "target", t->text);
        json_string(j, "must_be", t->at_most ? "at most" : "at least");
        json_real(j, "limit", t->limit);
        if (t->known) {
            json_real(j, "value", t->value);
            json_bool(j, "met", t->met);
            json_string(j, "mode", stats_mode_names[t->mode]);
            json_number(j, "rounds", t->rounds);
        } else {
            json_null(j, "value");
            json_null(j, "met");
        }
        if (!t->known && t->why != NULL) {
            json_string(j, "why", t->why);
        }
        json_close_object(j);
    }
    json_close_array(j);
}

static void left_out(struct json *j, const struct run *r)
{
    json_open_array(j, "left_out");
    for (int i = 0; i < r->complaint_count; i++) {
        json_open_object(j, NULL);
        json_string(j, "subject", r->complaints[i].subject->name);
        json_string(j, "work", r->complaints[i].work);
        json_string(j, "why", r->complaints[i].why);
        json_close_object(j);
    }
    json_close_array(j);
}

int report_json(const struct run *r)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_string(&j, "machine", r->machine);
    json_string(&j, "compiler", build_compiler());
    json_bool(&j, "profile_guided", build_profiled());
    json_number(&j, "rounds", r->rounds_done);
    json_bool(&j, "two_cores", r->two_cores);
    json_bool(&j, "preferred", r->settings.prefer);
    json_real(&j, "raw_fastest_ns", r->fastest);
    json_real(&j, "raw_slowest_ns", r->slowest);
    json_number(&j, "turns", r->turns);
    json_number(&j, "turns_repeated", r->repeated);
    json_number(&j, "turns_given_up", r->unsettled);
    json_open_array(&j, "rows");
    for (int i = 0; i < r->case_count; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            rows_of(&j, r, &r->cases[i], (enum stats_mode)mode);
        }
    }
    json_close_array(&j);
    targets(&j, r);
    left_out(&j, r);
    json_close_object(&j);
    if (json_end(&j) != 0) {
        perror("pinwheel bench: cannot write");
        return -1;
    }
    return 0;
}
