/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a subcommand: one table, from which parsing, help and the text of errors come. A
 * row names an option, what it means, and the member of the command's struct that its value goes
 * to:
 *
 *     {"--rounds", "N", "turns of each (default 11)", ARGS_NUMBER, AT(rounds), 1, 1000},
 *     {"--sizes", "BYTES,...", "sizes of messages", .take = take_sizes},
 *
 * Options come before the first word that is none, or around operands where the command takes these
 * one by one; "--" ends them. Values are the next word or follow "=".
 */
#ifndef PINWHEEL_ARGS_H
#define PINWHEEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct args;

enum args_kind {
    ARGS_FLAG = 1, /* a bool becomes true */
    ARGS_TEXT,     /* const char *: the value as it stands */
    ARGS_NUMBER,   /* an integer of any width from `least` to `most` */
    ARGS_UNSIGNED, /* the same, digits only; `most` 0: no bound */
    ARGS_CHOICE,   /* the number of the value among `choices`, "a|b", or those of `argument` */
};

struct args_option {
    const char *name;     /* "-n", "--bind" */
    const char *argument; /* "core|none", "N"; NULL: takes none */
    const char *meaning;
    enum args_kind kind;
    size_t at, size; /* of the member, by ARGS_AT() */
    int64_t least;
    uint64_t most;
    const char *choices;
    /* In place of a kind: what takes the value, args.value, into the member, or the struct if the
     * row has none. ARGS_GO_ON, or the exit status. */
    int (*take)(struct args *a, void *into);
    unsigned group; /* the command's: whose option it is */
};

#define ARGS_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define ARGS_OPTIONS(table) .options = (table), .count = sizeof(table) / sizeof((table)[0])

struct args {
    const char *command;  /* "run" */
    const char *operands; /* the arguments behind the options: "PROGRAM [ARGUMENT]..." or "" */
    const char *summary;
    const struct args_option *options;
    int count; /* 64 at most */
    /* Operands: the one that the command takes goes to *operand; or take_operand() takes each,
     * args.value, as a row's take() does; both NULL: the first one ends the options, at
     * argv[next]. */
    const char **operand;
    int (*take_operand)(struct args *a, void *into);
    int argc;
    char **argv;
    int next;
    const struct args_option *option; /* the one found last */
    const char *value;                /* of it, NULL if it takes none; or the operand */
    uint64_t given;                   /* a bit for each option */
};

/* args_parse() takes what the command line says into the command's struct. It returns ARGS_GO_ON,
 * or the exit status: 0 after it has printed help for --help, 2 after it has said on stderr what is
 * wrong. */
enum { ARGS_GO_ON = -1 };
int args_parse(struct args *a, int argc, char **argv, void *into);

/* args_given() tells whether option `name` was. */
bool args_given(const struct args *a, const char *name);

/* args_error() says "pinwheel COMMAND: text" on stderr and returns 2, the exit status of bad usage;
 * args_bad() says "OPTION VALUE: text" in the same way, of the option found last. */
int args_error(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int args_bad(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* args_choose() gives the number of the value among `count` names, or -1 after args_bad(). */
int args_choose(const struct args *a, const char *const names[], int count);

/* args_environment() warns, as "pinwheel COMMAND: warning: text", of variables that look like
 * options and are none. */
void args_environment(const char *command, char *const *environment);

#endif
