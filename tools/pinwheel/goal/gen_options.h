/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel goal gen`: one table says what each means, which member of
 * the wish it sets and which patterns take it. */
#ifndef PINWHEEL_GOAL_GEN_OPTIONS_H
#define PINWHEEL_GOAL_GEN_OPTIONS_H

#include "pinwheel/util/args.h"

#include "sim/gen/goal_gen.h"

struct gen_job {
    struct goal_wish wish;
    const struct goal_pattern *pattern;
    const char *output;
    bool as_text;
    bool list;
    unsigned used; /* GOAL_USES_ of the options given */
};

extern const struct args_option gen_options[];
extern const int gen_option_count;

/* gen_take_option() reads the value of the option found last into the job. Returns 0,
 * or -1 after it has said what is wrong. */
int gen_take_option(const struct args *a, int option, struct gen_job *job);

/* gen_check_options() returns 0 if the pattern takes all options that were given. */
int gen_check_options(const struct args *a, const struct gen_job *job);

/* gen_list_patterns() prints the patterns and the options that each takes. */
void gen_list_patterns(void);

#endif
