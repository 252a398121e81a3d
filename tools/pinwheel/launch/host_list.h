/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job and the number of ranks of each, as --hosts and --hostfile give them. */
#ifndef PINWHEEL_HOST_LIST_H
#define PINWHEEL_HOST_LIST_H

#include <stddef.h>

struct host_place {
    char *name; /* in the form that ssh takes */
    int ranks;
};

struct host_list {
    struct host_place *at;
    int count, ranks; /* number of hosts; number of ranks of all hosts */
};

/* host_list_add() adds the hosts of a text "NAME[:RANKS],...". host_list_read() adds those of a
 * file: each line is NAME, NAME:RANKS or NAME slots=RANKS, and # begins a comment. They return 0,
 * or -1 with a line in `error` that names what is wrong. */
int host_list_add(struct host_list *, const char *text, char *error, size_t error_size);
int host_list_read(struct host_list *, const char *path, char *error, size_t error_size);

/* host_list_fit() reduces the list to `ranks` ranks, in the order of the list, and removes hosts
 * that get none; -1 if the hosts have fewer. */
int host_list_fit(struct host_list *, int ranks, char *error, size_t error_size);

void host_list_free(struct host_list *);

#endif
