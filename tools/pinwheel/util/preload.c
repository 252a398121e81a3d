/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that start programs of MPI with a library of ours. */
#include "preload.h"

#include "program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MPIS = 4 };

/* Returns which MPI a program needs; NULL: none. */
static const struct preload_mpi *mpi_of(const char *path, const struct preload_mpi *mpis,
                                        size_t count)
{
    const char *libraries[MPIS];
    for (size_t i = 0; i < count; i++) {
        libraries[i] = mpis[i].library;
    }
    int found = program_needs(path, libraries, count);
    return found >= 0 ? &mpis[found] : NULL;
}

/* Appends what goes before a program; the number of words, or -1. */
static int add_program(const struct args *a, char **words, const char *folder,
                       const struct preload_mpi *mpi, char *const *variables)
{
    char library[PATH_MAX];
    int n = 0;
    if (!program_beside(folder, mpi->file, library, sizeof(library))) {
        args_error(a, "%s: is not there; Pinwheel was built without the Debian package %s",
                   mpi->file, mpi->package);
        return -1;
    }
    words[n++] = "env";
    words[n] = program_preload(library);
    if (words[n++] == NULL) {
        args_error(a, "no memory");
        return -1;
    }
    for (int i = 0; variables[i] != NULL; i++) {
        words[n++] = variables[i];
    }
    return n;
}

char **preload_words(const struct args *a, const char *folder, const struct preload_mpi *mpis,
                     size_t count, char *const *variables)
{
    size_t extra = 2, words = (size_t)(a->argc - a->next);
    for (int i = 0; variables[i] != NULL; i++) {
        extra++;
    }
    char **command = calloc(words * (1 + extra) + 1, sizeof(*command));
    int n = 0, programs = 0;
    bool sought = true;
    if (command == NULL) {
        args_error(a, "no memory");
        return NULL;
    }
    for (int i = a->next; i < a->argc; i++) {
        char path[PATH_MAX];
        sought |= strcmp(a->argv[i], ":") == 0;
        const struct preload_mpi *mpi = sought && program_find(a->argv[i], path, sizeof(path))
                                            ? mpi_of(path, mpis, count)
                                            : NULL;
        if (mpi != NULL) {
            int added = add_program(a, command + n, folder, mpi, variables);
            if (added < 0) {
                free(command);
                return NULL;
            }
            n += added;
            programs++;
        }
        sought &= mpi == NULL;
        command[n++] = a->argv[i];
    }
    if (programs == 0) {
        args_error(a,
                   "no word of the command is a program that needs Open MPI (libmpi.so) or MPICH "
                   "(libmpich.so); a script's program must be named itself");
        free(command);
        return NULL;
    }
    return command;
}

int preload_run(const struct args *a, char **words)
{
    execvp(words[0], words);
    fprintf(stderr, "pinwheel %s: %s: %s\n", a->command, words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
