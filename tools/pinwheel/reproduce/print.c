/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables, verdicts and JSON of `pinwheel reproduce`; see reproduce.h. */
#include "reproduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_value(const struct figure *f, uint64_t value)
{
    if (value == FIGURE_FAILS || value == FIGURE_OPEN) {
        printf(" %10s", value == FIGURE_FAILS ? "fails" : "-");
    } else {
        printf(" %10.2f", (double)value / (f->unit != NULL ? 1 : 1e3));
    }
}

void reproduce_print_table(const struct found *f)
{
    const struct figure *fig = f->figure;
    printf("Figure %s of %s: %s (%s: found, expected, off)\n%-11s %6s %8s", fig->name, fig->paper,
           fig->title, fig->unit != NULL ? fig->unit : "ns", "nic", "ranks", reproduce_size(fig));
    for (int way = 0; way < fig->ways; way++) {
        printf(" %30s", fig->way[way]);
    }
    printf("\n");
    for (size_t i = 0; i < fig->row_count; i++) {
        const struct figure_row *row = &fig->rows[i];
        char of[REPRODUCE_OF];
        if (!f->ran[i]) {
            continue;
        }
        printf("%-11s %6" PRIu32 " %8s", row->nic, row->ranks,
               reproduce_of(fig, row->bytes, false, of));
        for (int way = 0; way < fig->ways; way++) {
            double by = reproduce_off(f->time[i][way], row->expected[way]);
            print_value(fig, f->time[i][way]);
            print_value(fig, row->expected[way]);
            if (row->expected[way] == FIGURE_OPEN) {
                printf("%9s", "");
            } else {
                printf(" %+5.1f %%%c", 100 * by, fabs(by) > reproduce_tolerance(fig) ? '*' : ' ');
            }
        }
        printf("\n");
    }
}

/* What was fitted, of which a figure of the sPIN paper may have made use. */
static void print_fitted(const struct figure *f)
{
    if (strcmp(f->paper, "spin-sc17") != 0) {
        return;
    }
    printf("fitted: %.3f cycles of the A15 for one of the table `arm`%s; a program "
           "unpacks " FIGURE_HOST_COPY "%s%s\n",
           2500.0 / FIGURE_HPU_MHZ, f->cycles != 0 ? "" : " (not used here)",
           f->fitted ? "" : " (not used here)",
           f->fitted ? "; both to this figure, which proves its shape only" : "; both to 7a");
}

void reproduce_print_verdict(const struct found *f)
{
    const struct figure *fig = f->figure;
    char of[REPRODUCE_OF];
    for (size_t i = 0; i < fig->anchor_count; i++) {
        const struct figure_anchor *a = &fig->anchors[i];
        double value = reproduce_anchor(f, a);
        printf("anchor: \"%s\" (%s), here %s, %" PRIu32 " ranks, %s: ", a->says, a->source, a->nic,
               a->ranks, reproduce_of(fig, a->bytes, true, of));
        if (isnan(value)) {
            printf("not run%s\n", f->missing == 0 ? ", --full does" : "");
        } else {
            printf("%.1f %%: %s\n", 100 * value, reproduce_verdict(value, a));
        }
    }
    print_fitted(fig);
    if (f->rows == 0) {
        printf("figure %s: SKIPPED: none of its %zu rows is to be had here\n\n", fig->name,
               f->missing);
        return;
    }
    if (f->missing != 0) {
        printf("figure %s: %zu rows SKIPPED, which are not to be had here\n", fig->name,
               f->missing);
    }
    if (f->values == 0) {
        const char *why = !reproduce_succeeds(f) && fig->why != NULL ? fig->why : NULL;
        printf("figure %s: %s: what is expected of its %zu rows is what its anchors say%s%s\n\n",
               fig->name, reproduce_succeeds(f) ? "reproduced" : "MISSED", f->rows,
               why != NULL ? "; " : "", why != NULL ? why : "");
        return;
    }
    const struct figure_row *worst = &fig->rows[f->worst_row];
    printf(
        "figure %s: %s: %zu of %zu values within %.0f %%, the farthest %+.1f %% (%s, %s, %" PRIu32
        " ranks, %s)%s%s\n\n",
        fig->name, reproduce_succeeds(f) ? "reproduced" : "MISSED", f->values - f->misses,
        f->values, 100 * reproduce_tolerance(fig), 100 * f->worst, fig->way[f->worst_way],
        worst->nic, worst->ranks, reproduce_of(fig, worst->bytes, true, of),
        !reproduce_succeeds(f) && fig->why != NULL ? "; " : "",
        !reproduce_succeeds(f) && fig->why != NULL ? fig->why : "");
}

void reproduce_print_json(struct json *j, const struct found *f)
{
    const struct figure *fig = f->figure;
    json_open_object(j, NULL);
    json_string(j, "figure", fig->name);
    json_string(j, "paper", fig->paper);
    json_bool(j, "reproduced", reproduce_succeeds(f));
    json_real(j, "worst", f->worst);
    json_bool(j, "fitted", fig->fitted);
    json_unsigned(j, "skipped", f->missing);
    json_open_array(j, "values");
    for (size_t i = 0; i < fig->row_count; i++) {
        for (int way = 0; f->ran[i] && way < fig->ways; way++) {
            json_open_object(j, NULL);
            json_string(j, "nic", fig->rows[i].nic);
            json_unsigned(j, "ranks", fig->rows[i].ranks);
            if (fig->trace != NULL) {
                json_string(j, "trace", fig->trace[fig->rows[i].bytes]);
            } else {
                json_unsigned(j, "bytes", fig->rows[i].bytes);
            }
            json_string(j, "way", fig->way[way]);
            json_unsigned(j, fig->unit != NULL ? "found" : "found_ps", f->time[i][way]);
            json_unsigned(j, fig->unit != NULL ? "expected" : "expected_ps",
                          fig->rows[i].expected[way]);
            json_close_object(j);
        }
    }
    json_close_array(j);
    json_open_array(j, "anchors");
    for (size_t i = 0; i < fig->anchor_count; i++) {
        const struct figure_anchor *a = &fig->anchors[i];
        double value = reproduce_anchor(f, a);
        json_open_object(j, NULL);
        json_string(j, "says", a->says);
        json_string(j, "source", a->source);
        json_real(j, "wanted", a->wanted);
        json_real(j, "found", value);
        json_string(j, "verdict", reproduce_verdict(value, a));
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}
