/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the two files of the PMI-1 server: the job, and functions for its
 * connections.
 *
 *     pmi_feed() ──line──► pmi_take_line() ──one table──► the function of the command
 *     pmi_server.c           pmi_commands.c                 │
 *     pmi_output() ◄── queue ◄── pmi_reply(), pmi_refuse(), pmi_open_barrier() ◄─┘
 */
#ifndef BOOT_PMI_JOB_H
#define BOOT_PMI_JOB_H

#include "boot/pmi_kvs.h"
#include "boot/pmi_server.h"

struct pmi_rank {
    enum pmi_state state;
    /* the connection ended though neither the rank nor the server had announced it */
    bool torn;
    bool spawning; /* between mcmd=spawn and endcmd */
    /* of one spawn request: how many commands it has, and how many have been read */
    int spawns, spawned;
    size_t line_length;
    char line[PMI_LINE_MAX + 1];
    char *output;
    size_t output_start, output_end, output_capacity;
    char error[160]; /* why the server closed the connection; "" if it did not */
};

struct pmi_job {
    int size;
    bool keep_going; /* a barrier does not wait for ranks that are CLOSED */
    int gone;        /* ranks that are CLOSED */
    int in_barrier;
    int first_gone; /* the first rank that became CLOSED, -1 for none */
    int abort_rank; /* the first rank that asked for the job's end; -1: none has */
    int abort_code;
    struct kvs kvs;
    char kvsname[PMI_NAME_MAX];
    struct pmi_rank ranks[];
};

/* pmi_reply() queues one line for a rank. */
void pmi_reply(struct pmi_job *job, struct pmi_rank *r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* pmi_close() ends the connection of a rank; pmi_refuse() does so and stores the reason in
 * `error`. */
void pmi_close(struct pmi_job *job, struct pmi_rank *r);
void pmi_refuse(struct pmi_job *job, struct pmi_rank *r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* pmi_open_barrier() lets all ranks out of the barrier if all that it waits for are in it. */
void pmi_open_barrier(struct pmi_job *job);

/* pmi_take_line() answers the line that a rank has sent, r->line. */
void pmi_take_line(struct pmi_job *job, struct pmi_rank *r);

#endif
