/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command that starts a program of MPI, with a library of ours preloaded into the program, but
 * not into its launcher:
 *
 *     mpirun -n 4 ./program      becomes
 *     mpirun -n 4 env LD_PRELOAD=.../libpinwheel-NAME-openmpi.so NAME=VALUE ./program
 *
 * The program is found among the words: it is an executable that needs an MPI library, as the
 * dynamic linker lists them for ldd. The library tells which of ours to load. Since the words are
 * the program's own they are the same on each host.
 */
#ifndef PINWHEEL_PRELOAD_H
#define PINWHEEL_PRELOAD_H

#include "pinwheel/util/args.h"

struct preload_mpi {
    const char *library; /* shared library that a program of this MPI needs */
    const char *file;    /* ours for it */
    const char *package; /* of Debian, without which ours was not built */
};

/* preload_words() gives the new command: the words of a->argv from a->next on, each program of them
 * (one in each part between ":") behind `env` and the variables, NAME=VALUE, NULL at the end.
 * `folder` is that of the libraries in the build tree. NULL: the error was told. */
char **preload_words(const struct args *a, const char *folder, const struct preload_mpi *mpis,
                     size_t count, char *const *variables);

/* preload_run() executes such a command; it returns an exit status if that fails. */
int preload_run(const struct args *a, char **words);

#endif
