/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subcommands of `pinwheel goal`, one file each. Each is called like a subcommand of `pinwheel`
 * (commands.h), with its own name as argv[0].
 */
#ifndef PINWHEEL_GOAL_COMMANDS_H
#define PINWHEEL_GOAL_COMMANDS_H

#include "pinwheel/util/args.h"

#include <stddef.h>
#include <stdint.h>

int goal_command_compile(int argc, char **argv);
int goal_command_gen(int argc, char **argv);
int goal_command_merge(int argc, char **argv);
int goal_command_record(int argc, char **argv);
int goal_command_run(int argc, char **argv);
int goal_command_show(int argc, char **argv);
int goal_command_trace(int argc, char **argv);

#endif
