/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PMIx server beside the simulated job, so that programs of an MPI find each other without
 * mpirun (pmix.c).
 */
#ifndef PINWHEEL_SIM_PMIX_H
#define PINWHEEL_SIM_PMIX_H

#include <stdbool.h>
#include <stddef.h>

struct sim_pmix;

/* sim_pmix_start() starts the server of a job, a process; the caller has no other threads. NULL
 * after a line on stderr. */
struct sim_pmix *sim_pmix_start(int ranks);
/* sim_pmix_environment() gives, by rank, the lists of NAME=VALUE by which it finds the server. */
char ***sim_pmix_environment(struct sim_pmix *p);
/* sim_pmix_exited() notes that a rank's process has ended, `well` if with status 0, `excused` if it
 * was to die; sim_pmix_verdict() writes why the job is to end, and gives its status, or -1: it may
 * go on. Both are the launcher's (launch.h). */
void sim_pmix_exited(struct sim_pmix *p, int rank, bool well, bool excused);
int sim_pmix_verdict(struct sim_pmix *p, char *why, size_t size);
/* sim_pmix_used() says whether all ranks have found the server. */
bool sim_pmix_used(const struct sim_pmix *p);
/* sim_pmix_end() ends the server, when all ranks have ended. */
void sim_pmix_end(struct sim_pmix *p);

#endif
