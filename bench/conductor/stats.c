/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the conductor; see stats.h. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

const char *const stats_mode_names[MODES] = {[MODE_NEAR] = "near", [MODE_FAR] = "far"};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that a part `q` of the sorted values lies below. */
static double quantile(const double *sorted, int count, double q)
{
    double at = q * (count - 1);
    int below = (int)at;
    double part = at - below;
    return below + 1 < count ? sorted[below] * (1 - part) + sorted[below + 1] * part
                             : sorted[count - 1];
}

struct stats_summary stats_summary(double *values, int count)
{
    if (count == 0) {
        return (struct stats_summary){0, 0, 0, 0};
    }
    qsort(values, (size_t)count, sizeof(*values), compare);
    return (struct stats_summary){count, quantile(values, count, 0.5),
                                  quantile(values, count, 0.25), quantile(values, count, 0.75)};
}

double stats_spread(const struct stats_summary *s)
{
    return s->median != 0 ? (s->high - s->low) / 2 / fabs(s->median) : 0;
}

bool stats_agree(double before, double after)
{
    double low = fmin(before, after), high = fmax(before, after);
    return low > 0 && high - low <= STATS_AGREE * low;
}

enum stats_mode stats_mode(double raw)
{
    return raw <= STATS_NEAR_NS ? MODE_NEAR : MODE_FAR;
}

bool stats_shared(double raw)
{
    return raw < STATS_SHARED_NS;
}

static bool counts(const struct stats_sample *s, enum stats_mode mode)
{
    return s->good && stats_mode(s->raw) == mode;
}

/* The values of the rounds in which both sides count; `also` may be NULL. */
static struct stats_summary common(const struct stats_sample *samples,
                                   const struct stats_sample *also, int rounds,
                                   enum stats_mode mode)
{
    double values[rounds > 0 ? rounds : 1];
    int count = 0;
    for (int r = 0; r < rounds; r++) {
        if (counts(&samples[r], mode) && (also == NULL || counts(&also[r], mode))) {
            values[count++] = samples[r].value;
        }
    }
    return stats_summary(values, count);
}

struct stats_summary stats_of(const struct stats_sample *samples, int rounds, enum stats_mode mode)
{
    return common(samples, NULL, rounds, mode);
}

struct stats_pair stats_compare(const struct stats_sample *ours, const struct stats_sample *theirs,
                                int rounds, enum stats_mode mode)
{
    struct stats_pair p = {common(ours, theirs, rounds, mode), common(theirs, ours, rounds, mode),
                           0};
    p.ratio = p.theirs.median != 0 ? p.ours.median / p.theirs.median : 0;
    return p;
}

unsigned long stats_iterations(double wanted, double each)
{
    double n = each > 0 ? wanted / each : 1;
    return n < 1 ? 1 : n > 1e9 ? 1000000000ul : (unsigned long)n;
}
