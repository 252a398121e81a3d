/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LogGOPS parameters of a simulation, as a user writes them.
 *
 *   L  time a message's first byte travels       o  time a message costs a CPU at either end
 *   g  time between two messages of a NIC        G  time a further byte costs a NIC
 *   O  time a further byte costs a CPU           S  bytes up to which a message is sent eagerly
 *
 * Times are exact decimals, kept in attoseconds (1e-6 ps): nothing is rounded
 * before a model multiplies. A number without unit means nanoseconds,
 * nanoseconds per byte, bytes, as LogGOPSim's options do.
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

/* sim_parameter_name() gives the one letter of a parameter. */
const char *sim_parameter_name(enum sim_parameter which);

/* sim_parameter_parse() reads the value of one parameter. It returns 0, or -1
 * after it has written into `error` what is wrong and what would be right. */
int sim_parameter_parse(struct sim_parameters *p, enum sim_parameter which, const char *text,
                        char *error, size_t size);

/* sim_time_parse() reads a time of whole ps for the option `option`, sim_rate_parse() a rate
 * such as 400Gbit/s or 50GB/s as the time of a byte, in attoseconds. Like the one above. */
int sim_time_parse(uint64_t *ps, const char *option, const char *text, char *error, size_t size);
int sim_rate_parse(uint64_t *byte, const char *option, const char *text, char *error, size_t size);

/* sim_parameters_named() fills in the set called `name`; -1 if there is none. */
int sim_parameters_named(struct sim_parameters *p, const char *name);

/* sim_parameter_format() writes a value with the largest unit in which it needs
 * no more than three digits before the point; every digit is kept. */
void sim_parameter_format(const struct sim_parameters *p, enum sim_parameter which, char *text,
                          size_t size);

#endif
