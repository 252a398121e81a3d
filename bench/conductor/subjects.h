/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of subjects: who is measured, and how it is started. A new one is a
 * line of subjects.c.
 */
#ifndef BENCH_SUBJECTS_H
#define BENCH_SUBJECTS_H

#include <stddef.h>

enum subject_kind {
    SUBJECT_OURS, /* with `packages`: not measured where it was not built */
    SUBJECT_LIMIT,
    SUBJECT_BASE, /* Pinwheel doing the same in another way: compared with as limits are */
    SUBJECT_PEER,
    SUBJECT_CLIENT /* Open MPI over Pinwheel, by plug-ins: it has benches of its own, as ours
                      have, but is chosen, and may be missing, as peers are */
};
enum subject_launch {
    LAUNCH_PAIR, /* the command, once a rank, with BENCH_RANK */
    LAUNCH_ONCE  /* the command starts all ranks */
};

enum { SUBJECT_WORDS = 32, SUBJECT_SETTINGS = 4 };

struct subject {
    const char *name;
    enum subject_kind kind;
    enum subject_launch launch;
    int ranks;
    const char *packages;                      /* Debian's, that it needs; NULL: none */
    const char *command[SUBJECT_WORDS];        /* "@NAME" is a program of the benchmark */
    const char *environment[SUBJECT_SETTINGS]; /* NAME=VALUE */
    const char *meaning;
};

extern const struct subject subject_table[];
extern const int subject_table_size;

/* subject_program() writes the path of a program of the benchmark: beside the
 * command `pinwheel` in the build tree, or in libexec once installed. It gives 0,
 * or -1 if it is nowhere. */
int subject_program(const char *name, char *path, size_t size);

/* The plug-ins of a client: subject_use_plugins() names their folder; without it they
 * are looked for where the tests of the build tree put them. subject_plugins() writes the
 * value of Open MPI's component path: 0, or -1 if the plug-ins are not there. */
void subject_use_plugins(const char *folder);
int subject_plugins(char *path, size_t size);

/* subject_missing() tells, in `why`, what of a subject is not there: a program that
 * was not built, a launcher that is not installed. 0 if all is. */
int subject_missing(const struct subject *s, char *why, size_t size);

#endif
