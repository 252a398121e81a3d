/* SPDX-License-Identifier: BSD-3-Clause */
/* How far values are off what is expected, and whether anchors hold; see reproduce.h. */
#include "reproduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *reproduce_of(const struct figure *f, uint32_t size, bool unit, char text[REPRODUCE_OF])
{
    if (f->trace != NULL) {
        snprintf(text, REPRODUCE_OF, "%s", f->trace[size]);
    } else if (unit) {
        snprintf(text, REPRODUCE_OF, "%" PRIu32 " %s", size, f->size != NULL ? f->size : "B");
    } else {
        snprintf(text, REPRODUCE_OF, "%" PRIu32, size);
    }
    return text;
}

double reproduce_tolerance(const struct figure *f)
{
    return f->tolerance > 0 ? f->tolerance : FIGURE_TOLERANCE;
}

double reproduce_off(uint64_t found, uint64_t expected)
{
    if (expected == FIGURE_OPEN || found == expected) {
        return 0;
    }
    if (expected == FIGURE_FAILS || found == FIGURE_FAILS) {
        return 1;
    }
    return (double)found / (double)expected - 1;
}

void reproduce_judge(struct found *f, size_t row, int way)
{
    uint64_t expected = f->figure->rows[row].expected[way];
    double by = reproduce_off(f->time[row][way], expected);
    if (expected == FIGURE_OPEN) {
        return; /* the anchors say whether it is right */
    }
    f->values++;
    f->misses += fabs(by) > reproduce_tolerance(f->figure);
    if (f->values == 1 || fabs(by) > fabs(f->worst)) {
        f->worst = by;
        f->worst_row = row;
        f->worst_way = way;
    }
}

/* The values of an anchor's row, or of the row with other bytes; NULL: it was not run. */
static const uint64_t *anchor_row(const struct found *f, const struct figure_anchor *a,
                                  uint32_t size)
{
    for (size_t i = 0; i < f->figure->row_count; i++) {
        const struct figure_row *row = &f->figure->rows[i];
        if (f->ran[i] && strcmp(row->nic, a->nic) == 0 && row->ranks == a->ranks &&
            row->bytes == size) {
            return f->time[i];
        }
    }
    return NULL;
}

double reproduce_anchor(const struct found *f, const struct figure_anchor *a)
{
    bool rows = a->kind == ANCHOR_GROWS || a->kind == ANCHOR_SLOWER;
    const uint64_t *row = anchor_row(f, a, a->bytes);
    const uint64_t *other = rows ? anchor_row(f, a, a->base) : row;
    if (row == NULL || other == NULL) {
        return NAN;
    }
    double way = (double)row[a->way], than = (double)other[rows ? a->way : a->than];
    return rows ? way / than - 1 : a->kind == ANCHOR_MORE ? than / way - 1 : 1 - way / than;
}

const char *reproduce_verdict(double value, const struct figure_anchor *a)
{
    double tolerance = a->tolerance > 0 ? a->tolerance : ANCHOR_TOLERANCE;
    bool least = a->kind == ANCHOR_SLOWER || a->kind == ANCHOR_FASTER;
    bool holds = least ? value >= a->wanted : fabs(value - a->wanted) <= tolerance;
    return isnan(value) ? "not run" : holds ? "reproduced" : "MISSED";
}

bool reproduce_succeeds(const struct found *f)
{
    bool all = f->misses == 0;
    for (size_t i = 0; i < f->figure->anchor_count; i++) {
        const struct figure_anchor *a = &f->figure->anchors[i];
        all &= strcmp(reproduce_verdict(reproduce_anchor(f, a), a), "MISSED") != 0;
    }
    return all;
}
