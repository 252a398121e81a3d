/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of one program that live and die together. */
#ifndef SOAK_CHILDREN_H
#define SOAK_CHILDREN_H

#include <sys/types.h>

/* child_begin() starts a process that calls run(number) and dies with its parent. It ends by
 * exit(), as programs do: what a sanitizer has to say at the end of one is said. */
pid_t child_begin(int number, void (*run)(int number));

/* children_wait() waits for `count` of them. It returns the status of the first that failed, or 0;
 * then the others, which wait for that one in vain, are killed. */
int children_wait(pid_t *child, unsigned count);

#endif
