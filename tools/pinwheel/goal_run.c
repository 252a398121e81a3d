/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal run`: simulates a schedule and says when each rank finishes, as
 * a summary for people or as JSON.
 */
#include "goal_commands.h"

#include "json.h"

#include "sim/engine.h"
#include "sim/stuck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    RUN_L,
    RUN_o,
    RUN_g,
    RUN_G,
    RUN_O,
    RUN_S,
    RUN_PARAMETERS,
    RUN_MODEL,
    RUN_CALC_UNIT,
    RUN_THREADS,
    RUN_RANKS,
    RUN_JSON,
    RUN_COMPAT,
    RUN_OPTIONS
};

static const struct args_option run_options[RUN_OPTIONS] = {
    [RUN_L] = {"-L", "TIME", "latency: from a send's last instruction to the first byte (2500)"},
    [RUN_o] = {"-o", "TIME", "CPU time of a message at either end (1500)"},
    [RUN_g] = {"-g", "TIME", "pause of a NIC after a message (1000)"},
    [RUN_G] = {"-G", "TIME", "NIC time of each byte after the first (6)"},
    [RUN_O] = {"-O", "TIME", "CPU time of each byte after the first (0)"},
    [RUN_S] = {"-S", "BYTES", "largest message that is sent eagerly (65535)"},
    [RUN_PARAMETERS] = {"--parameters", "NAME", "a set of these: loggopsim, spin, hpc, ai"},
    [RUN_MODEL] = {"--model", "NAME", "pinwheel (the default), or loggopsim for LogGOPSim's times"},
    [RUN_CALC_UNIT] = {"--calc-unit", "ns|ps", "what the sizes of calcs count (ns)"},
    [RUN_THREADS] = {"--threads", "N", "simulate with N threads (1); the results are the same"},
    [RUN_RANKS] = {"--ranks", NULL, "print the finish time of every rank"},
    [RUN_JSON] = {"--json", NULL, "print JSON: finish_ns, and what the summary says"},
    [RUN_COMPAT] = {"--compat", NULL,
                    "of equal labels in a text keep the first, as LogGOPSim's compiler does"},
};

struct run {
    struct args args;
    const char *file;
    const char *text[SIM_PARAMETERS]; /* of -L ... -S; NULL: not given */
    const char *set;
    bool ranks, json;
    unsigned flags;
    struct sim_parameters parameters;
    struct sim_input in;
    struct sim_output out;
    struct goal goal;
    double seconds;
};

/* ---- Options ---- */

static int choose_model(struct run *r, const char *name)
{
    if (strcmp(name, "pinwheel") == 0) {
        r->in.model = SIM_PINWHEEL;
    } else if (strcmp(name, "loggopsim") == 0) {
        r->in.model = SIM_LOGGOPSIM;
    } else {
        return args_error(&r->args, "--model %s: must be pinwheel or loggopsim", name);
    }
    return 0;
}

static int choose_unit(struct run *r, const char *name)
{
    if (strcmp(name, "ns") != 0 && strcmp(name, "ps") != 0) {
        return args_error(&r->args, "--calc-unit %s: must be ns or ps", name);
    }
    r->in.calc_in_ps = strcmp(name, "ps") == 0;
    return 0;
}

static int take_option(struct run *r, int option)
{
    long number;
    switch (option) {
    case RUN_PARAMETERS:
        r->set = r->args.value;
        return 0;
    case RUN_MODEL:
        return choose_model(r, r->args.value);
    case RUN_CALC_UNIT:
        return choose_unit(r, r->args.value);
    case RUN_THREADS:
        if (args_number(&r->args, "--threads", 1, SIM_THREADS_MOST, &number) != 0) {
            return 2;
        }
        r->in.threads = (unsigned)number;
        return 0;
    case RUN_RANKS:
        r->ranks = true;
        return 0;
    case RUN_JSON:
        r->json = true;
        return 0;
    case RUN_COMPAT:
        r->flags |= GOAL_COMPAT;
        return 0;
    default:
        r->text[option - RUN_L] = r->args.value;
        return 0;
    }
}

static int unknown_set(struct run *r)
{
    char names[256] = "";
    for (int i = 0; i < sim_parameter_set_count; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof(names) - length, "%s%s", i > 0 ? ", " : "",
                 sim_parameter_sets[i].name);
    }
    return args_error(&r->args, "--parameters %s: there is no such set; there are %s", r->set,
                      names);
}

/* The named set, and over it what -L to -S say. */
static int set_parameters(struct run *r)
{
    char error[256];
    if (sim_parameters_named(&r->parameters, r->set) != 0) {
        return unknown_set(r);
    }
    for (int i = 0; i < SIM_PARAMETERS; i++) {
        if (r->text[i] != NULL && sim_parameter_parse(&r->parameters, (enum sim_parameter)i,
                                                      r->text[i], error, sizeof(error)) != 0) {
            return args_error(&r->args, "%s", error);
        }
    }
    r->in.parameters = &r->parameters;
    if (sim_check(&r->in, error, sizeof(error)) != 0) {
        return args_error(&r->args, "%s", error);
    }
    return 0;
}

/* 0, 2 for bad usage, -1 after help was printed. */
static int parse(struct run *r, int argc, char **argv)
{
    r->args = (struct args){
        .command = "goal run",
        .operands = "FILE",
        .summary = "Simulates a GOAL schedule, text or binary, and says when each rank finishes.\n"
                   "A time without unit is ns; others are ps, us, ms, s. docs/loggops-model.md "
                   "has the models.",
        .options = run_options,
        .count = RUN_OPTIONS,
        .argc = argc,
        .argv = argv,
        .next = 1,
    };
    r->set = "loggopsim";
    r->in.threads = 1;
    for (;;) {
        int option = goal_args_next(&r->args, &r->file);
        if (option == ARGS_HELP) {
            return -1;
        }
        if (option == ARGS_BAD) {
            return 2;
        }
        if (option == ARGS_END) {
            break;
        }
        if (take_option(r, option) != 0) {
            return 2;
        }
    }
    if (r->file == NULL) {
        return args_error(&r->args, "which schedule? pinwheel goal run FILE");
    }
    return set_parameters(r);
}

/* ---- Results ---- */

static uint64_t events_of(const struct run *r)
{
    return r->out.operations + r->out.messages;
}

/* Ticks as nanoseconds, with the decimals that are needed; returns the length. */
static int time_text(const struct run *r, uint64_t ticks, char text[32])
{
    uint64_t per_ns = r->out.ticks_per_ns;
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

static void json_time(struct json *j, const struct run *r, const char *name, uint64_t ticks)
{
    char text[32];
    time_text(r, ticks, text);
    json_verbatim(j, name, text);
}

/* The largest finish time and who has it. */
struct summary {
    uint64_t most, least;
    uint32_t last;
    double mean; /* ticks */
};

static struct summary summarise(const struct run *r)
{
    struct summary s = {.least = UINT64_MAX};
    unsigned __int128 sum = 0;
    for (uint32_t rank = 0; rank < r->goal.ranks; rank++) {
        uint64_t t = r->out.finish[rank];
        sum += t;
        if (t > s.most) {
            s.most = t;
            s.last = rank;
        }
        s.least = t < s.least ? t : s.least;
    }
    s.mean = (double)sum / r->goal.ranks;
    return s;
}

static const char *model_name(const struct run *r)
{
    return r->in.model == SIM_LOGGOPSIM ? "loggopsim" : "pinwheel";
}

static int print_json(const struct run *r)
{
    struct json j = {.to = stdout};
    struct summary s = summarise(r);
    json_open_object(&j, NULL);
    json_string(&j, "schedule", r->file);
    json_string(&j, "model", model_name(r));
    json_open_object(&j, "parameters");
    for (int i = 0; i < SIM_PARAMETERS; i++) {
        char text[64];
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, text, sizeof(text));
        json_string(&j, sim_parameter_name((enum sim_parameter)i), text);
    }
    json_close_object(&j);
    json_unsigned(&j, "ranks", r->goal.ranks);
    json_unsigned(&j, "operations", r->out.operations);
    json_unsigned(&j, "messages", r->out.messages);
    json_unsigned(&j, "events", events_of(r));
    json_real(&j, "seconds", r->seconds);
    json_time(&j, r, "max_ns", s.most);
    json_unsigned(&j, "last_rank", s.last);
    json_time(&j, r, "min_ns", s.least);
    json_real(&j, "mean_ns", s.mean / (double)r->out.ticks_per_ns);
    json_open_array(&j, "finish_ns");
    for (uint32_t rank = 0; rank < r->goal.ranks; rank++) {
        json_time(&j, r, NULL, r->out.finish[rank]);
    }
    json_close_array(&j);
    json_close_object(&j);
    return json_end(&j);
}

static int print_text(const struct run *r)
{
    struct summary s = summarise(r);
    char text[64];
    printf("schedule    %s: %" PRIu32 " ranks, %" PRIu64 " operations, %" PRIu64 " messages\n",
           r->file, r->goal.ranks, r->out.operations, r->out.messages);
    printf("model       %s", model_name(r));
    for (int i = 0; i < SIM_PARAMETERS; i++) {
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, text, sizeof(text));
        printf(", %s %s", sim_parameter_name((enum sim_parameter)i), text);
    }
    time_text(r, s.most, text);
    printf("\nfinish      %s ns, rank %" PRIu32 " is the last\n", text, s.last);
    time_text(r, s.least, text);
    printf("            first %s ns, mean %.1f ns\n", text, s.mean / (double)r->out.ticks_per_ns);
    printf("simulated   %" PRIu64 " events in %.3f s, %.2f million per second\n", events_of(r),
           r->seconds, r->seconds > 0 ? (double)events_of(r) / r->seconds / 1e6 : 0.0);
    for (uint32_t rank = 0; r->ranks && rank < r->goal.ranks; rank++) {
        time_text(r, r->out.finish[rank], text);
        printf("rank %-8" PRIu32 " %s\n", rank, text);
    }
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

/* ---- The run ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Tells a terminal how far a long run is, twice a second. */
struct progress {
    double begin, next;
    uint64_t expected;
    bool shown;
};

static void show_progress(void *context, uint64_t events)
{
    struct progress *p = context;
    double t = now();
    if (t < p->next) {
        return;
    }
    p->next = t + 0.5;
    p->shown = true;
    double rate = (double)events / (t - p->begin);
    double left = p->expected > events ? (double)(p->expected - events) / rate : 0;
    fprintf(stderr, "\r\033[K%.0f %% of %.3g events, %.1f million per second, %.0f s left",
            100.0 * (double)events / (double)p->expected, (double)p->expected, rate / 1e6, left);
    fflush(stderr);
}

static int report(struct run *r, enum sim_end end)
{
    if (end == SIM_FAILED) {
        fprintf(stderr, "pinwheel goal run: %s: ", r->file);
        if (r->out.has_culprit) {
            stuck_print_operation(&r->goal, r->out.culprit_rank, r->out.culprit_node, stderr);
            fprintf(stderr, ": ");
        }
        fprintf(stderr, "%s\n", r->out.error);
        return 1;
    }
    if (end == SIM_STUCK) {
        fprintf(stderr, "pinwheel goal run: %s: ", r->file);
        if (stuck_explain(&r->goal, &r->out, stderr) != 0) {
            fprintf(stderr, "the schedule cannot finish; not enough memory to find out why\n");
        }
        return 1;
    }
    if (r->out.abandoned > 0) {
        fprintf(stderr,
                "pinwheel goal run: %s: %" PRIu64 " operations never ran: sizes of a send and its "
                "recv disagree about S, and LogGOPSim does not release such a send\n",
                r->file, r->out.abandoned);
    }
    if ((r->json ? print_json(r) : print_text(r)) != 0) {
        fprintf(stderr, "pinwheel goal run: writing to standard output failed\n");
        return 1;
    }
    return 0;
}

int goal_command_run(int argc, char **argv)
{
    struct run r = {.file = NULL};
    int status = parse(&r, argc, argv);
    if (status != 0) {
        return status > 0 ? status : 0;
    }
    struct goal_error error;
    if (goal_open(&r.goal, r.file, r.flags, &error) != 0) {
        fprintf(stderr, "pinwheel goal run: %s\n", error.text);
        return 1;
    }
    r.in.goal = &r.goal;
    struct progress progress = {.begin = now(), .expected = r.goal.nodes + r.goal.sends};
    progress.next = progress.begin + 1;
    if (isatty(STDERR_FILENO)) {
        r.in.progress = show_progress;
        r.in.context = &progress;
    }
    enum sim_end end = sim_run(&r.in, &r.out);
    r.seconds = now() - progress.begin;
    if (progress.shown) {
        fprintf(stderr, "\r\033[K");
    }
    status = report(&r, end);
    sim_output_free(&r.out);
    goal_close(&r.goal);
    return status;
}
