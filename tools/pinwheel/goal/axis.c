/* SPDX-License-Identifier: BSD-3-Clause */
/* Axes of pictures; see axis.h. */
#include "axis.h"

void axis_choose_unit(struct axis *a, double most_ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\xc2\xb5s"}, {1, "ns"}, {1e-3, "ps"}};
    int i = 0;
    while (i < 4 && most_ns < units[i].ns) {
        i++;
    }
    a->unit = units[i].name;
    a->scale = 1 / units[i].ns;
}

double axis_step(double range)
{
    static const double steps[] = {1, 2, 5};
    double power = 1;
    while (power * 10 > range) {
        power /= 10;
    }
    while (power * 100 <= range) {
        power *= 10;
    }
    for (int i = 0; i < 3; i++) { /* 10 to 100 of `power` fill the range */
        if (range / (steps[i] * power) <= 12) {
            return steps[i] * power;
        }
    }
    return 10 * power;
}
