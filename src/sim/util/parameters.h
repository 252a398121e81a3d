/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LogGOPS parameters of a simulation, as a user writes them.
 *
 *   L  time a message's first byte travels       o  time a message costs a CPU at either end
 *   g  time between two messages of a NIC        G  time a further byte costs a NIC
 *   O  time a further byte costs a CPU           S  bytes up to which a message is sent eagerly
 *
 * Times are exact decimals, kept in attoseconds (1e-6 ps): they are rounded only when a model
 * multiplies them. A number without unit is in nanoseconds, nanoseconds per byte or bytes, as in
 * LogGOPSim's options.
 */
#ifndef SIM_PARAMETERS_H
#define SIM_PARAMETERS_H

#include <stddef.h>
#include <stdint.h>

#define SIM_AS_PER_PS UINT64_C(1000000)
#define SIM_AS_PER_NS UINT64_C(1000000000)

enum sim_parameter { SIM_L, SIM_o, SIM_g, SIM_G, SIM_O, SIM_S, SIM_PARAMETERS };

/* value[SIM_S] is in bytes, the others in attoseconds. */
struct sim_parameters {
    uint64_t value[SIM_PARAMETERS];
};

/* A documented set of parameters, as text that sim_parameter_parse() reads. */
struct sim_parameter_set {
    const char *name, *summary;
    const char *value[SIM_PARAMETERS];
};

extern const struct sim_parameter_set sim_parameter_sets[];
extern const int sim_parameter_set_count;

/* sim_parameter_name() returns the letter of a parameter. */
const char *sim_parameter_name(enum sim_parameter which);

/* sim_parameter_parse() reads the value of one parameter from `text`. It returns 0, or -1 after it
 * has written to `error` what is wrong and what would be right. */
int sim_parameter_parse(struct sim_parameters *p, enum sim_parameter which, const char *text,
                        char *error, size_t size);

/* sim_time_parse() reads a time in whole ps, as the value of the option `option`. sim_rate_parse()
 * reads a rate such as 400Gbit/s or 50GB/s, and stores the time of a byte in attoseconds. They
 * return as sim_parameter_parse() does. */
int sim_time_parse(uint64_t *ps, const char *option, const char *text, char *error, size_t size);
int sim_rate_parse(uint64_t *byte, const char *option, const char *text, char *error, size_t size);

/* sim_parameters_named() sets all parameters to those of the set called `name`; -1 if there is no
 * such set. */
int sim_parameters_named(struct sim_parameters *p, const char *name);

/* sim_parameter_format() writes a value in the largest unit in which it has at most three digits
 * before the point. No digit is lost. */
void sim_parameter_format(const struct sim_parameters *p, enum sim_parameter which, char *text,
                          size_t size);

#endif
