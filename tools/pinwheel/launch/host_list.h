/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job, and how many ranks each has: what --hosts and --hostfile say. */
#ifndef PINWHEEL_HOST_LIST_H
#define PINWHEEL_HOST_LIST_H

#include <stddef.h>

struct host_place {
    char *name; /* as ssh takes it */
    int ranks;
};

struct host_list {
    struct host_place *at;
    int count, ranks; /* hosts; ranks of all */
};

/* host_list_add() adds the hosts of "NAME[:RANKS],...", host_list_read() those of a file: one
 * a line, NAME, NAME:RANKS or NAME slots=RANKS, # begins a comment. 0, or -1 with a line in
 * `error` that names what is wrong. */
int host_list_add(struct host_list *, const char *text, char *error, size_t error_size);
int host_list_read(struct host_list *, const char *path, char *error, size_t error_size);

/* host_list_fit() leaves room for `ranks` ranks, in the order of the list, and removes hosts
 * that get none; -1 if there is not so much room. */
int host_list_fit(struct host_list *, int ranks, char *error, size_t error_size);

void host_list_free(struct host_list *);

#endif
