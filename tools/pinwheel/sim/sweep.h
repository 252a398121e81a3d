/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several runs of one job: `pinwheel sim --sweep` with the values of a parameter of the machine,
 * and
 * `--nic A,B` with several machines; their times side by side, and as a picture (sweep.c).
 */
#ifndef PINWHEEL_SIM_SWEEP_H
#define PINWHEEL_SIM_SWEEP_H

#include "coordinator.h"
#include "pinwheel/util/args.h"

enum { SWEEP_NICS = 8, SWEEP_VALUES = 256 };

struct sweep {
    unsigned nics;
    const char *nic_name[SWEEP_NICS];
    struct sim_machine nic[SWEEP_NICS];
    char key[24]; /* of the parameter; "": none is varied */
    unsigned values;
    uint64_t value[SWEEP_VALUES]; /* as the machine has it */
    const char *svg;
    bool json;
    bool compare; /* there are two runs, and what differs between them is printed, not a table */
    /* run() runs the job on a machine; it returns the job's exit status. */
    int (*run)(void *arg, const struct sim_machine *m, struct coordinator_result *r);
    void *arg;
};

/* sweep_take_nics() reads machines with commas between them, sweep_take() what is varied:
 * KEY=FIRST:LAST, of numbers all between, of others five; KEY=FIRST:LAST:COUNT; or KEY=A,B,C. They
 * are ARGS takers for a struct sweep. */
int sweep_take_nics(struct args *a, void *sweep);
int sweep_take(struct args *a, void *sweep);

/* sweep_run() runs them all, prints the table, and draws the picture if there is to be one; it
 * returns the exit status: that of the first job that failed, with what it was told. */
int sweep_run(struct sweep *s);

#endif
