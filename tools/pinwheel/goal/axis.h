/* SPDX-License-Identifier: BSD-3-Clause */
/* A linear axis of a picture, with a unit and ticks that people can read. */
#ifndef PINWHEEL_GOAL_AXIS_H
#define PINWHEEL_GOAL_AXIS_H

struct axis {
    double low, high;       /* values at its ends, in `unit` */
    double at_low, at_high; /* pixels */
    const char *unit;
    double scale; /* a raw value times this is in `unit` */
};

static inline double axis_place(const struct axis *a, double value)
{
    return a->at_low + (value - a->low) / (a->high - a->low) * (a->at_high - a->at_low);
}

/* axis_choose_unit() takes the unit in which the largest value, in ns, has few digits;
 * raw values are ns then. */
void axis_choose_unit(struct axis *a, double most_ns);

/* axis_step() is 1, 2, 5 or 10 times a power of ten, so that a range has 5 to 12 ticks. */
double axis_step(double range);

#endif
