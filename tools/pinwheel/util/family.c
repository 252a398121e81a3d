/* SPDX-License-Identifier: BSD-3-Clause */
/* A subcommand that has subcommands; see family.h. */
#include "family.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

static void print_usage(const struct family *f, FILE *to)
{
    fprintf(to, "usage: pinwheel %s SUBCOMMAND [ARGUMENT]...\n\n%s\n\nsubcommands:\n", f->name,
            f->summary);
    for (int i = 0; i < f->count; i++) {
        fprintf(to, "  %-8s %s\n", f->members[i].name, f->members[i].summary);
    }
    fprintf(to, "\n`pinwheel %s SUBCOMMAND --help` says more of one.\n", f->name);
}

int family_run(const struct family *f, int argc, char **argv)
{
    if (argc < 2) {
        print_usage(f, stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(f, stdout);
        return 0;
    }
    for (int i = 0; i < f->count; i++) {
        if (strcmp(argv[1], f->members[i].name) == 0) {
            return f->members[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "pinwheel %s: unknown subcommand %s; it is one of", f->name, argv[1]);
    for (int i = 0; i < f->count; i++) {
        fprintf(stderr, "%s %s", i > 0 ? "," : "", f->members[i].name);
    }
    struct nearest near = nearest_to(argv[1], strlen(argv[1]));
    for (int i = 0; i < f->count; i++) {
        nearest_try(&near, f->members[i].name);
    }
    char text[80];
    fprintf(stderr, "%s\n", nearest_text(&near, text));
    return 2;
}
