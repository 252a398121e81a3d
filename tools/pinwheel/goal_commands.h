/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subcommands of `pinwheel goal`, one file each; each is called as a
 * subcommand of `pinwheel` is (commands.h), with its own name as argv[0].
 */
#ifndef PINWHEEL_GOAL_COMMANDS_H
#define PINWHEEL_GOAL_COMMANDS_H

#include "args.h"

#include <stddef.h>
#include <stdint.h>

int goal_command_compile(int argc, char **argv);
int goal_command_gen(int argc, char **argv);
int goal_command_merge(int argc, char **argv);
int goal_command_record(int argc, char **argv);
int goal_command_run(int argc, char **argv);
int goal_command_show(int argc, char **argv);
int goal_command_trace(int argc, char **argv);

/* goal_args_next() is args_next() for commands that take one operand, before,
 * between or after the options: it puts the operand in *operand. More than one is
 * an error. */
int goal_args_next(struct args *a, const char **operand);

/* goal_args_u64() parses the value of option `name` as a whole number of at most
 * `max`. On failure it says what would be right and returns -1. */
int goal_args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *number);

#endif
