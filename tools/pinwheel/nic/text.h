/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of kinds of interfaces, and numbers, as all output of `pinwheel nic` has them. */
#ifndef PINWHEEL_NIC_TEXT_H
#define PINWHEEL_NIC_TEXT_H

#include "nic/stats.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static inline const char *nic_kind(uint32_t kind)
{
    static const char *const names[STATS_KINDS] = {"ml", "nl", "mp", "np"};
    return names[kind % STATS_KINDS];
}

/* nic_number() writes a number that is not negative, with a unit if it is large, as 12.34k; a small
 * one with two digits behind the point, unless it is whole. */
static inline const char *nic_number(double value, char text[16])
{
    static const char units[] = " kMGTPE";
    size_t unit = 0;
    while (value >= 10000 && unit + 2 < sizeof(units)) {
        value /= 1000;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, 16, value < 10 && value != (double)(int)value ? "%.2f" : "%.0f", value);
    } else {
        snprintf(text, 16, value < 100 ? "%.2f%c" : "%.0f%c", value, units[unit]);
    }
    return text;
}

#endif
