/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel goal gen`: one table with each option's meaning, the member of the
 * configuration that it sets, and the patterns that take it. */
#ifndef PINWHEEL_GOAL_GEN_OPTIONS_H
#define PINWHEEL_GOAL_GEN_OPTIONS_H

#include "pinwheel/util/args.h"

#include "sim/gen/goal_gen.h"

struct gen_job {
    struct goal_config config;
    const struct goal_pattern *pattern;
    const char *output;
    bool as_text;
};

/* `group` of an option that only some patterns take is the GOAL_USES_ flag of these patterns. */
extern const struct args_option gen_options[];
extern const int gen_option_count;

/* gen_check_options() returns 0 if the pattern takes all options that were given. */
int gen_check_options(const struct args *a, const struct gen_job *job);

#endif
