/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TWIN: the ranks of a case as threads of one process. Each has a process of its own as far as the
 * library is concerned (process_enter()), so a NIC of its own; and its own copy of the module that
 * the cases are in, so that a static variable of theirs is one for each rank, as it is where the
 * ranks are processes. ThreadSanitizer then sees both ends of every message, since NICs of one
 * process share the mapping of a segment (fabric/shm/segment.c).
 *
 *      twin MODULE ARGUMENT...     loads the module, calls its twin_main()
 *
 * The module is a harness with its cases and module.c. The library is a part of the program, of
 * which there is one.
 *
 * What acts on the whole process (fork, kill, setenv, ...: module.c has the list) ends a case when
 * one of its threads calls it. A case that does so says in its row what it does, and is skipped;
 * one of those that share a body is run all the same, and fails if it does not come to such a call.
 * So the rows are true.
 */
#ifndef TESTS_TWIN_H
#define TESTS_TWIN_H

#define TWIN_EXPORT __attribute__((visibility("default")))

/* ---- of the program, twin.c ---- */

/* Those of nic/process.h. */
struct process;
TWIN_EXPORT struct process *twin_process_new(void);
TWIN_EXPORT struct process *twin_process_enter(struct process *p);
TWIN_EXPORT void twin_process_free(struct process *p);

/* ---- of the module, module.c ---- */

/* twin_load() loads one copy more for each rank but the first; argv[0] names the module. Ends the
 * program if it cannot. */
void twin_load(const char *module, int ranks);

/* twin_spread() calls twin_life() of each copy, on a thread and in a process of its own, and
 * returns when all have. */
void twin_spread(int ranks, void *arg);

/* ---- of the harness in the module ---- */

TWIN_EXPORT int twin_main(int argc, char **argv);
void twin_life(int rank, void *arg);

/* twin_refuse() ends the case of the calling thread, which has called `function`. */
_Noreturn void twin_refuse(const char *function);

#endif
