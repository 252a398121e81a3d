/* SPDX-License-Identifier: BSD-3-Clause */
/* The machines of `pinwheel sim` for `pinwheel goal run --nic` (machine.c). */
#ifndef PINWHEEL_GOAL_MACHINE_H
#define PINWHEEL_GOAL_MACHINE_H

#include <stddef.h>

struct nic_machine;

/* goal_machine_find() reads a machine, by its name or from a file; -1 with an error that names
 * place, value and remedy. */
int goal_machine_find(const char *name, struct nic_machine *m, char *error, size_t size);

#endif
