/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel hpu`: runs and examines handlers on the RV32 core. A new subcommand needs a file, a
 * line of commands.h and a line of the table.
 */
#include "commands.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/family.h"

static const struct family_member members[] = {
    {"run", hpu_command_run, "run a handler on a packet: result, instructions, cycles"},
    {"profile", hpu_command_profile, "cycles by function and by source line; flame graph"},
    {"gdb", hpu_command_gdb, "a handler under GDB, step by step"},
    {"trace", hpu_command_trace, "each instruction that a handler executes"},
    {"disas", hpu_command_disas, "the instructions of an image"},
    {"size", hpu_command_size, "what an image takes of the limits"},
    {"budget", hpu_command_budget, "how many cycles a handler may take, and does one fit"},
};

int command_hpu(int argc, char **argv)
{
    static const struct family family = {
        .name = "hpu",
        .summary = "Handlers compiled for RISC-V, on a model of the cores of PsPIN.",
        .members = members,
        .count = sizeof(members) / sizeof(members[0]),
    };
    return family_run(&family, argc, argv);
}
