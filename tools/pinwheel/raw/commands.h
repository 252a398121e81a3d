/* SPDX-License-Identifier: BSD-3-Clause */
/* The subcommands of `pinwheel raw`; pinwheel/commands.h says how they are called. */
#ifndef PINWHEEL_RAW_COMMANDS_H
#define PINWHEEL_RAW_COMMANDS_H

int raw_command_check(int argc, char **argv);
int raw_command_run(int argc, char **argv);
int raw_command_serve(int argc, char **argv);

/* raw_command_folder() is where processes show their pages (raw/source/page.h): PINWHEEL_SHM_DIR.
 */
const char *raw_command_folder(void);

#endif
