/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds environment variables that look like options and are none; see options.h. */
#include "base/nearest.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "PINWHEEL_"

enum { PREFIX_LENGTH = sizeof(PREFIX) - 1 };

const char *const options_beside[] = {
    "PINWHEEL_JOB_KEY",
    "PINWHEEL_JOB_ID",
    "PINWHEEL_SSH",
    "PINWHEEL_TRACE",
    "PINWHEEL_SIM",
    "PINWHEEL_SIM_PER_HOST",
    "PINWHEEL_ROOT",
    "PINWHEEL_KILL_POINT",
    "PINWHEEL_TEST_TAG",
    "PINWHEEL_RMA_PATH",
    "PINWHEEL_RMA_MAP",
    "PINWHEEL_RMA_LAZY",
    "PINWHEEL_RMA_BUCKET",
    "PINWHEEL_RMA_LAZY_HITS",
    "PINWHEEL_RMA_STATS",
    "PINWHEEL_TRACE_CLOCK",
    NULL,
};

/* The distance is computed without the prefix PINWHEEL_, which all names share. */
static bool is_known(struct nearest *rest, const char *name)
{
    nearest_try(rest, name + PREFIX_LENGTH);
    return strlen(name + PREFIX_LENGTH) == rest->length &&
           memcmp(name + PREFIX_LENGTH, rest->word, rest->length) == 0;
}

static bool is_any(struct nearest *rest)
{
    bool known = false;
    for (int id = 0; id < OPT_COUNT; id++) {
        known |= is_known(rest, option_table[id].env);
    }
    for (const char *const *name = options_beside; *name != NULL; name++) {
        known |= is_known(rest, *name);
    }
    return known;
}

bool options_unknown(char *const *environment, size_t *at, char *text, size_t size)
{
    for (; environment != NULL && environment[*at] != NULL; ++*at) {
        const char *variable = environment[*at];
        if (strncmp(variable, PREFIX, PREFIX_LENGTH) != 0) {
            continue;
        }
        const char *word = variable + PREFIX_LENGTH;
        struct nearest rest = nearest_to(word, strcspn(word, "="));
        if (is_any(&rest)) {
            continue;
        }
        int shown = rest.length < 64 ? (int)rest.length : 64;
        snprintf(text, size, PREFIX "%.*s is no option; %s%s%s", shown, word,
                 rest.found != NULL ? "did you mean " PREFIX : "`pinwheel info` lists them",
                 rest.found != NULL ? rest.found : "", rest.found != NULL ? "?" : "");
        ++*at;
        return true;
    }
    return false;
}
