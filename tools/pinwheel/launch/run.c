/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel run`: parses its command line; launch.c runs the job. */
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
#include <unistd.h>

/* What the command line says, before the job is started. */
struct run {
    struct launch launch;
    struct host_list hosts;
    bool agent;
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

static int hosts_taken(const struct args *a, int rc, const char *error)
{
    return rc == 0 ? ARGS_GO_ON : args_bad(a, "%s", error);
}

static int take_hosts(struct args *a, void *hosts)
{
    char error[512];
    return hosts_taken(a, host_list_add(hosts, a->value, error, sizeof(error)), error);
}

static int take_host_file(struct args *a, void *hosts)
{
    char error[512];
    return hosts_taken(a, host_list_read(hosts, a->value, error, sizeof(error)), error);
}

static int take_variable(struct args *a, void *into)
{
    struct launch *l = &((struct run *)into)->launch;
    if (strchr(a->value, '=') == NULL || a->value[0] == '=') {
        return args_bad(a, "must be NAME=VALUE");
    }
    if (spawn_reserved(a->value)) {
        return args_bad(a, "`pinwheel run` itself sets this variable in each rank");
    }
    l->environment[l->environment_count++] = (char *)(uintptr_t)a->value;
    return ARGS_GO_ON;
}

#define AT(member) ARGS_AT(struct run, member)

static const struct args_option run_options[] = {
    {"-n", "N", "number of ranks, 1 to 4096 (default 1, or what the hosts hold)", ARGS_NUMBER,
     AT(launch.size), 1, PMI_RANKS_MAX},
    {"--bind", "home|core|none",
     "home (default): each rank has a core of its own to wait on, if there are free ones; core: "
     "rank i on the i-th allowed core only, modulo their number",
     ARGS_CHOICE, AT(launch.bind)},
    {"--label", NULL, "begin each line of output with \"[rank] \"", ARGS_FLAG, AT(launch.label)},
    {"--env", "NAME=VALUE", "set a variable in all ranks; may be repeated", .take = take_variable},
    {"--timeout", "SECONDS", "end the job, with status 124, if it takes longer", ARGS_NUMBER,
     AT(launch.timeout_seconds), 1, 1000000},
    {"--keep-going", NULL, "a rank that fails does not end the others", ARGS_FLAG,
     AT(launch.keep_going)},
    {"--hosts", "A,B:2,...", "start them there, on B two; may be repeated", 0, AT(hosts),
     .take = take_hosts},
    {"--hostfile", "FILE", "a host a line: B, B:2 or B slots=2; # a comment", 0, AT(hosts),
     .take = take_host_file},
    {"--ssh", "COMMAND",
     "what reaches a host, called with its name and a command line (default PINWHEEL_SSH, or ssh "
     "without questions)",
     ARGS_TEXT, AT(launch.shell)},
    {"--remote", "PATH", "this command on the other hosts (default: where it is here)", ARGS_TEXT,
     AT(launch.remote)},
    {"--agent", NULL, "what --hosts starts on each host; not for people", ARGS_FLAG, AT(agent)},
};

/* Checks that the hosts have places for the ranks, and assigns them. */
static int place(struct args *a, struct run *r)
{
    char error[256];
    struct launch *l = &r->launch;
    if (r->hosts.count == 0) {
        return l->shell == NULL && l->remote == NULL
                   ? 0
                   : args_error(a, "--ssh and --remote belong to --hosts");
    }
    l->size = args_given(a, "-n") ? l->size : r->hosts.ranks;
    if (host_list_fit(&r->hosts, l->size, error, sizeof(error)) != 0) {
        return args_error(a, "-n %d: %s", l->size, error);
    }
    l->hosts = &r->hosts;
    l->shell = l->shell != NULL ? l->shell : getenv("PINWHEEL_SSH");
    return 0;
}

static int run(struct args *a, struct run *r)
{
    if (r->agent) {
        return agent_run();
    }
    if (a->next >= a->argc) {
        return args_error(a, "no PROGRAM given; it follows the options: "
                             "pinwheel run -n 2 PROGRAM [ARGUMENT]...");
    }
    /* a rank that opens no interface would not warn of a misspelt variable */
    args_environment(a->command, environ);
    args_environment(a->command, r->launch.environment);
    int rc = place(a, r);
    r->launch.argv = &a->argv[a->next];
    return rc != 0 ? rc : launch_run(&r->launch);
}

int command_run(int argc, char **argv)
{
    struct args a = {.command = "run",
                     .operands = "PROGRAM [ARGUMENT]...",
                     .summary = run_summary,
                     ARGS_OPTIONS(run_options)};
    struct run r = {.launch = {.size = 1, .environment = calloc((size_t)argc, sizeof(char *))}};
    if (r.launch.environment == NULL) {
        return args_error(&a, "no memory");
    }
    int status = args_parse(&a, argc, argv, &r);
    status = status == ARGS_GO_ON ? run(&a, &r) : status;
    free(r.launch.environment);
    host_list_free(&r.hosts);
    return status;
}
