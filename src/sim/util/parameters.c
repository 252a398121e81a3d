/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of a simulation; see parameters.h. */
#include "parameters.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t scale;
};

/* The first unit is that of a number without unit. */
static const struct unit units[] = {
    {"ns", SIM_AS_PER_NS},
    {"ps", SIM_AS_PER_PS},
    {"us", SIM_AS_PER_NS * 1000},
    {"ms", SIM_AS_PER_NS * 1000000},
    {"s", SIM_AS_PER_NS * 1000000000},
};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

const struct sim_parameter_set sim_parameter_sets[] = {
    {"loggopsim",
     "what LogGOPSim uses if told nothing (the default)",
     {"2500", "1500", "1000", "6", "0", "65535"}},
    {"spin",
     "the sPIN paper, SC'17: 400 Gbit/s, a fat tree's longest way",
     {"283.6", "65", "6.7", "20ps", "0", "65535"}},
    {"hpc",
     "illustrative: a 100 Gbit/s cluster with MPI",
     {"1.2us", "200", "20", "80ps", "0", "16384"}},
    {"ai",
     "illustrative: accelerators on 200 Gbit/s, every message by rendezvous",
     {"3.7us", "200", "5", "40ps", "0", "0"}},
};
const int sim_parameter_set_count = sizeof(sim_parameter_sets) / sizeof(sim_parameter_sets[0]);

const char *sim_parameter_name(enum sim_parameter which)
{
    static const char *const names[SIM_PARAMETERS] = {"L", "o", "g", "G", "O", "S"};
    return names[which];
}

static bool per_byte(enum sim_parameter which)
{
    return which == SIM_G || which == SIM_O;
}

/* Returns how many attoseconds the unit at `text` has; 0 if there is no such unit. The unit of a
 * time per byte may end in "/B"; the parameter S, in bytes, has no unit. */
static uint64_t find_unit(enum sim_parameter which, const char *text)
{
    size_t length = strlen(text);
    if (which == SIM_S) {
        return length == 0;
    }
    if (per_byte(which) && length >= 2 && strcmp(text + length - 2, "/B") == 0) {
        length -= 2;
    }
    if (length == 0) {
        return units[0].scale;
    }
    for (int i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0) {
            return units[i].scale;
        }
    }
    return 0;
}

enum decimal { DECIMAL_GOOD, DECIMAL_BAD, DECIMAL_LARGE, DECIMAL_FINE };

/* Reads the decimal of `length` characters at `text` (digits, perhaps a point and more digits) and
 * multiplies it by `scale`. */
static enum decimal scale_decimal(const char *text, size_t length, uint64_t scale, uint64_t *value)
{
    unsigned __int128 sum = 0;
    size_t whole = strspn(text, "0123456789");
    if (whole == 0 || whole + 1 == length ||
        (whole < length && strspn(text + whole + 1, "0123456789") != length - whole - 1)) {
        return DECIMAL_BAD;
    }
    bool fine = false;
    uint64_t place = scale;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (i < whole) {
            sum = sum * 10 + (unsigned __int128)digit * scale;
        } else if (i > whole) {
            fine |= digit != 0 && place % 10 != 0;
            /* 1: the digits from here on are finer than an attosecond */
            place = place % 10 == 0 ? place / 10 : 1;
            sum += (unsigned __int128)digit * place;
        }
        if (sum > UINT64_MAX) {
            return DECIMAL_LARGE;
        }
    }
    *value = (uint64_t)sum;
    return fine ? DECIMAL_FINE : DECIMAL_GOOD;
}

static const char *what_is_right(enum sim_parameter which)
{
    if (which == SIM_S) {
        return "a whole number of bytes, such as 65535";
    }
    return per_byte(which) ? "a time per byte, such as 6 (ns), 0.02 or 20ps/B"
                           : "a time, such as 2500 (ns), 3.7us or 65ns";
}

int sim_parameter_parse(struct sim_parameters *p, enum sim_parameter which, const char *text,
                        char *error, size_t size)
{
    const char *name = sim_parameter_name(which);
    size_t length = strspn(text, which == SIM_S ? "0123456789" : "0123456789.");
    uint64_t scale = find_unit(which, text + length), value = 0;
    enum decimal found = scale != 0 ? scale_decimal(text, length, scale, &value) : DECIMAL_BAD;
    if (found == DECIMAL_GOOD && which <= SIM_g && value % SIM_AS_PER_PS != 0) {
        found = DECIMAL_FINE;
    }
    switch (found) {
    case DECIMAL_GOOD:
        p->value[which] = value;
        return 0;
    case DECIMAL_LARGE:
        snprintf(error, size, "-%s %s: too large; at most %s", name, text,
                 which == SIM_S ? "18446744073709551615 bytes" : "18 s");
        return -1;
    case DECIMAL_FINE:
        snprintf(error, size, "-%s %s: too fine; the smallest step is %s", name, text,
                 per_byte(which) ? "0.000001 ps" : "1 ps");
        return -1;
    case DECIMAL_BAD:
        break;
    }
    snprintf(error, size, "-%s %s: must be %s", name, text, what_is_right(which));
    return -1;
}

int sim_time_parse(uint64_t *ps, const char *option, const char *text, char *error, size_t size)
{
    size_t length = strspn(text, "0123456789.");
    uint64_t scale = find_unit(SIM_L, text + length), value = 0;
    if (scale == 0 || scale_decimal(text, length, scale, &value) != DECIMAL_GOOD ||
        value % SIM_AS_PER_PS != 0) {
        snprintf(error, size, "%s %s: must be %s, of whole ps and at most 18 s", option, text,
                 what_is_right(SIM_L));
        return -1;
    }
    *ps = value / SIM_AS_PER_PS;
    return 0;
}

/* Prefixes of the units bit/s and B/s of rates. */
static const struct unit prefixes[] = {
    {"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", 1000000000000},
};

int sim_rate_parse(uint64_t *byte, const char *option, const char *text, char *error, size_t size)
{
    size_t length = strspn(text, "0123456789.");
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t prefix = strlen(prefixes[i].name);
        if (strncmp(text + length, prefixes[i].name, prefix) != 0) {
            continue;
        }
        const char *unit = text + length + prefix;
        bool bits = strcmp(unit, "bit/s") == 0;
        if ((bits || strcmp(unit, "B/s") == 0) &&
            scale_decimal(text, length, prefixes[i].scale, &value) == DECIMAL_GOOD && value > 0) {
            unsigned __int128 second = (unsigned __int128)SIM_AS_PER_NS * 1000000000;
            unsigned __int128 time = (second * (bits ? 8 : 1) + value / 2) / value;
            *byte = (uint64_t)time;
            if (time > 0 && time <= UINT64_MAX) {
                return 0;
            }
        }
    }
    snprintf(error, size, "%s %s: must be a rate, such as 400Gbit/s or 50GB/s", option, text);
    return -1;
}

int sim_parameters_named(struct sim_parameters *p, const char *name)
{
    char error[128];
    for (int i = 0; i < sim_parameter_set_count; i++) {
        const struct sim_parameter_set *set = &sim_parameter_sets[i];
        if (strcmp(set->name, name) != 0) {
            continue;
        }
        for (int which = 0; which < SIM_PARAMETERS; which++) {
            if (sim_parameter_parse(p, which, set->value[which], error, sizeof(error)) != 0) {
                return -1;
            }
        }
        return 0;
    }
    return -1;
}

void sim_parameter_format(const struct sim_parameters *p, enum sim_parameter which, char *text,
                          size_t size)
{
    static const struct unit print[] = {{"s", SIM_AS_PER_NS * 1000000000},
                                        {"ms", SIM_AS_PER_NS * 1000000},
                                        {"us", SIM_AS_PER_NS * 1000},
                                        {"ns", SIM_AS_PER_NS},
                                        {"ps", SIM_AS_PER_PS}};
    uint64_t value = p->value[which];
    if (which == SIM_S) {
        snprintf(text, size, "%llu B", (unsigned long long)value);
        return;
    }
    const struct unit *unit = print;
    while (unit->scale > SIM_AS_PER_PS && value < unit->scale) {
        unit++;
    }
    char fraction[24];
    uint64_t rest = value % unit->scale;
    int length = 0;
    for (uint64_t place = unit->scale; rest != 0; rest %= place) {
        place /= 10;
        fraction[length++] = (char)('0' + rest / place);
    }
    fraction[length] = '\0';
    snprintf(text, size, "%llu%s%s %s%s", (unsigned long long)(value / unit->scale),
             length > 0 ? "." : "", fraction, value == 0 ? "ns" : unit->name,
             per_byte(which) ? "/B" : "");
}
