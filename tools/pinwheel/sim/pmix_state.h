/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of PMIx, for its files: pmix.c is the launcher's side, pmix_server.c the server's
 * process, pmix_calls.c what ranks ask of it, pmix_job.c what it tells them of the job.
 */
#ifndef PINWHEEL_SIM_PMIX_STATE_H
#define PINWHEEL_SIM_PMIX_STATE_H

#include "pmix.h"

#include <pmix.h>
#include <pmix_server.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The name of the job. It is the same in every run: MPIs compute with it. */
#define SIM_PMIX_JOB "pinwheel-sim"
extern const pmix_nspace_t sim_pmix_job;

/* What a rank has been to the server. */
enum sim_pmix_rank { SIM_PMIX_NEW, SIM_PMIX_JOINED, SIM_PMIX_LEFT };

/* How its process has ended: not at all, badly, as was asked for (--fault), well. */
enum sim_pmix_end { SIM_PMIX_RUNS, SIM_PMIX_FAILED, SIM_PMIX_DIED, SIM_PMIX_ENDED };

/* What the two processes share. The server's writes `aborted` and the two behind it before it,
 * and `state`, the launcher's `missing`. */
struct sim_pmix_shared {
    _Atomic bool missing; /* one has ended well without having left */
    _Atomic bool aborted; /* the next two are set */
    int aborted_rank, aborted_code;
    _Atomic uint8_t state[]; /* by rank: enum sim_pmix_rank */
};

struct sim_pmix {
    int ranks;
    struct sim_pmix_shared *shared;
    pid_t launcher, server;
    /* Of the launcher: */
    char ***environment; /* by rank */
    uint8_t *ended;      /* by rank: enum sim_pmix_end */
    int to, from;        /* ends of pipes; `from` is at its end when the server is */
    bool gone, doubted;  /* the server has ended; what that means was put off once */
};

/* sim_pmix_be_server() is the server's process: it writes the environments of ranks to `to`, and
 * serves until `from` is at its end. */
void sim_pmix_be_server(struct sim_pmix *p, int to, int from) __attribute__((noreturn));

/* The functions of libpmix. */
struct sim_pmix_library {
    __typeof__(PMIx_server_init) *init;
    __typeof__(PMIx_server_finalize) *finalize;
    __typeof__(PMIx_server_register_nspace) *register_nspace;
    __typeof__(PMIx_server_deregister_nspace) *deregister_nspace;
    __typeof__(PMIx_server_register_client) *register_client;
    __typeof__(PMIx_server_setup_fork) *setup_fork;
    __typeof__(PMIx_generate_regex) *regex;
    __typeof__(PMIx_generate_ppn) *ppn;
    __typeof__(PMIx_Error_string) *error_string;
};
extern struct sim_pmix_library sim_pmix_library;

/* What the server does for ranks. libpmix calls these without an argument of ours: there is one
 * server in a process. */
extern pmix_server_module_t sim_pmix_calls;
void sim_pmix_serve(struct sim_pmix *p);

/* sim_pmix_tell_job() tells libpmix of the job and its ranks. */
pmix_status_t sim_pmix_tell_job(const struct sim_pmix *p);

/* sim_pmix_await() waits until libpmix has done what it was given; sim_pmix_done() is the callback,
 * with the address of a struct sim_pmix_wait, for that. */
struct sim_pmix_wait {
    _Atomic uint32_t done;
    pmix_status_t status;
};
void sim_pmix_done(pmix_status_t status, void *wait);
pmix_status_t sim_pmix_await(struct sim_pmix_wait *w, pmix_status_t begun);

#endif
