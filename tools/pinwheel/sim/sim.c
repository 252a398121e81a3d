/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel sim`: a job whose ranks have simulated NICs, in virtual time; coordinator.c runs it. */
#include "boot/pmi_server.h"
#include "compare.h"
#include "coordinator.h"
#include "hot.h"
#include "job.h"
#include "outputs.h"
#include "pinwheel/commands.h"
#include "pinwheel/launch/launch.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/program.h"
#include "profile.h"
#include "results.h"
#include "room.h"
#include "served.h"
#include "sim/util/parameters.h"
#include "spans.h"
#include "stats.h"
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STUCK = 3, SPANS = 1 << 22 };
#define PRELOADED "libpinwheel-sim.so"

static const char sim_summary[] =
    "Runs N processes of PROGRAM as the ranks of one job, as `pinwheel run` does, with simulated\n"
    "NICs in virtual time: their bytes move, and all that a NIC does takes the time that it would\n"
    "take. What the program computes takes none unless it says so (pinwheel_sim.h). Afterwards\n"
    "two lines say how long the job took and what limited it.\n\n"
    "The exit status is that of `pinwheel run`; 3 if ranks wait for what never comes.";

static int take_network(struct args *a, void *sim)
{
    struct sim *s = sim;
    char error[NET_ERROR];
    s->network = a->value;
    return net_spec_parse(&s->setup.spec, a->value, error) == 0
               ? ARGS_GO_ON
               : args_error(a, "--network %s", error);
}

static int take_fault(struct args *a, void *plan)
{
    char error[FAULT_ERROR];
    return fault_parse(plan, a->value, error) == 0 ? ARGS_GO_ON
                                                   : args_error(a, "--fault %s", error);
}

static int take_time(struct args *a, void *ps)
{
    char error[256];
    return sim_time_parse(ps, a->option->name, a->value, error, sizeof(error)) == 0
               ? ARGS_GO_ON
               : args_error(a, "%s", error);
}

/* declared, measured, measured:SCALE */
static int take_compute(struct args *a, void *sim)
{
    struct sim *s = sim;
    static const char measured[] = "measured";
    char *end = NULL;
    double scale = 1;
    s->compute = 0;
    if (strcmp(a->value, "declared") == 0) {
        return ARGS_GO_ON;
    }
    if (strncmp(a->value, measured, strlen(measured)) == 0) {
        const char *rest = a->value + strlen(measured);
        scale = rest[0] == ':' ? strtod(rest + 1, &end) : 1;
        if ((rest[0] == '\0' || (rest[0] == ':' && end != rest + 1 && *end == '\0')) &&
            scale >= 0.001 && scale <= 1000) {
            s->compute = (uint32_t)(scale * 1000 + 0.5);
            return ARGS_GO_ON;
        }
    }
    return args_bad(a, "must be declared, measured or measured:SCALE, from 0.001 to 1000");
}

static int take_stats(struct args *a, void *sim)
{
    struct sim *s = sim;
    const char *end = strrchr(a->value, '.');
    bool file = end != NULL && strcmp(end, ".json") == 0;
    s->stats_file = a->value;
    s->stats = a->value[0] == '\0'             ? STATS_TEXT
               : strcmp(a->value, "json") == 0 ? STATS_STDOUT
               : file                          ? STATS_FILE
                                               : STATS_NONE;
    return s->stats != STATS_NONE ? ARGS_GO_ON : args_bad(a, "must be json, or a file NAME.json");
}

#define AT(member) ARGS_AT(struct sim, member)

static const struct args_option sim_options[] = {
    {"-n", "N", "number of ranks, 1 to 4096 (default 1)", ARGS_NUMBER, AT(launch.size), 1,
     SIM_RANKS_MOST},
    {"--processes", "N",
     "processes that each rank may have forked and that live at once, 0 to 1024 (default 32, and 2 "
     "beyond 64 ranks)",
     ARGS_NUMBER, AT(setup.processes), 0, SIM_PROCESSES_MOST},
    {"--per-host", "K", "ranks that share a host, with its NIC, 1 to 64 (default 1)", ARGS_NUMBER,
     AT(setup.per_host), 1, SIM_PER_HOST_MOST},
    {"--nic", PROFILE_NAMES,
     "the machine of each rank: its NIC behind a bus (default) or in the processor, one without "
     "costs, PsPIN, or as a file has it; with commas, one after the other",
     0, AT(sweep), .take = sweep_take_nics},
    {"--sweep", "KEY=A:B[:N]",
     "run the job with values of a parameter of the machine, such as hpus=1:16, and compare", 0,
     AT(sweep), .take = sweep_take},
    {"--compare", NULL,
     "print what differs between the two runs of --nic A,B or --sweep, or between two files of "
     "--stats=F.json, which then stand in place of PROGRAM",
     ARGS_FLAG, AT(sweep.compare)},
    {"--svg", "F.svg", "draw what --sweep finds, with the data in F.csv", ARGS_TEXT, AT(sweep.svg)},
    {"--hpus", "N", "HPUs of a NIC, 1 to 64 (default 4)", ARGS_NUMBER, AT(setup.machine.hpus), 1,
     SIM_HPUS},
    {"--handler", "TIME", "what a call of a handler without device code takes (default 10ns)", 0,
     AT(setup.machine.handler), .take = take_time},
    {"--network", "SHAPE",
     "fattree:radix=R, torus:AxBxC, dragonfly:a=A,h=H,p=P or FILE.dot (default fattree:radix=36)",
     .take = take_network},
    {"--routing", "static|adaptive", "by destination (the default), or by load", ARGS_CHOICE,
     AT(setup.net.routing)},
    {"--switching", "cut-through|store-and-forward",
     "when a switch passes a packet on (cut-through)", ARGS_CHOICE,
     AT(setup.net.store_and_forward)},
    {"--buffer", "BYTES", "of each virtual channel where a cable enters a switch (65536)",
     ARGS_NUMBER, AT(setup.net.buffer), SIM_PACKET, NET_BUFFER_MOST},
    {"--seed", "N", "of what adaptive routes draw by lot (1)", ARGS_NUMBER, AT(setup.net.seed), 0,
     INT64_MAX},
    {"--shuffle", "SEED",
     "have each packet come up to 1 us later, as drawn by lot, so that those of a message come in "
     "any order",
     ARGS_NUMBER, AT(setup.shuffle), 0, INT64_MAX},
    {"--hop-latency", "TIME", "through a switch (default 50ns)", 0, AT(setup.net.hop),
     .take = take_time},
    {"--cable-latency", "TIME", "along a cable (default 33.4ns)", 0, AT(setup.net.cable),
     .take = take_time},
    {"--fault", "TEXT",
     "what fails: \"rank 3 dies at 10us; hpu 2 of rank 5 faults at 1us; link leaf0-spine2 down "
     "20us..40us; drop 1e-5 seed 7\", times in virtual time",
     0, AT(setup.faults), .take = take_fault},
    {"-j", "N",
     "ranks that run at once, at most; results do not depend on it (default 4 a processor)",
     ARGS_NUMBER, AT(setup.jobs), 1, SIM_RANKS_MOST},
    {"--compute", "declared|measured[:SCALE]",
     "what the program's own instructions take: what it declares (default), or the time of the "
     "processor, times SCALE, which is another one in each run",
     .take = take_compute},
    {"--memory-waits", NULL,
     "a program that has made no call for 20 ms of the processor waits until something can have "
     "changed its memory; its times are others in each run",
     ARGS_FLAG, AT(memory_waits)},
    {"--no-skip", NULL, "make each look of a program at nothing, as slow as it is", ARGS_FLAG,
     AT(no_skip)},
    {"--pmix", NULL, "serve PMIx to ranks of a script, too, as to those of a program of Open MPI",
     ARGS_FLAG, AT(pmix)},
    {"--label", NULL, "begin each line of output with \"[rank] \"", ARGS_FLAG, AT(setup.label)},
    {"--direct", NULL,
     "let ranks write to standard output and error themselves, not in the order of virtual time",
     ARGS_FLAG, AT(setup.direct)},
    {"--gdb", "RANK", "wait for a debugger to attach to that rank, and say how, before time begins",
     ARGS_NUMBER, AT(setup.debug), 0, SIM_RANKS_MOST - 1},
    {"--timeout", "SECONDS", "end the job, with status 124, if it takes longer in real time",
     ARGS_NUMBER, AT(launch.timeout_seconds), 1, 1000000},
    {"--quiet", NULL, "say nothing about the run at its end", ARGS_FLAG, AT(quiet)},
    {"--stats", "[=json|F.json]",
     "what was taken, by rank: a table, or JSON on standard output or in a file",
     .take = take_stats},
    {"--profile", NULL,
     "say where handlers of RV32 code spent their cycles, by function and source line", ARGS_FLAG,
     AT(setup.profile)},
    {"--timeline", "F.svg", "draw who took what when, up to 64 ranks, with the data in F.csv",
     ARGS_TEXT, AT(timeline)},
    {"--trace", "F.json", "write that for Perfetto", ARGS_TEXT, AT(trace)},
    {"--spans", "N", "of each rank, that these two have at most (default 4 M among all ranks)",
     ARGS_NUMBER, AT(spans), 1, 100000000},
    {"--json", NULL, "say it on standard output, as JSON", ARGS_FLAG, AT(json)},
};

static void free_strings(char *(*variables)[5])
{
    free((*variables)[3]);
    free((*variables)[4]);
}

/* Starts the job, with the coordinator beside it; returns the exit status. */
static int run_job(void *sim, const struct sim_machine *m, struct coordinator_result *result)
{
    struct sim *s = sim;
    char path[128], fabric[] = "PINWHEEL_FABRIC=sim", timing[64];
    char library[PATH_MAX], shared[] = "PINWHEEL_SIM_PER_HOST=1", *given[6];
    char *environment[5]
        __attribute__((cleanup(free_strings))) = {path, fabric, timing, NULL, program_sanitizer()};
    memset(result, 0, sizeof(*result));
    s->setup.machine = *m;
    s->setup.net.byte = m->byte;
    if (!program_beside("src/virtual", PRELOADED, library, sizeof(library)) ||
        (environment[3] = program_preload(library)) == NULL) {
        fprintf(stderr, "pinwheel sim: cannot find " PRELOADED ", which belongs in the folder "
                        "`pinwheel` of the libraries: install Pinwheel again\n");
        return 1;
    }
    s->setup.ranks = (uint32_t)s->launch.size;
    if (s->setup.jobs == 0) {
        cpu_set_t cores; /* a turn is short, and to wake somebody takes time: more than one each */
        s->setup.jobs = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
        s->setup.jobs *= 4;
    }
    char error[ROOM_ERROR];
    if (fault_check(&s->setup.faults, s->setup.ranks, m->hpus, error) != 0) {
        fprintf(stderr, "pinwheel sim: --fault %s\n", error);
        return 2;
    }
    if (!room_check("", s->setup.ranks, error)) {
        fprintf(stderr, "pinwheel sim: a job of %u ranks: %s\n", s->setup.ranks, error);
        return 1;
    }
    struct served served;
    if (!served_begin(&served, &s->launch, s->pmix)) {
        return 1;
    }
    struct coordinator *c = coordinator_start(&s->setup);
    if (c == NULL) {
        result->failed = true; /* it was said why */
        served_end(&served, true);
        return 1;
    }
    served_tell(&served, &s->launch, c, s->setup.direct);
    snprintf(path, sizeof(path), SIM_VARIABLE "=%s", coordinator_path(c));
    s->launch.environment = given;
    s->launch.environment_count = 0;
    for (unsigned i = 0; i < 5; i++) {
        given[s->launch.environment_count] = environment[i];
        s->launch.environment_count += environment[i] != NULL;
    }
    given[s->launch.environment_count] = shared;
    s->launch.environment_count += s->setup.per_host > 1;
    snprintf(timing, sizeof(timing), "PINWHEEL_HPU_TIMING=%s", profile_timing(&s->setup.machine));
    s->launch.bind = LAUNCH_BIND_NONE;
    s->launch.label = s->setup.direct && s->setup.label;
    s->launch.keep_going = fault_any(&s->setup.faults);
    int status = launch_run(&s->launch);
    coordinator_end(c, result);
    served_end(&served, result->nics);
    return result->stuck ? STUCK : result->failed && status == 0 ? 1 : status;
}

/* One run, and what is said of it. */
static int simulate(struct sim *s)
{
    struct coordinator_result result;
    if (!outputs_can("--timeline", s->timeline, true) || !outputs_can("--trace", s->trace, false) ||
        (s->stats == STATS_FILE && !outputs_can("--stats", s->stats_file, false))) {
        return 1;
    }
    int status = run_job(s, &s->sweep.nic[0], &result);
    if (s->json) {
        results_json(s, &result);
    } else if (!s->quiet && !result.failed) {
        results_text(s, &result);
    }
    if (s->setup.profile && result.hot == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for --profile\n");
        result.failed = true;
    } else if (result.hot != NULL && !s->json) {
        hot_print(result.hot, stderr);
    }
    bool failed = results_stats(s, &result) != 0 || result.failed;
    failed |= results_spans(s, &result) != 0;
    free(result.stats);
    free(result.hot);
    spans_free(result.spans);
    return failed && status == 0 ? 1 : status;
}

/* All runs that are asked for, and the end of the command. */
static int simulate_all(struct sim *s)
{
    int status;
    if (s->sweep.nics == 1 && s->sweep.values == 0) {
        status = simulate(s);
    } else {
        s->sweep.json = s->json;
        s->sweep.run = run_job;
        s->sweep.arg = s;
        status = outputs_can("--svg", s->sweep.svg, true) ? sweep_run(&s->sweep) : 1;
    }
    fault_free(&s->setup.faults);
    return outputs_end(status);
}

/* Whether the options are for as many runs as there are. */
static int check_runs(struct args *a, const struct sim *s)
{
    const struct sweep *w = &s->sweep;
    unsigned runs = w->nics * (w->values != 0 ? w->values : 1);
    bool one = w->nics == 1 && w->values == 0;
    if (one && w->svg != NULL) {
        return args_error(a, "--svg draws what --sweep, or --nic A,B, finds");
    }
    if (w->compare && (runs != 2 || w->svg != NULL)) {
        return args_error(a, "--compare is of two runs, and prints: give two machines to --nic, or "
                             "two values to --sweep, without --svg");
    }
    if (!one && (s->stats != STATS_NONE || s->setup.spans != 0 || s->setup.profile)) {
        return args_error(a, "--stats, --profile, --timeline and --trace are for one run: leave "
                             "out --sweep, and give one --nic");
    }
    if (w->values != 0 && ((strcmp(w->key, "hpus") == 0 && args_given(a, "--hpus")) ||
                           (strcmp(w->key, "handler") == 0 && args_given(a, "--handler")))) {
        return args_error(a, "--sweep %s and --%s are two values of one parameter: leave one out",
                          w->key, w->key);
    }
    return ARGS_GO_ON;
}

/* `pinwheel sim --compare A.json B.json` runs nothing. */
static int compare_operands(struct args *a, bool json)
{
    if (a->argc - a->next != 2) {
        return args_error(a, "--compare takes two files of --stats=F.json; or a PROGRAM, and two "
                             "machines by --nic A,B");
    }
    return outputs_end(compare_files(a->argv[a->next], a->argv[a->next + 1], json));
}

int command_sim(int argc, char **argv)
{
    struct args a = {.command = "sim",
                     .operands = "PROGRAM [ARGUMENT]...",
                     .summary = sim_summary,
                     ARGS_OPTIONS(sim_options)};
    char error[(int)NET_ERROR > (int)PROFILE_ERROR ? (int)NET_ERROR : (int)PROFILE_ERROR];
    struct sim s = {
        .launch = {.size = 1},
        .setup = {.net = {.packet = SIM_PACKET,
                          .buffer = 65536,
                          .hop = 50000,
                          .cable = 33400,
                          .seed = 1},
                  .processes = 32,
                  .per_host = 1},
    };
    net_spec_parse(&s.setup.spec, "fattree:radix=36", error);
    s.sweep.nics = 1;
    s.sweep.nic_name[0] = "discrete";
    profile_find("discrete", &s.sweep.nic[0], error);
    int status = args_parse(&a, argc, argv, &s);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (!args_given(&a, "--processes") && s.launch.size > 64) {
        s.setup.processes = 2;
    }
    if (getenv(SIM_VARIABLE) != NULL) {
        fprintf(stderr, "pinwheel sim: a rank of a simulated job (" SIM_VARIABLE " is set) cannot "
                        "start another one: start it beside the job\n");
        return 1;
    }
    if (s.sweep.compare && s.sweep.nics == 1 && s.sweep.values == 0) {
        return compare_operands(&a, s.json);
    }
    if (a.next >= a.argc) {
        return args_error(&a, "no PROGRAM given; it follows the options: "
                              "pinwheel sim -n 2 PROGRAM [ARGUMENT]...");
    }
    if (s.setup.net.cable == 0) {
        return args_error(&a, "--cable-latency 0: a network without latency cannot be simulated in "
                              "windows; give it a picosecond or more");
    }
    if (s.timeline != NULL && s.launch.size > TIMELINE_RANKS) {
        return args_error(&a,
                          "--timeline: %d ranks are more than can be read in a picture, %d: "
                          "use --trace",
                          s.launch.size, TIMELINE_RANKS);
    }
    if (s.timeline != NULL || s.trace != NULL) {
        s.setup.spans = s.spans != 0 ? s.spans : SPANS / (uint64_t)s.launch.size;
    }
    for (unsigned i = 0; i < s.sweep.nics; i++) {
        struct sim_machine *m = &s.sweep.nic[i];
        m->hpus = args_given(&a, "--hpus") ? s.setup.machine.hpus : m->hpus;
        m->handler = args_given(&a, "--handler") ? s.setup.machine.handler : m->handler;
        m->no_skip = s.no_skip;
        m->memory_waits = s.memory_waits;
        m->compute = s.compute;
    }
    s.launch.argv = &a.argv[a.next];
    s.setup.shuffled = args_given(&a, "--shuffle");
    if (s.pmix && s.setup.per_host > 1) {
        return args_error(&a, "--pmix: ranks of PMIx have a host each: leave out --per-host");
    }
    s.setup.debugged = args_given(&a, "--gdb");
    if (s.setup.debugged && s.setup.debug >= (uint32_t)s.launch.size) {
        return args_error(&a, "--gdb %u: ranks are 0 to %d", s.setup.debug, s.launch.size - 1);
    }
    status = check_runs(&a, &s);
    return status == ARGS_GO_ON ? simulate_all(&s) : status;
}
