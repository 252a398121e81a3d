/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a subcommand; see args.h. */
#include "args.h"
#include "nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int args_error(const struct args *a, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "pinwheel %s: ", a->command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return 2;
}

void args_help(const struct args *a)
{
    printf("usage: pinwheel %s%s%s%s\n\n%s\n", a->command, a->count > 0 ? " [OPTION]..." : "",
           *a->operands ? " " : "", a->operands, a->summary);
    if (a->count > 0) {
        printf("\noptions:\n");
    }
    for (int i = 0; i < a->count; i++) {
        const struct args_option *o = &a->options[i];
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->argument != NULL ? " " : "",
                 o->argument != NULL ? o->argument : "");
        printf("  %-22s %s\n", left, o->meaning);
    }
}

static void unknown_option(const struct args *a, const char *word)
{
    fprintf(stderr, "pinwheel %s: unknown option %s; it takes", a->command, word);
    for (int i = 0; i < a->count; i++) {
        fprintf(stderr, "%s %s%s%s", i > 0 ? "," : "", a->options[i].name,
                a->options[i].argument != NULL ? " " : "",
                a->options[i].argument != NULL ? a->options[i].argument : "");
    }
    struct nearest near = nearest_to(word, strcspn(word, "="));
    for (int i = 0; i < a->count; i++) {
        nearest_try(&near, a->options[i].name);
    }
    char text[80];
    fprintf(stderr, "%s --help%s\n", a->count > 0 ? " and" : "", nearest_text(&near, text));
}

int args_next(struct args *a)
{
    a->value = NULL;
    if (a->next >= a->argc || a->argv[a->next][0] != '-' || a->argv[a->next][1] == '\0') {
        return ARGS_END;
    }
    const char *word = a->argv[a->next++];
    if (strcmp(word, "--") == 0) {
        return ARGS_END;
    }
    if (strcmp(word, "--help") == 0) {
        args_help(a);
        return ARGS_HELP;
    }
    size_t length = strcspn(word, "=");
    for (int i = 0; i < a->count; i++) {
        const struct args_option *o = &a->options[i];
        if (strlen(o->name) != length || memcmp(o->name, word, length) != 0) {
            continue;
        }
        if (o->argument == NULL && word[length] == '=') {
            args_error(a, "%s takes no value", o->name);
            return ARGS_BAD;
        }
        if (o->argument != NULL && word[length] == '=') {
            a->value = word + length + 1;
        } else if (o->argument != NULL) {
            if (a->next >= a->argc) {
                args_error(a, "%s needs a value: %s %s", o->name, o->name, o->argument);
                return ARGS_BAD;
            }
            a->value = a->argv[a->next++];
        }
        return i;
    }
    unknown_option(a, word);
    return ARGS_BAD;
}

int args_number(const struct args *a, const char *name, long min, long max, long *number)
{
    char *end;
    errno = 0;
    long v = strtol(a->value, &end, 10);
    if (end == a->value || *end != '\0' || errno != 0 || v < min || v > max) {
        args_error(a, "%s %s: must be a whole number from %ld to %ld", name, a->value, min, max);
        return -1;
    }
    *number = v;
    return 0;
}

int args_next_operand(struct args *a, const char **operand)
{
    for (;;) {
        int option = args_next(a);
        if (option != ARGS_END || a->next >= a->argc) {
            return option;
        }
        if (*operand != NULL) {
            args_error(a, "%s: takes one operand, %s, and has %s already", a->argv[a->next],
                       a->operands, *operand);
            return ARGS_BAD;
        }
        *operand = a->argv[a->next++];
    }
}

int args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(a->value, &end, 10);
    bool digit = *a->value >= '0' && *a->value <= '9';
    if (!digit || *end != '\0' || errno != 0 || n > max) {
        args_error(a, "%s %s: must be a whole number from 0 to %" PRIu64, name, a->value, max);
        return -1;
    }
    *number = n;
    return 0;
}
