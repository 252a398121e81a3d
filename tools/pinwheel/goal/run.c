/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal run`: simulates a schedule and says when each rank finishes, as
 * a summary for people or as JSON.
 */
#include "run.h"

#include "commands.h"
#include "pinwheel/util/json.h"
#include "sweep.h"

#include "sim/report/stuck.h"

#include <errno.h>
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
    RUN_SWEEP,
    RUN_SVG,
    RUN_CRITICAL_PATH,
    RUN_TRACE,
    RUN_TIMELINE,
    RUN_QUEUES,
    RUN_NOISE,
    RUN_JOBS,
    RUN_NETWORK, /* and on, in the order of enum goal_net_option */
    RUN_ROUTING,
    RUN_SWITCHING,
    RUN_PACKET,
    RUN_BUFFER,
    RUN_LINK_RATE,
    RUN_HOP_LATENCY,
    RUN_CABLE_LATENCY,
    RUN_PLACEMENT,
    RUN_SEED,
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
    [RUN_SWEEP] = {"--sweep", "P=A:B:N",
                   "run with N values of P (L, o, g, G, O or S) from A to B; a line for each"},
    [RUN_SVG] = {"--svg", "FILE", "draw what --sweep found"},
    [RUN_CRITICAL_PATH] = {"--critical-path", NULL,
                           "what the last finish waited for, step by step, and the parts of it"},
    [RUN_TRACE] = {"--trace", "FILE",
                   "write the timeline as JSON, for Perfetto or Chrome's trace viewer"},
    [RUN_TIMELINE] = {"--timeline", "FILE", "draw the timeline of a small schedule, as SVG"},
    [RUN_QUEUES] = {"--queues", NULL,
                    "count the queues in which recvs and messages wait for each other"},
    [RUN_NOISE] = {"--noise", "NOISE",
                   "detours of the cpus: exponential:period=1ms,mean=10us, uniform:, normal: or a "
                   "trace; docs/loggops-model.md"},
    [RUN_JOBS] = {"--jobs", "FILE",
                  "when each job of a merged schedule ends; FILE is what goal merge --jobs wrote"},
    [RUN_NETWORK] = {"--network", "NETWORK",
                     "packets in a network in the place of L: fattree:radix=36, torus:8x8x8, "
                     "dragonfly:a=4,h=2,p=2 or FILE.dot; docs/network-model.md"},
    [RUN_ROUTING] = {"--routing", "static|adaptive", "by destination (the default), or by load"},
    [RUN_SWITCHING] = {"--switching", "cut-through|store-and-forward",
                       "when a switch passes a packet on (cut-through)"},
    [RUN_PACKET] = {"--packet", "BYTES", "largest packet (4096)"},
    [RUN_BUFFER] = {"--buffer", "BYTES",
                    "of each virtual channel where a cable enters a switch (65536)"},
    [RUN_LINK_RATE] = {"--link-rate", "RATE", "of a cable, as 400Gbit/s or 50GB/s (that of G)"},
    [RUN_HOP_LATENCY] = {"--hop-latency", "TIME", "through a switch (50)"},
    [RUN_CABLE_LATENCY] = {"--cable-latency", "TIME", "along a cable (33.4)"},
    [RUN_PLACEMENT] = {"--placement", "linear|random|FILE",
                       "which host has which rank: in order (the default), drawn by lot, or a "
                       "file of hosts"},
    [RUN_SEED] = {"--seed", "N", "of what is drawn by lot (1); the same seed, the same results"},
};

/* ---- Options ---- */

static int choose_model(struct goal_run *r, const char *name)
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

static int choose_unit(struct goal_run *r, const char *name)
{
    if (strcmp(name, "ns") != 0 && strcmp(name, "ps") != 0) {
        return args_error(&r->args, "--calc-unit %s: must be ns or ps", name);
    }
    r->in.calc_in_ps = strcmp(name, "ps") == 0;
    return 0;
}

static int take_option(struct goal_run *r, int option)
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
    case RUN_SWEEP:
        return goal_sweep_parse(&r->args, &r->sweep);
    case RUN_SVG:
        r->svg = r->args.value;
        return 0;
    case RUN_CRITICAL_PATH:
        r->critical_path = true;
        return 0;
    case RUN_TRACE:
        r->trace = r->args.value;
        return 0;
    case RUN_TIMELINE:
        r->timeline = r->args.value;
        return 0;
    case RUN_QUEUES:
        r->in.count_queues = true;
        return 0;
    case RUN_NOISE:
        r->noise_text = r->args.value;
        return 0;
    case RUN_JOBS:
        r->jobs_file = r->args.value;
        return 0;
    case RUN_NETWORK ... RUN_SEED:
        return goal_net_take(r, (enum goal_net_option)(option - RUN_NETWORK));
    default:
        r->text[option - RUN_L] = r->args.value;
        return 0;
    }
}

static int unknown_set(struct goal_run *r)
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
static int set_parameters(struct goal_run *r)
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
    if (r->noise_text != NULL) {
        if (sim_noise_open(&r->noise, r->noise_text, r->net.config.seed, error, sizeof(error)) !=
            0) {
            return args_error(&r->args, "%s", error);
        }
        r->in.noise = &r->noise;
    }
    if (goal_net_check(r) != 0) {
        return 2;
    }
    if (sim_check(&r->in, error, sizeof(error)) != 0) {
        return args_error(&r->args, "%s", error);
    }
    return 0;
}

/* The option that needs a record of what happened, or NULL. */
static const char *recorder(const struct goal_run *r)
{
    if (r->critical_path) {
        return "--critical-path";
    }
    return r->trace != NULL ? "--trace" : r->timeline != NULL ? "--timeline" : NULL;
}

/* Options that say nothing beside, or without, others. */
static int check_together(struct goal_run *r)
{
    if (r->svg != NULL && r->sweep.values == 0) {
        return args_error(&r->args, "--svg draws what --sweep found: --sweep is missing");
    }
    const char *record = recorder(r);
    const char *detail = r->ranks               ? "--ranks"
                         : r->in.count_queues   ? "--queues"
                         : r->jobs_file != NULL ? "--jobs"
                                                : record;
    if (r->sweep.values > 0 && detail != NULL) {
        return args_error(&r->args, "%s: --sweep prints the last finish of each run only", detail);
    }
    if (r->in.model == SIM_LOGGOPSIM && record != NULL) {
        return args_error(&r->args,
                          "%s: --model=loggopsim keeps no record of what happened; "
                          "--model=pinwheel does",
                          record);
    }
    return 0;
}

/* 0, 2 for bad usage, -1 after help was printed. */
static int parse(struct goal_run *r, int argc, char **argv)
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
    goal_net_begin(r);
    for (;;) {
        int option = args_next_operand(&r->args, &r->file);
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
    if (check_together(r) != 0 || set_parameters(r) != 0) {
        return 2;
    }
    return r->sweep.values > 0 ? goal_sweep_check(r) : 0;
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

/* Says why a run gave no times; 1 then. */
static int report_failure(struct goal_run *r, enum sim_end end)
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
    return 0;
}

int goal_run_simulate(struct goal_run *r)
{
    struct progress progress = {.begin = now(), .expected = r->goal.nodes + r->goal.sends};
    progress.next = progress.begin + 1;
    if (isatty(STDERR_FILENO)) {
        r->in.progress = show_progress;
        r->in.context = &progress;
    }
    enum sim_end end = sim_run(&r->in, &r->out);
    r->seconds = now() - progress.begin;
    if (progress.shown) {
        fprintf(stderr, "\r\033[K");
    }
    return report_failure(r, end);
}

int goal_run_written(int failed)
{
    if (failed != 0) {
        fprintf(stderr, "pinwheel goal run: writing to standard output failed\n");
        return 1;
    }
    return 0;
}

static int no_memory(void)
{
    fprintf(stderr, "pinwheel goal run: not enough memory for the record of what happened\n");
    return 1;
}

static int cannot_write(const char *option, const char *path)
{
    fprintf(stderr, "pinwheel goal run: %s %s: %s\n", option, path, strerror(errno));
    return 1;
}

/* Before a long run, not after it. */
static int check_size(const struct goal_run *r)
{
    if (r->trace != NULL && r->goal.nodes > GOAL_TRACE_MOST) {
        fprintf(stderr,
                "pinwheel goal run: --trace: %s has %" PRIu64 " operations; a timeline can have at "
                "most %d\n",
                r->file, r->goal.nodes, GOAL_TRACE_MOST);
        return 1;
    }
    if (r->timeline != NULL &&
        (r->goal.nodes > GOAL_TIMELINE_MOST || r->goal.ranks > GOAL_TIMELINE_RANKS)) {
        fprintf(stderr,
                "pinwheel goal run: --timeline: %s has %" PRIu32 " ranks and %" PRIu64
                " operations; a picture can have at most %d and %d, --trace more\n",
                r->file, r->goal.ranks, r->goal.nodes, GOAL_TIMELINE_RANKS, GOAL_TIMELINE_MOST);
        return 1;
    }
    return 0;
}

/* What the record of a run that ended well is for. */
static int read_record(struct goal_run *r)
{
    struct goal_summary s = goal_summarise(&r->goal, &r->out);
    if (r->critical_path && path_find(&r->path, &r->record, s.last, s.most) != 0) {
        return no_memory();
    }
    if (r->trace != NULL && goal_trace_write(r) != 0) {
        return cannot_write("--trace", r->trace);
    }
    if (r->timeline != NULL && goal_timeline_draw(r) != 0) {
        return cannot_write("--timeline", r->timeline);
    }
    return 0;
}

static int run_and_print(struct goal_run *r)
{
    int status = goal_run_simulate(r);
    if (status == 0 && r->in.record != NULL) {
        status = read_record(r);
    }
    if (status == 0) {
        status = goal_run_written(goal_run_print(r));
    }
    path_free(&r->path);
    sim_output_free(&r->out);
    return status;
}

static int run_once(struct goal_run *r)
{
    if (check_size(r) != 0) {
        return 1;
    }
    if (recorder(r) == NULL && !goal_jobs_need_record(r)) {
        return run_and_print(r);
    }
    r->in.record = &r->record;
    bool open =
        record_open(&r->record, &r->goal, &r->parameters, r->in.noise, r->in.calc_in_ps) == 0;
    if (open && r->in.network != NULL) {
        open = record_add_network(&r->record, r->trace != NULL ? GOAL_TRACE_CHANNELS : 0) == 0;
    }
    int status = open ? run_and_print(r) : no_memory();
    record_close(&r->record);
    return status;
}

static int open_and_run(struct goal_run *r)
{
    struct goal_error error;
    if (goal_open(&r->goal, r->file, r->flags, &error) != 0) {
        fprintf(stderr, "pinwheel goal run: %s\n", error.text);
        return 1;
    }
    r->in.goal = &r->goal;
    int status = goal_jobs_open(r);
    status = status == 0 ? goal_net_open(r) : status;
    if (status == 0) {
        status = r->sweep.values > 0 ? goal_sweep_run(r) : run_once(r);
        goal_net_close(r);
    }
    goal_jobs_free(&r->jobs);
    goal_close(&r->goal);
    return status;
}

int goal_command_run(int argc, char **argv)
{
    struct goal_run r = {.file = NULL};
    int status = parse(&r, argc, argv);
    if (status == 0) {
        status = open_and_run(&r);
    }
    sim_noise_close(&r.noise);
    return status > 0 ? status : 0;
}
