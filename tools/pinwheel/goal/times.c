/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of a simulation, computed and written as text; see run.h. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *goal_run_name(const struct goal_run *r)
{
    const char *slash = strrchr(r->file, '/');
    return slash != NULL ? slash + 1 : r->file;
}

int goal_time_text(const struct sim_output *out, uint64_t ticks, char text[32])
{
    uint64_t per_ns = out->ticks_per_ns;
    unsigned rest = (unsigned)(ticks % per_ns);
    int length = snprintf(text, 32, "%" PRIu64, ticks / per_ns);
    if (rest > 0) {
        length += snprintf(text + length, (size_t)(32 - length), ".%03u", rest);
        while (text[length - 1] == '0') {
            text[--length] = '\0';
        }
    }
    return length;
}

void goal_json_time(struct json *j, const struct sim_output *out, const char *name, uint64_t ticks)
{
    char text[32];
    goal_time_text(out, ticks, text);
    json_verbatim(j, name, text);
}

struct goal_summary goal_summarise(const struct goal *g, const struct sim_output *out)
{
    struct goal_summary s = {.least = UINT64_MAX};
    unsigned __int128 sum = 0;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        uint64_t t = out->finish[rank];
        sum += t;
        if (t > s.most) {
            s.most = t;
            s.last = rank;
        }
        s.least = t < s.least ? t : s.least;
    }
    s.mean = (double)sum / g->ranks;
    return s;
}
