/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a subcommand: one table, from which parsing, help and the text
 * of errors come. Options come before the first word that is none; "--" ends
 * them. Values are the next word or follow "=".
 */
#ifndef PINWHEEL_ARGS_H
#define PINWHEEL_ARGS_H

#include <stdint.h>

struct args_option {
    const char *name;     /* "-n", "--bind" */
    const char *argument; /* "core|none", "N"; NULL: takes none */
    const char *meaning;
};

struct args {
    const char *command;  /* "run" */
    const char *operands; /* what follows the options: "PROGRAM [ARGUMENT]..." or "" */
    const char *summary;
    const struct args_option *options;
    int count;
    int argc;
    char **argv;
    int next;          /* the word that args_next() looks at next; begin with 1 */
    const char *value; /* of the option found last; NULL if it takes none */
};

enum { ARGS_END = -1, ARGS_BAD = -2, ARGS_HELP = -3 };

/* args_next() returns the index of the next option in the table, ARGS_END at
 * the first operand (argv[next]) or the end, ARGS_HELP after it has printed
 * help for --help, ARGS_BAD after it has said on stderr what is wrong. */
int args_next(struct args *a);

/* args_help() prints what the table says, on stdout. */
void args_help(const struct args *a);

/* args_error() says "pinwheel COMMAND: text" on stderr and returns 2, the exit
 * status of bad usage. */
int args_error(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* args_number() parses the value of option `name` as a whole number from min to
 * max. On failure it says what would be right and returns -1. */
int args_number(const struct args *a, const char *name, long min, long max, long *number);

/* args_next_operand() is args_next() for commands that take one operand, before,
 * between or after the options: it puts the operand in *operand. More than one is
 * an error. */
int args_next_operand(struct args *a, const char **operand);

/* args_u64() parses the value of option `name` as a whole number of at most
 * `max`. On failure it says what would be right and returns -1. */
int args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *number);

#endif
