/* SPDX-License-Identifier: BSD-3-Clause */
/* The report for people: a table a bench, the targets, what went wrong. */
#include "conductor.h"
#include "values.h"

#include "base/build.h"

#include <math.h>
#include <string.h>

/* Three digits that count. */
static const char *value_text(double value, char text[32])
{
    double a = fabs(value);
    snprintf(text, 32, "%.*f", a < 9.995 ? 2 : a < 99.95 ? 1 : 0, value);
    return text;
}

/* ---- Tables ----
 * A bench is a table: a column a size, a row a subject. Ratios stand beside the
 * values where there is room, else below. */

enum { BESIDE_MOST = 4 };

struct table {
    const struct run *run;
    enum stats_mode mode;
    const struct bench_case *column[CASES_MAX];
    int columns;
};

static struct table make_table(const struct run *r, const struct bench *b, enum stats_mode mode)
{
    struct table t = {.run = r, .mode = mode};
    for (int i = 0; i < r->case_count; i++) {
        if (r->cases[i].bench == b && results_of(r, &r->cases[i], mode).count > 0) {
            t.column[t.columns++] = &r->cases[i];
        }
    }
    return t;
}

static bool beside(const struct table *t)
{
    return t->columns <= BESIDE_MOST;
}

static void print_ours(const struct table *t)
{
    char text[32];
    printf("  %-22s", "");
    for (int i = 0; i < t->columns; i++) {
        const struct bench_case *c = t->column[i];
        printf(" %*s", beside(t) ? 12 : 8, plan_size_text(c->bench->sizes, c->size, text));
        printf("%*s", beside(t) ? 5 : 0, "");
    }
    const struct subject *who = t->run->stages[t->column[0]->subject].subject;
    printf("\n  %-22s", who->kind == SUBJECT_CLIENT ? who->name : "ours");
    for (int i = 0; i < t->columns; i++) {
        struct stats_summary s = results_of(t->run, t->column[i], t->mode);
        printf(" %*s", beside(t) ? 12 : 8, value_text(s.median, text));
        if (beside(t)) {
            printf(" %3.0f%%", 100 * fmin(stats_spread(&s), 9.99));
        }
    }
    for (int i = 0; i < t->columns && !beside(t); i++) {
        struct stats_summary s = results_of(t->run, t->column[i], t->mode);
        printf(i == 0 ? "\n  %-22s %7.0f%%" : "%s %7.0f%%", i == 0 ? "    \u00b1" : "",
               100 * fmin(stats_spread(&s), 9.99));
    }
    putchar('\n');
}

static void print_subject(const struct table *t, int subject)
{
    struct stats_pair pairs[CASES_MAX];
    char text[32];
    bool any = false;
    for (int i = 0; i < t->columns; i++) {
        pairs[i] = results_against(t->run, t->column[i], subject, t->mode);
        any |= pairs[i].theirs.count > 0;
    }
    if (!any) {
        return;
    }
    printf("  %-22s", t->run->stages[subject].subject->name);
    for (int i = 0; i < t->columns; i++) {
        bool has = pairs[i].theirs.count > 0;
        printf(" %*s", beside(t) ? 12 : 8, has ? value_text(pairs[i].theirs.median, text) : "-");
        if (beside(t)) {
            printf(" %4s", has ? value_text(pairs[i].ratio, text) : "");
        }
    }
    for (int i = 0; i < t->columns && !beside(t); i++) {
        bool has = pairs[i].theirs.count > 0;
        printf("%s %8s", i == 0 ? "\n      x                 " : "",
               has ? value_text(pairs[i].ratio, text) : "");
    }
    putchar('\n');
}

/* How many rounds of ours were in this mode: of all columns, or from least to most. */
static void print_rounds(const struct table *t)
{
    int least = ROUNDS_MAX, most = 0;
    for (int i = 0; i < t->columns; i++) {
        int n = results_of(t->run, t->column[i], t->mode).count;
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (least < most) {
        printf("%d to ", least);
    }
    printf("%d round%s)\n", most, most == 1 ? "" : "s");
}

static void print_table(const struct table *t)
{
    const struct bench *b = t->column[0]->bench;
    printf("%s: %s, %s (%s, ", b->name, b->title, b->unit, stats_mode_names[t->mode]);
    print_rounds(t);
    print_ours(t);
    for (int s = 0; b->compared && s < t->run->subjects; s++) {
        if (bench_compares(b, t->run->stages[s].subject)) {
            print_subject(t, s);
        }
    }
    putchar('\n');
}

static void print_tables(const struct run *r)
{
    for (int i = 0; i < bench_table_size; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            struct table t = make_table(r, &bench_table[i], (enum stats_mode)mode);
            if (t.columns > 0) {
                print_table(&t);
            }
        }
    }
}

/* ---- Targets ---- */

static void print_targets(const struct run *r)
{
    struct target_result results[TARGETS_MAX];
    int count = results_targets(r, results), met = 0, known = 0;
    char ours[32], theirs[32], value[32];
    printf("Targets\n%-62s %8s %8s %7s  %9s\n", "", "ours", "theirs", "value", "target");
    for (int i = 0; i < count; i++) {
        const struct target_result *t = &results[i];
        if (!t->known) {
            printf("%-62s %8s %8s %7s  %s %5.4g  not measured%s%s\n", t->text, "-", "-", "-",
                   t->at_most ? "<=" : ">=", t->limit, t->why != NULL ? ": " : "",
                   t->why != NULL ? t->why : "");
            continue;
        }
        bool ratio = t->theirs != 0;
        printf("%-62s %8s %8s %7s  %s %5.4g  %s%s\n", t->text, value_text(t->ours, ours),
               ratio ? value_text(t->theirs, theirs) : t->unit, value_text(t->value, value),
               t->at_most ? "<=" : ">=", t->limit, t->met ? "met" : "NOT MET",
               t->mode == MODE_FAR ? " (far)" : "");
        known++;
        met += t->met;
    }
    printf("%d of %d measured targets are met.\n", met, known);
}

/* ---- The rest ---- */

static void print_complaints(const struct run *r)
{
    if (r->complaint_count > 0) {
        printf("\nLeft out\n");
    }
    for (int i = 0; i < r->complaint_count; i++) {
        const struct complaint *c = &r->complaints[i];
        printf("  %s%s%s%s: %s\n", c->subject->name, *c->work != '\0' ? " (" : "", c->work,
               *c->work != '\0' ? ")" : "", c->why);
    }
}

static void print_head(const struct run *r)
{
    printf("%s\nPinwheel compiled by %s, %s.\n", r->machine, build_compiler(),
           build_profiled() ? "profile-guided" : "without a profile");
    printf("Medians of %d round%s; beside or below ours: half the distance between the quartiles;\n"
           "beside or below (x) the others: ratio ours / theirs, of the rounds that both have.\n",
           r->rounds_done, r->rounds_done == 1 ? "" : "s");
    if (!r->two_cores) {
        printf("This process may use one core only: everything between two cores is left out.\n\n");
        return;
    }
    printf("Raw ping-pong: %.0f to %.0f ns. %d turns, %d repeated because the latency of the cores "
           "changed, %d given up.\n%s\n\n",
           r->fastest, r->slowest, r->turns, r->repeated, r->unsettled,
           r->settings.prefer ? "Run before all other work of the machine (autogroup -20)."
                              : "Other work on the machine competes (root: --prefer).");
}

int report_text(const struct run *r)
{
    print_head(r);
    print_tables(r);
    print_targets(r);
    print_complaints(r);
    if (r->options->out != NULL) {
        printf("\nDrawn: %s/bench.svg\n", r->options->out);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("pinwheel bench: cannot write");
        return -1;
    }
    return 0;
}
