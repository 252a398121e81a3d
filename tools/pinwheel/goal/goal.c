/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal`: makes, converts and simulates schedules. A new subcommand needs a file, a line
 * of commands.h and a line of the table.
 */
#include "commands.h"

#include "pinwheel/commands.h"
#include "pinwheel/util/family.h"

#include <string.h>

static const struct family_member members[] = {
    {"compile", goal_command_compile, "GOAL text to LogGOPSim's binary format"},
    {"run", goal_command_run, "simulate a schedule: when each rank finishes"},
    {"show", goal_command_show, "a schedule as text, its statistics, or JSON"},
    {"gen", goal_command_gen, "make a schedule: collectives, exchanges, incast, ..."},
    {"merge", goal_command_merge, "one schedule of those of several jobs on one network"},
    {"record", goal_command_record, "record what an MPI program calls"},
    {"trace", goal_command_trace, "make a schedule of such a recording"},
};

int command_goal(int argc, char **argv)
{
    static const struct family family = {
        .name = "goal",
        .summary = "Schedules in GOAL: what each rank sends, receives and computes, and what waits "
                   "for what.",
        .members = members,
        .count = sizeof(members) / sizeof(members[0]),
    };
    return family_run(&family, argc, argv);
}
