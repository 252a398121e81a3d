/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal`: schedules of the simulator. Finds the subcommand in one table
 * and runs it. A new one is a file, a line of goal_commands.h and a line of the table.
 */
#include "goal_commands.h"

#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommands[] = {
    {"compile", goal_command_compile, "GOAL text to LogGOPSim's binary format"},
    {"run", goal_command_run, "simulate a schedule: when each rank finishes"},
    {"show", goal_command_show, "a schedule as text, its statistics, or JSON"},
    {"gen", goal_command_gen, "make a schedule: collectives, exchanges, incast, ..."},
    {"merge", goal_command_merge, "one schedule of those of several jobs on one network"},
    {"record", goal_command_record, "record what an MPI program calls"},
    {"trace", goal_command_trace, "make a schedule of such a recording"},
};

enum { SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

static void print_usage(FILE *to)
{
    fprintf(to, "usage: pinwheel goal SUBCOMMAND [ARGUMENT]...\n\n"
                "Schedules in GOAL: what each rank sends, receives and computes, and what waits "
                "for what.\n\nsubcommands:\n");
    for (int i = 0; i < SUBCOMMANDS; i++) {
        fprintf(to, "  %-8s %s\n", subcommands[i].name, subcommands[i].summary);
    }
    fprintf(to, "\n`pinwheel goal SUBCOMMAND --help` says more of one.\n");
}

int command_goal(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    for (int i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            return subcommands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "pinwheel goal: unknown subcommand %s; it is one of", argv[1]);
    for (int i = 0; i < SUBCOMMANDS; i++) {
        fprintf(stderr, "%s %s", i > 0 ? "," : "", subcommands[i].name);
    }
    fputc('\n', stderr);
    return 2;
}

int goal_args_next(struct args *a, const char **operand)
{
    for (;;) {
        int option = args_next(a);
        if (option != ARGS_END || a->next >= a->argc) {
            return option;
        }
        if (*operand != NULL) {
            args_error(a, "%s: takes one operand, %s, and has %s already", a->argv[a->next],
                       a->operands, *operand);
            return ARGS_BAD;
        }
        *operand = a->argv[a->next++];
    }
}

int goal_args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(a->value, &end, 10);
    bool digit = *a->value >= '0' && *a->value <= '9';
    if (!digit || *end != '\0' || errno != 0 || n > max) {
        args_error(a, "%s %s: must be a whole number from 0 to %" PRIu64, name, a->value, max);
        return -1;
    }
    *number = n;
    return 0;
}
