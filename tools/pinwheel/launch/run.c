/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel run`: what it is told on the command line; launch.c does it. */
#include "agent.h"
#include "boot/pmi_server.h"
#include "host_list.h"
#include "launch.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/args.h"
#include "spawn.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_SIZE,
    RUN_BIND,
    RUN_LABEL,
    RUN_ENV,
    RUN_TIMEOUT,
    RUN_KEEP_GOING,
    RUN_HOSTS,
    RUN_HOSTFILE,
    RUN_SSH,
    RUN_REMOTE,
    RUN_AGENT
};

static const struct args_option run_options[] = {
    [RUN_SIZE] = {"-n", "N", "number of ranks, 1 to 4096 (default 1, or what the hosts hold)"},
    [RUN_BIND] = {"--bind", "home|core|none",
                  "home (default): each rank has a core of its own to wait on, if there are free "
                  "ones; core: rank i on the i-th allowed core only, modulo their number"},
    [RUN_LABEL] = {"--label", NULL, "begin each line of output with \"[rank] \""},
    [RUN_ENV] = {"--env", "NAME=VALUE", "set a variable in all ranks; may be repeated"},
    [RUN_TIMEOUT] = {"--timeout", "SECONDS", "end the job, with status 124, if it takes longer"},
    [RUN_KEEP_GOING] = {"--keep-going", NULL, "a rank that fails does not end the others"},
    [RUN_HOSTS] = {"--hosts", "A,B:2,...", "start them there, on B two; may be repeated"},
    [RUN_HOSTFILE] = {"--hostfile", "FILE", "a host a line: B, B:2 or B slots=2; # a comment"},
    [RUN_SSH] = {"--ssh", "COMMAND",
                 "what reaches a host, called with its name and a command line (default "
                 "PINWHEEL_SSH, or ssh without questions)"},
    [RUN_REMOTE] = {"--remote", "PATH",
                    "this command on the other hosts (default: where it is here)"},
    [RUN_AGENT] = {"--agent", NULL, "what --hosts starts on each host; not for people"},
};

/* What the options say, until the launcher has it. */
struct run {
    struct launch launch;
    struct host_list hosts;
    bool sized, agent; /* -n, --agent were given */
};

static const char run_summary[] =
    "Starts N processes of PROGRAM as the ranks of one job and stays until all have\n"
    "ended. They find each other through PMI-1 (PMI_FD, PMI_RANK, PMI_SIZE), and share\n"
    "the secret PINWHEEL_JOB_KEY and the name PINWHEEL_JOB_ID. Rank 0 reads this\n"
    "command's standard input, the others nothing. Other hosts are reached through ssh;\n"
    "ranks there have our variables PINWHEEL_* and LD_LIBRARY_PATH, and our folder.\n\n"
    "When a rank fails, all others are ended: SIGTERM, after 2 s SIGKILL. The exit\n"
    "status is that of the first failure: the rank's own, 128 + N if signal N ended it,\n"
    "the code of a PMI abort; 124 for the time-out, 126 and 127 if PROGRAM cannot be\n"
    "executed or found, 1 if a rank leaves while others wait for it.\n\n"
    "With --keep-going the others stay: each failure is told, ranks that are gone are\n"
    "counted into every barrier, what they have put stays, and the status is still that\n"
    "of the first. An abort, the time-out and the loss of a host end the job.";

static int parse_hosts(const struct args *a, int option, struct host_list *hosts)
{
    char error[512];
    int rc = option == RUN_HOSTS ? host_list_add(hosts, a->value, error, sizeof(error))
                                 : host_list_read(hosts, a->value, error, sizeof(error));
    return rc == 0 ? 0 : args_error(a, "%s %s: %s", run_options[option].name, a->value, error);
}

static int parse_bind(const struct args *a, enum launch_bind *bind)
{
    static const char *const names[] = {
        [LAUNCH_BIND_HOME] = "home", [LAUNCH_BIND_CORE] = "core", [LAUNCH_BIND_NONE] = "none"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(a->value, names[i]) == 0) {
            *bind = (enum launch_bind)i;
            return 0;
        }
    }
    return args_error(a, "--bind %s: must be home, core or none", a->value);
}

static int parse_option(const struct args *a, int option, struct run *r)
{
    struct launch *l = &r->launch;
    long number;
    switch (option) {
    case RUN_SIZE:
        if (args_number(a, "-n", 1, PMI_RANKS_MAX, &number) != 0) {
            return 2;
        }
        l->size = (int)number;
        r->sized = true;
        return 0;
    case RUN_HOSTS:
    case RUN_HOSTFILE:
        return parse_hosts(a, option, &r->hosts);
    case RUN_SSH:
        l->shell = a->value;
        return 0;
    case RUN_REMOTE:
        l->remote = a->value;
        return 0;
    case RUN_BIND:
        return parse_bind(a, &l->bind);
    case RUN_LABEL:
        l->label = true;
        return 0;
    case RUN_ENV:
        if (strchr(a->value, '=') == NULL || a->value[0] == '=') {
            return args_error(a, "--env %s: must be NAME=VALUE", a->value);
        }
        if (spawn_reserved(a->value)) {
            return args_error(a, "--env %s: `pinwheel run` itself sets this variable in each rank",
                              a->value);
        }
        l->environment[l->environment_count++] = (char *)(uintptr_t)a->value;
        return 0;
    case RUN_KEEP_GOING:
        l->keep_going = true;
        return 0;
    case RUN_AGENT:
        r->agent = true;
        return 0;
    default:
        return args_number(a, "--timeout", 1, 1000000, &l->timeout_seconds) != 0 ? 2 : 0;
    }
}

/* Ranks in the places that the hosts have. */
static int place(struct args *a, struct run *r)
{
    char error[256];
    struct launch *l = &r->launch;
    if (r->hosts.count == 0) {
        return l->shell == NULL && l->remote == NULL
                   ? 0
                   : args_error(a, "--ssh and --remote belong to --hosts");
    }
    l->size = r->sized ? l->size : r->hosts.ranks;
    if (host_list_fit(&r->hosts, l->size, error, sizeof(error)) != 0) {
        return args_error(a, "-n %d: %s", l->size, error);
    }
    l->hosts = &r->hosts;
    l->shell = l->shell != NULL ? l->shell : getenv("PINWHEEL_SSH");
    return 0;
}

static int run(struct args *a, struct run *r)
{
    int option;
    while ((option = args_next(a)) >= 0) {
        int rc = parse_option(a, option, r);
        if (rc != 0) {
            return rc;
        }
    }
    if (option == ARGS_HELP) {
        return 0;
    }
    if (option == ARGS_BAD) {
        return 2;
    }
    if (r->agent) {
        return agent_run();
    }
    if (a->next >= a->argc) {
        return args_error(a, "no PROGRAM given; it follows the options: "
                             "pinwheel run -n 2 PROGRAM [ARGUMENT]...");
    }
    int rc = place(a, r);
    r->launch.argv = &a->argv[a->next];
    return rc != 0 ? rc : launch_run(&r->launch);
}

int command_run(int argc, char **argv)
{
    struct args a = {.command = "run",
                     .operands = "PROGRAM [ARGUMENT]...",
                     .summary = run_summary,
                     .options = run_options,
                     .count = sizeof(run_options) / sizeof(run_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    struct run r = {.launch = {.size = 1, .environment = calloc((size_t)argc, sizeof(char *))}};
    if (r.launch.environment == NULL) {
        return args_error(&a, "no memory");
    }
    int status = run(&a, &r);
    free(r.launch.environment);
    host_list_free(&r.hosts);
    return status;
}
