/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subcommand that has subcommands, as `pinwheel goal` has `run`: one table, from which the member
 * is chosen, and help and error texts are made.
 */
#ifndef PINWHEEL_FAMILY_H
#define PINWHEEL_FAMILY_H

struct family_member {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

struct family {
    const char *name;
    const char *summary;
    const struct family_member *members;
    int count;
};

/* family_run() runs the member that argv[1] names, with its own name as argv[0]. */
int family_run(const struct family *f, int argc, char **argv);

#endif
