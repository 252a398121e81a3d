/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal run`: simulates a schedule and prints when each rank finishes, as a summary or as
 * JSON.
 */
#include "run.h"

#include "commands.h"
#include "pinwheel/util/json.h"
#include "sweep.h"

#include "sim/report/stuck.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AT(member) ARGS_AT(struct goal_run, member)

static const struct args_option run_options[] = {
    {"-L", "TIME", "latency: from a send's last instruction to the first byte (2500)", ARGS_TEXT,
     AT(text[SIM_L])},
    {"-o", "TIME", "CPU time of a message at either end (1500)", ARGS_TEXT, AT(text[SIM_o])},
    {"-g", "TIME", "pause of a NIC after a message (1000)", ARGS_TEXT, AT(text[SIM_g])},
    {"-G", "TIME", "NIC time of each byte after the first (6)", ARGS_TEXT, AT(text[SIM_G])},
    {"-O", "TIME", "CPU time of each byte after the first (0)", ARGS_TEXT, AT(text[SIM_O])},
    {"-S", "BYTES", "largest message that is sent eagerly (65535)", ARGS_TEXT, AT(text[SIM_S])},
    {"--parameters", "NAME", "a set of these: loggopsim, spin, hpc, ai", ARGS_TEXT, AT(set)},
    {"--model", "NAME", "pinwheel (the default), or loggopsim for LogGOPSim's times", ARGS_CHOICE,
     AT(in.model), .choices = "pinwheel|loggopsim"},
    {"--calc-unit", "ns|ps", "what the sizes of calcs count (ns)", ARGS_CHOICE, AT(in.calc_in_ps)},
    {"--threads", "N", "simulate with N threads (1); the results are the same", ARGS_NUMBER,
     AT(in.threads), 1, SIM_THREADS_MOST},
    {"--ranks", NULL, "print the finish time of every rank", ARGS_FLAG, AT(ranks)},
    {"--json", NULL, "print JSON: finish_ns, and what the summary says", ARGS_FLAG, AT(json)},
    {"--compat", NULL, "of equal labels in a text keep the first, as LogGOPSim's compiler does",
     ARGS_FLAG, AT(compat)},
    {"--sweep", "P=A:B:N",
     "run with N values of P (L, o, g, G, O or S) from A to B; a line for each", 0, AT(sweep),
     .take = goal_sweep_take},
    {"--svg", "FILE", "draw what --sweep found", ARGS_TEXT, AT(svg)},
    {"--critical-path", NULL, "what the last finish waited for, step by step, and the parts of it",
     ARGS_FLAG, AT(critical_path)},
    {"--trace", "FILE", "write the timeline as JSON, for Perfetto or Chrome's trace viewer",
     ARGS_TEXT, AT(trace)},
    {"--timeline", "FILE", "draw the timeline of a small schedule, as SVG", ARGS_TEXT,
     AT(timeline)},
    {"--queues", NULL, "count the queues in which recvs and messages wait for each other",
     ARGS_FLAG, AT(in.count_queues)},
    {"--noise", "NOISE",
     "detours of the cpus: exponential:period=1ms,mean=10us, uniform:, normal: or a "
     "trace; docs/loggops-model.md",
     ARGS_TEXT, AT(noise_text)},
    {"--jobs", "FILE",
     "when each job of a merged schedule ends; FILE is what goal merge --jobs wrote", ARGS_TEXT,
     AT(jobs_file)},
    {"--network", "NETWORK",
     "packets in a network in the place of L: fattree:radix=36, torus:8x8x8, "
     "dragonfly:a=4,h=2,p=2 or FILE.dot; docs/network-model.md",
     0, AT(net), .take = goal_net_take},
    {"--nic", "discrete|integrated|zero|pspin|FILE.toml",
     "hosts with simulated NICs, as `pinwheel sim` has them; docs/sim-nic.md", 0, AT(nic),
     .take = goal_nic_take},
    {"--matching", "free|host|nic",
     "who copies: nobody; the program all that comes; or what came before its recv", ARGS_CHOICE,
     AT(nic.copies)},
    {"--eager", "BYTES", "longest message that is copied (4096)", ARGS_NUMBER, AT(nic.eager), 0,
     INT64_MAX},
    {"--rendezvous", NULL, "longer ones are announced, and who matches gets them", ARGS_FLAG,
     AT(nic.rendezvous)},
    {"--routing", "static|adaptive", "by destination (the default), or by load", ARGS_CHOICE,
     AT(net.config.routing), .group = GOAL_NET},
    {"--switching", "cut-through|store-and-forward",
     "when a switch passes a packet on (cut-through)", ARGS_CHOICE,
     AT(net.config.store_and_forward), .group = GOAL_NET},
    {"--packet", "BYTES", "largest packet (4096)", ARGS_NUMBER, AT(net.config.packet), 1,
     NET_PACKET_MOST, .group = GOAL_NET},
    {"--buffer", "BYTES", "of each virtual channel where a cable enters a switch (65536)",
     ARGS_NUMBER, AT(net.config.buffer), 1, NET_BUFFER_MOST, .group = GOAL_NET},
    {"--link-rate", "RATE", "of a cable, as 400Gbit/s or 50GB/s (that of G)", 0,
     AT(net.config.byte), .take = goal_net_take_rate, .group = GOAL_NET},
    {"--hop-latency", "TIME", "through a switch (50)", 0, AT(net.config.hop),
     .take = goal_net_take_time, .group = GOAL_NET},
    {"--cable-latency", "TIME", "along a cable (33.4)", 0, AT(net.config.cable),
     .take = goal_net_take_time, .group = GOAL_NET},
    {"--placement", "linear|random|FILE",
     "which host has which rank: in order (the default), drawn by lot, or a "
     "file of hosts",
     ARGS_TEXT, AT(net.placement), .group = GOAL_NET},
    {"--seed", "N", "of what is drawn by lot (1); the same seed, the same results", ARGS_NUMBER,
     AT(net.config.seed), 0, INT64_MAX},
};

/* ---- Options ---- */

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

/* Sets the parameters: those of the named set, replaced by -L to -S where given. */
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
    if (goal_nic_check(r) != 0 || goal_net_check(r) != 0) {
        return 2;
    }
    if (sim_check(&r->in, error, sizeof(error)) != 0) {
        return args_error(&r->args, "%s", error);
    }
    return 0;
}

/* Returns the option that needs a record of the run, or NULL. */
static const char *recorder(const struct goal_run *r)
{
    if (r->critical_path) {
        return "--critical-path";
    }
    return r->trace != NULL ? "--trace" : r->timeline != NULL ? "--timeline" : NULL;
}

/* Refuses options that have no effect together with, or without, other options. */
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

/* Returns 0, 2 after an error of usage, -1 after help was printed. */
static int parse(struct goal_run *r, int argc, char **argv)
{
    r->args = (struct args){
        .command = "goal run",
        .operands = "FILE",
        .summary = "Simulates a GOAL schedule, text or binary, and says when each rank finishes.\n"
                   "A time without unit is ns; others are ps, us, ms, s. docs/loggops-model.md "
                   "has the models.",
        .operand = &r->file,
        ARGS_OPTIONS(run_options),
    };
    r->set = "loggopsim";
    r->in.threads = 1;
    r->nic.eager = 4096;
    goal_net_begin(r);
    int status = args_parse(&r->args, argc, argv, r);
    if (status != ARGS_GO_ON) {
        return status != 0 ? status : -1;
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

static double time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return time_of(CLOCK_MONOTONIC);
}

/* Shows on a terminal how far a long run is, twice a second. */
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

/* Prints why a run gave no finish times; returns 1. */
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
    double processor = time_of(CLOCK_PROCESS_CPUTIME_ID);
    enum sim_end end = r->nic.name != NULL ? sim_nic_run(&r->in, &r->nic.machine, &r->out)
                                           : sim_run(&r->in, &r->out);
    r->seconds = now() - progress.begin;
    r->processor = time_of(CLOCK_PROCESS_CPUTIME_ID) - processor;
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

/* Refuses schedules that are too large for --trace or --timeline, before the run. */
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

/* Writes the outputs that need the record of a run: critical path and timelines. */
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
    if (goal_open(&r->goal, r->file, r->compat ? GOAL_COMPAT : 0, &error) != 0) {
        fprintf(stderr, "pinwheel goal run: %s\n", error.text);
        return 1;
    }
    r->in.goal = &r->goal;
    int status = goal_jobs_open(r);
    status = status == 0 ? goal_nic_open(r) : status;
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
