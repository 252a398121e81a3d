/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command `pinwheel`: finds the subcommand in one table and runs it. A new subcommand needs a
 * file, a line of commands.h and a line of the table.
 */
#include "base/nearest.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

#ifndef PINWHEEL_VERSION
#error "PINWHEEL_VERSION comes from the build: the project's version"
#endif

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommands[] = {
    {"info", command_info, "what this machine offers, and the options of the library"},
    {"nic", command_nic, "look into the NICs of running processes"},
    {"run", command_run, "start N processes as the ranks of one job"},
    {"sim", command_sim, "run a program with simulated NICs, in virtual time"},
    {"reproduce", command_reproduce,
     "figures of papers under `pinwheel sim`, beside what they say"},
    {"goal", command_goal, "schedules of the simulator: compile, show, generate, run"},
    {"rma", command_rma, "run programs of MPI with one-sided communication over Pinwheel"},
    {"cc", command_cc, "compile handlers for this machine and for the RV32 cores"},
    {"hpu", command_hpu, "handlers on a model of RISC-V cores: run, profile, trace, budget"},
    {"slmp", command_slmp, "send and receive files over UDP"},
#ifdef PINWHEEL_WITH_PORTALS
    {"raw", command_raw, "handlers on the frames of ordinary network interfaces"},
    {"demo", command_demo, "show ping-pong and a text scan by handlers, between two processes"},
    {"bench", command_bench, "measure Pinwheel beside the machine's limits and other libraries"},
#endif
};

enum { SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

static void print_usage(FILE *to)
{
    fprintf(to, "usage: pinwheel SUBCOMMAND [ARGUMENT]...\n\n"
                "Pinwheel is a sPIN network interface in software, spoken to in Portals 4.\n\n"
                "subcommands:\n");
    for (int i = 0; i < SUBCOMMANDS; i++) {
        fprintf(to, "  %-9s %s\n", subcommands[i].name, subcommands[i].summary);
    }
    fprintf(to, "  %-9s %s\n", "help", "this text; `pinwheel help SUBCOMMAND` for one of them");
    fprintf(to, "\n`pinwheel --version` prints the version.\n");
}

static const struct subcommand *find(const char *name)
{
    for (int i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(subcommands[i].name, name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "pinwheel: unknown %s %s; it is one of",
            name[0] == '-' ? "option" : "subcommand", name);
    for (int i = 0; i < SUBCOMMANDS; i++) {
        fprintf(stderr, " %s,", subcommands[i].name);
    }
    struct nearest near = nearest_to(name, strlen(name));
    nearest_try(&near, "help");
    nearest_try(&near, "--version");
    for (int i = 0; i < SUBCOMMANDS; i++) {
        nearest_try(&near, subcommands[i].name);
    }
    char text[80];
    fprintf(stderr, " help, --version%s\n", nearest_text(&near, text));
    return 2;
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stdout);
        return 0;
    }
    const struct subcommand *s = find(argv[1]);
    if (s == NULL) {
        return unknown(argv[1]);
    }
    char option[] = "--help";
    char *words[] = {argv[1], option, NULL};
    return s->run(2, words);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        return help(argc - 1, argv + 1);
    }
    if (strcmp(name, "--version") == 0) {
        printf("pinwheel %s\n", PINWHEEL_VERSION);
        return 0;
    }
    const struct subcommand *s = find(name);
    return s != NULL ? s->run(argc - 1, argv + 1) : unknown(name);
}
