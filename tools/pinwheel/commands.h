/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subcommands of `pinwheel`, one file each. Each gets its own name as argv[0] and returns the
 * exit status: 0, 1 for a failure, 2 for bad usage.
 */
#ifndef PINWHEEL_COMMANDS_H
#define PINWHEEL_COMMANDS_H

int command_bench(int argc, char **argv);
int command_cc(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_goal(int argc, char **argv);
int command_hpu(int argc, char **argv);
int command_info(int argc, char **argv);
int command_nic(int argc, char **argv);
int command_raw(int argc, char **argv);
int command_reproduce(int argc, char **argv);
int command_rma(int argc, char **argv);
int command_run(int argc, char **argv);
int command_sim(int argc, char **argv);
int command_slmp(int argc, char **argv);

#endif
