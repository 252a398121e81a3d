/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that all models share; see engine.h. */
#include "engine.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int check_network(const struct sim_input *in, char *error, size_t size)
{
    if (in->threads > 1) {
        snprintf(error, size, "--threads %u: a packet network is simulated in one thread",
                 in->threads);
        return -1;
    }
    if (in->network->config->byte == 0 && in->parameters->value[SIM_G] == 0) {
        snprintf(error, size, "-G 0 says nothing about the links of --network: give --link-rate");
        return -1;
    }
    return 0;
}

int sim_check(const struct sim_input *in, char *error, size_t size)
{
    if (in->noise != NULL && (in->model == SIM_LOGGOPSIM || in->record != NULL)) {
        snprintf(error, size, "--noise: %s",
                 in->record != NULL ? "with it no record of what happened is kept"
                                    : "--model=loggopsim has none; --model=pinwheel has");
        return -1;
    }
    if (in->model != SIM_LOGGOPSIM) {
        return in->network != NULL ? check_network(in, error, size) : 0;
    }
    if (in->network != NULL) {
        snprintf(error, size,
                 "--network: --model=loggopsim knows L alone; --model=pinwheel takes "
                 "a network");
        return -1;
    }
    for (int i = 0; i < SIM_S; i++) {
        if (in->parameters->value[i] % SIM_AS_PER_NS != 0) {
            char text[64];
            sim_parameter_format(in->parameters, (enum sim_parameter)i, text, sizeof(text));
            snprintf(error, size,
                     "-%s %s: --model=loggopsim counts in whole nanoseconds; "
                     "--model=pinwheel takes fractions",
                     sim_parameter_name((enum sim_parameter)i), text);
            return -1;
        }
    }
    if (in->threads > 1) {
        snprintf(error, size, "--threads %u: --model=loggopsim runs in one thread", in->threads);
        return -1;
    }
    if (in->record != NULL) {
        snprintf(error, size, "--model=loggopsim keeps no record of what happened");
        return -1;
    }
    if (in->count_queues) {
        snprintf(error, size,
                 "--queues: --model=loggopsim does not count them; --model=pinwheel does");
        return -1;
    }
    if (in->calc_in_ps) {
        snprintf(error, size,
                 "calcs in ps: --model=loggopsim counts in whole nanoseconds; "
                 "--model=pinwheel takes picoseconds");
        return -1;
    }
    return 0;
}

enum sim_end sim_run(const struct sim_input *in, struct sim_output *out)
{
    *out = (struct sim_output){.ticks_per_ns = in->model == SIM_LOGGOPSIM ? 1 : 1000};
    out->finish = calloc(in->goal->ranks, sizeof(*out->finish));
    if (out->finish == NULL) {
        return sim_no_memory(out);
    }
    return in->model == SIM_LOGGOPSIM ? loggopsim_run(in, out) : loggops_run(in, out);
}

void sim_output_free(struct sim_output *out)
{
    free(out->finish);
    free(out->left);
    out->finish = NULL;
    out->left = NULL;
}

int sim_leave(struct sim_output *out, uint32_t rank, uint32_t node, enum sim_left_kind kind)
{
    if (!ARRAY_ROOM(out->left, out->left_count, out->left_room, 16)) {
        return -1;
    }
    out->left[out->left_count++] = (struct sim_left){rank, node, kind};
    return 0;
}

enum sim_end sim_fail(struct sim_output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->error, sizeof(out->error), format, args);
    va_end(args);
    return SIM_FAILED;
}

enum sim_end sim_no_memory(struct sim_output *out)
{
    return sim_fail(out, "not enough memory to simulate this schedule");
}
