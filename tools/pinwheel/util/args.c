/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a subcommand; see args.h. */
#include "args.h"

#include "base/nearest.h"
#include "base/number.h"
#include "base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
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

int args_bad(const struct args *a, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return args_error(a, "%s %s: %s", a->option->name, a->value, text);
}

bool args_given(const struct args *a, const char *name)
{
    for (int i = 0; i < a->count; i++) {
        if (strcmp(a->options[i].name, name) == 0) {
            return (a->given >> i & 1) != 0;
        }
    }
    return false;
}

static bool may_lack_value(const struct args_option *o)
{
    return o->argument != NULL && o->argument[0] == '[';
}

/* What stands between an option and its value. */
static const char *blank(const struct args_option *o)
{
    return o->argument != NULL && !may_lack_value(o) ? " " : "";
}

static void help(const struct args *a)
{
    printf("usage: pinwheel %s%s%s%s\n\n%s\n", a->command, a->count > 0 ? " [OPTION]..." : "",
           *a->operands ? " " : "", a->operands, a->summary);
    if (a->count > 0) {
        printf("\noptions:\n");
    }
    for (int i = 0; i < a->count; i++) {
        const struct args_option *o = &a->options[i];
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s", o->name, blank(o),
                 o->argument != NULL ? o->argument : "");
        printf("  %-22s %s\n", left, o->meaning);
    }
}

static void unknown_option(const struct args *a, const char *word)
{
    fprintf(stderr, "pinwheel %s: unknown option %s; it takes", a->command, word);
    for (int i = 0; i < a->count; i++) {
        fprintf(stderr, "%s %s%s%s", i > 0 ? "," : "", a->options[i].name, blank(&a->options[i]),
                a->options[i].argument != NULL ? a->options[i].argument : "");
    }
    struct nearest near = nearest_to(word, strcspn(word, "="));
    for (int i = 0; i < a->count; i++) {
        nearest_try(&near, a->options[i].name);
    }
    char text[80];
    fprintf(stderr, "%s --help%s\n", a->count > 0 ? " and" : "", nearest_text(&near, text));
}

/* ---- Words ---- */

enum { END = -1, BAD = -2, HELP = -3 };

/* Returns the index in the table of the next option; END at the first operand (argv[next]) or the
 * end, HELP after it has printed help, BAD after it has printed what is wrong. */
static int next_option(struct args *a)
{
    a->value = ""; /* of an option that takes none */
    if (a->next >= a->argc || a->argv[a->next][0] != '-' || a->argv[a->next][1] == '\0') {
        return END;
    }
    const char *word = a->argv[a->next++];
    if (strcmp(word, "--") == 0) {
        return END;
    }
    if (strcmp(word, "--help") == 0) {
        help(a);
        return HELP;
    }
    size_t length = strcspn(word, "=");
    for (int i = 0; i < a->count; i++) {
        const struct args_option *o = &a->options[i];
        if (strlen(o->name) != length || memcmp(o->name, word, length) != 0) {
            continue;
        }
        if (o->argument == NULL && word[length] == '=') {
            args_error(a, "%s takes no value", o->name);
            return BAD;
        }
        if (o->argument != NULL && word[length] == '=') {
            a->value = word + length + 1;
        } else if (o->argument != NULL && !may_lack_value(o)) {
            if (a->next >= a->argc) {
                args_error(a, "%s needs a value: %s %s", o->name, o->name, o->argument);
                return BAD;
            }
            a->value = a->argv[a->next++];
        }
        return i;
    }
    unknown_option(a, word);
    return BAD;
}

/* ---- Values ---- */

static void store(void *to, size_t size, uint64_t number)
{
    switch (size) {
    case 1:
        *(uint8_t *)to = (uint8_t)number;
        break;
    case 2:
        *(uint16_t *)to = (uint16_t)number;
        break;
    case 4:
        *(uint32_t *)to = (uint32_t)number;
        break;
    default:
        *(uint64_t *)to = number;
        break;
    }
}

static int take_number(const struct args *a, const struct args_option *o, void *to)
{
    int64_t v;
    if (!number_read(a->value, o->least, o->most < INT64_MAX ? (int64_t)o->most : INT64_MAX, &v)) {
        return args_bad(a, "must be a whole number from %" PRId64 " to %" PRIu64, o->least,
                        o->most);
    }
    store(to, o->size, (uint64_t)v);
    return ARGS_GO_ON;
}

static int take_unsigned(const struct args *a, const struct args_option *o, void *to)
{
    char *end;
    uint64_t most = o->most != 0 ? o->most : UINT64_MAX;
    errno = 0;
    unsigned long long n = strtoull(a->value, &end, 10);
    bool digit = *a->value >= '0' && *a->value <= '9';
    if (!digit || *end != '\0' || errno != 0 || n > most) {
        return args_bad(a, "must be a whole number from 0 to %" PRIu64, most);
    }
    if (n < (uint64_t)o->least) {
        return args_bad(a, "must be %" PRId64 " or more", o->least);
    }
    store(to, o->size, n);
    return ARGS_GO_ON;
}

int args_choose(const struct args *a, const char *const names[], int count)
{
    char list[128] = "";
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(a->value, names[i]) == 0) {
            return i;
        }
        const char *before = i == 0 ? "" : i + 1 < count ? ", " : " or ";
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", before, names[i]);
        at = at < sizeof(list) ? at : sizeof(list) - 1;
    }
    args_bad(a, "must be %s", list);
    return -1;
}

static int take_choice(const struct args *a, const struct args_option *o, void *to)
{
    enum { CHOICES = 8 };
    char words[128], *rest = words;
    const char *names[CHOICES];
    int count = 0;
    snprintf(words, sizeof(words), "%s", o->choices != NULL ? o->choices : o->argument);
    do {
        names[count++] = strsep(&rest, "|");
    } while (rest != NULL && count < CHOICES);
    int chosen = args_choose(a, names, count);
    if (chosen < 0) {
        return 2;
    }
    store(to, o->size, (uint64_t)chosen);
    return ARGS_GO_ON;
}

static int take(struct args *a, const struct args_option *o, void *into)
{
    void *to = (char *)into + o->at;
    switch (o->kind) {
    case ARGS_FLAG:
        store(to, o->size, true);
        return ARGS_GO_ON;
    case ARGS_TEXT:
        *(const char **)to = a->value;
        return ARGS_GO_ON;
    case ARGS_NUMBER:
        return take_number(a, o, to);
    case ARGS_UNSIGNED:
        return take_unsigned(a, o, to);
    case ARGS_CHOICE:
        return take_choice(a, o, to);
    default:
        return o->take(a, to);
    }
}

/* ---- The command line ---- */

static int take_operand(struct args *a, void *into)
{
    a->value = a->argv[a->next];
    if (a->take_operand == NULL && *a->operand != NULL) {
        return args_error(a, "%s: takes one operand, %s, and has %s already", a->value, a->operands,
                          *a->operand);
    }
    a->next++;
    if (a->take_operand != NULL) {
        return a->take_operand(a, into);
    }
    *a->operand = a->value;
    return ARGS_GO_ON;
}

int args_parse(struct args *a, int argc, char **argv, void *into)
{
    a->argc = argc;
    a->argv = argv;
    a->next = 1;
    for (;;) {
        int option = next_option(a), status = ARGS_GO_ON;
        if (option >= 0) {
            a->option = &a->options[option];
            a->given |= UINT64_C(1) << option;
            status = take(a, a->option, into);
        } else if (option != END) {
            return option == HELP ? 0 : 2;
        } else if (a->next >= argc || (a->operand == NULL && a->take_operand == NULL)) {
            return ARGS_GO_ON;
        } else {
            status = take_operand(a, into);
        }
        if (status != ARGS_GO_ON) {
            return status;
        }
    }
}

void args_environment(const char *command, char *const *environment)
{
    char text[256];
    for (size_t at = 0; options_unknown(environment, &at, text, sizeof(text));) {
        fprintf(stderr, "pinwheel %s: warning: %s\n", command, text);
    }
}
