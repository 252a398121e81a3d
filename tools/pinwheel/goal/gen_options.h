/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel goal gen`: one table says what each means, which member of
 * the configuration it sets and which patterns take it. */
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

/* Options of some patterns have these as their group: GOAL_USES_. */
extern const struct args_option gen_options[];
extern const int gen_option_count;

/* gen_check_options() returns 0 if the pattern takes all options that were given. */
int gen_check_options(const struct args *a, const struct gen_job *job);

#endif
