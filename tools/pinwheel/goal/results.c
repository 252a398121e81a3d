/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the results of one run of `pinwheel goal run`, as text or JSON; see run.h. */
#include "run.h"

#include <inttypes.h>

/* On simulated NICs what happens there and in the network; else operations and messages. */
static uint64_t events_of(const struct goal_run *r)
{
    return r->nic.name != NULL ? r->out.events : r->out.operations + r->out.messages;
}

static const char *model_name(const struct goal_run *r)
{
    return r->nic.name != NULL ? "nic" : r->in.model == SIM_LOGGOPSIM ? "loggopsim" : "pinwheel";
}

/* Returns the average length of a queue at its searches. */
static double mean_length(const struct sim_queue_use *u)
{
    return u->searches > 0 ? (double)u->lengths / (double)u->searches : 0;
}

static void queue_json(struct json *j, const char *name, const struct sim_queue_use *u)
{
    json_open_object(j, name);
    json_unsigned(j, "searches", u->searches);
    json_unsigned(j, "hits", u->hits);
    json_real(j, "mean_length", mean_length(u));
    json_unsigned(j, "max_length", u->most);
    json_unsigned(j, "max_rank", u->rank);
    json_close_object(j);
}

static void queue_text(const char *title, const char *name, const struct sim_queue_use *u)
{
    printf("%-11s %s: at most %" PRIu64 ", at rank %" PRIu32 "; %" PRIu64 " searches, %" PRIu64
           " found one, %.2f long on average\n",
           title, name, u->most, u->rank, u->searches, u->hits, mean_length(u));
}

/* The first of the parameters that the model has; SIM_PARAMETERS: none. */
static int first_parameter(const struct goal_run *r)
{
    return r->nic.name != NULL ? SIM_PARAMETERS : r->in.network != NULL ? SIM_o : SIM_L;
}

static void parameters_json(struct json *j, const struct goal_run *r)
{
    if (r->nic.name != NULL) {
        json_string(j, "nic", r->nic.name);
    }
    json_open_object(j, "parameters");
    for (int i = first_parameter(r); i < SIM_PARAMETERS; i++) {
        char text[64];
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, text, sizeof(text));
        json_string(j, sim_parameter_name((enum sim_parameter)i), text);
    }
    json_close_object(j);
}

static int print_json(struct goal_run *r)
{
    struct json j = {.to = stdout};
    struct goal_summary s = goal_summarise(&r->goal, &r->out);
    json_open_object(&j, NULL);
    json_string(&j, "schedule", r->file);
    json_string(&j, "model", model_name(r));
    parameters_json(&j, r);
    if (r->noise_text != NULL) {
        json_string(&j, "noise", r->noise_text);
        json_unsigned(&j, "noise_seed", r->noise.seed);
    }
    json_unsigned(&j, "ranks", r->goal.ranks);
    json_unsigned(&j, "operations", r->out.operations);
    json_unsigned(&j, "messages", r->out.messages);
    json_unsigned(&j, "events", events_of(r));
    if (r->nic.name != NULL) {
        json_unsigned(&j, "steps", r->out.steps);
        json_unsigned(&j, "handler_calls", r->out.handler_calls);
    }
    json_real(&j, "seconds", r->seconds);
    json_real(&j, "processor_seconds", r->processor);
    goal_json_time(&j, &r->out, "max_ns", s.most);
    json_unsigned(&j, "last_rank", s.last);
    goal_json_time(&j, &r->out, "min_ns", s.least);
    json_real(&j, "mean_ns", s.mean / (double)r->out.ticks_per_ns);
    json_open_array(&j, "finish_ns");
    for (uint32_t rank = 0; rank < r->goal.ranks; rank++) {
        goal_json_time(&j, &r->out, NULL, r->out.finish[rank]);
    }
    json_close_array(&j);
    if (r->jobs_file != NULL) {
        goal_jobs_json(&j, r);
    }
    if (r->critical_path) {
        goal_path_json(&j, r);
    }
    if (r->in.count_queues) {
        json_open_object(&j, "queues");
        queue_json(&j, "posted", &r->out.queues.posted);
        queue_json(&j, "unexpected", &r->out.queues.unexpected);
        json_close_object(&j);
    }
    if (r->in.network != NULL) {
        goal_net_json(&j, r);
    }
    json_close_object(&j);
    return json_end(&j);
}

static int print_text(struct goal_run *r)
{
    struct goal_summary s = goal_summarise(&r->goal, &r->out);
    char text[64];
    printf("schedule    %s: %" PRIu32 " ranks, %" PRIu64 " operations, %" PRIu64 " messages\n",
           r->file, r->goal.ranks, r->out.operations, r->out.messages);
    printf("model       %s%s%s", model_name(r), r->nic.name != NULL ? " " : "",
           r->nic.name != NULL ? r->nic.name : "");
    for (int i = first_parameter(r); i < SIM_PARAMETERS; i++) {
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, text, sizeof(text));
        printf(", %s %s", sim_parameter_name((enum sim_parameter)i), text);
    }
    if (r->noise_text != NULL) {
        printf("\nnoise       %s, seed %" PRIu64, r->noise_text, r->noise.seed);
    }
    goal_time_text(&r->out, s.most, text);
    printf("\nfinish      %s ns, rank %" PRIu32 " is the last\n", text, s.last);
    goal_time_text(&r->out, s.least, text);
    printf("            first %s ns, mean %.1f ns\n", text, s.mean / (double)r->out.ticks_per_ns);
    bool nic =
        r->nic.name != NULL; /* it runs on one thread, and other work may have the processor */
    double seconds = nic ? r->processor : r->seconds;
    printf("simulated   %" PRIu64 " events in %.3f s%s, %.2f million per second\n", events_of(r),
           seconds, nic ? " of the processor" : "",
           seconds > 0 ? (double)events_of(r) / seconds / 1e6 : 0.0);
    for (uint32_t rank = 0; r->ranks && rank < r->goal.ranks; rank++) {
        goal_time_text(&r->out, r->out.finish[rank], text);
        printf("rank %-8" PRIu32 " %s\n", rank, text);
    }
    if (r->jobs_file != NULL) {
        goal_jobs_text(r);
    }
    if (r->in.count_queues) {
        queue_text("queues", "posted", &r->out.queues.posted);
        queue_text("", "unexpected", &r->out.queues.unexpected);
    }
    if (r->in.network != NULL) {
        goal_net_text(r);
    }
    if (r->critical_path) {
        goal_path_text(r);
    }
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

int goal_run_print(struct goal_run *r)
{
    return r->json ? print_json(r) : print_text(r);
}
