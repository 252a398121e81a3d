/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a subcommand: one table, from which the command line is parsed, and help and error
 * texts are made. A row has an option, its meaning, and the member of the command's struct that
 * gets its value:
 *
 *     {"--rounds", "N", "turns of each (default 11)", ARGS_NUMBER, AT(rounds), 1, 1000},
 *     {"--sizes", "BYTES,...", "sizes of messages", .take = take_sizes},
 *
 * Options end at the first word that is no option, or at "--"; if the command takes operands one by
 * one, options may also stand between and behind these. A value is the next word, or follows "=".
 */
#ifndef PINWHEEL_ARGS_H
#define PINWHEEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct args;

enum args_kind {
    ARGS_FLAG = 1, /* a bool becomes true */
    ARGS_TEXT,     /* a const char *: the value as it is */
    ARGS_NUMBER,   /* an integer of any width from `least` to `most` */
    ARGS_UNSIGNED, /* the same, but digits only; `most` 0: no upper bound */
    /* an integer: the index of the value in `choices`, "a|b", or in `argument` if that is NULL */
    ARGS_CHOICE,
};

struct args_option {
    const char *name; /* "-n", "--bind" */
    /* "core|none", "N"; NULL: the option has no value; "[=N]": it may have one, behind "=" only,
     * else its value is "" */
    const char *argument;
    const char *meaning;
    enum args_kind kind;
    size_t at, size; /* offset and size of the member, by ARGS_AT() */
    int64_t least;
    uint64_t most;
    const char *choices;
    /* Instead of a kind: a function that reads the value, args.value, and stores it in `into`:
     * the member, or the command's struct if the row has none. It returns ARGS_GO_ON, or the
     * exit status. */
    int (*take)(struct args *a, void *into);
    unsigned group; /* for the command's own use: which kind of option it is */
};

#define ARGS_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define ARGS_OPTIONS(table) .options = (table), .count = sizeof(table) / sizeof((table)[0])

struct args {
    const char *command;  /* "run" */
    const char *operands; /* the arguments behind the options: "PROGRAM [ARGUMENT]..." or "" */
    const char *summary;
    const struct args_option *options;
    int count; /* 64 at most */
    /* Operands: if `operand` is set the command has one operand, which goes to *operand. If
     * take_operand is set it is called for each operand, args.value, like a row's take(). If
     * both are NULL the first operand ends the options and is at argv[next]. */
    const char **operand;
    int (*take_operand)(struct args *a, void *into);
    int argc;
    char **argv;
    int next;
    const struct args_option *option; /* the option that was found last */
    const char *value;                /* its value, "" if it has none; or the operand */
    uint64_t given;                   /* a bit for each option that was given */
};

/* args_parse() parses the command line and stores the values in the command's struct, `into`. It
 * returns ARGS_GO_ON, or the exit status: 0 after it has printed help for --help, 2 after it has
 * printed on stderr what is wrong. */
enum { ARGS_GO_ON = -1 };
int args_parse(struct args *a, int argc, char **argv, void *into);

/* args_given() returns true if the option `name` was given. */
bool args_given(const struct args *a, const char *name);

/* args_error() prints "pinwheel COMMAND: text" on stderr and returns 2, the exit status for bad
 * usage. args_bad() prints "OPTION VALUE: text" in the same way, for the option that was found
 * last. */
int args_error(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
int args_bad(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* args_choose() returns the index of the value among `count` names, or -1 after args_bad(). */
int args_choose(const struct args *a, const char *const names[], int count);

/* args_environment() prints a warning for each variable that looks like an option of Pinwheel and
 * is none, as "pinwheel COMMAND: warning: text". */
void args_environment(const char *command, char *const *environment);

#endif
