/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of the conformance suite, its upper part: the cases are registered, chosen and given
 * to crews (crew.c) one by one; see suite.h.
 */
#include "runner.h"

#include "../own_network.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct suite_case *first, **last = &first;
static int registered;

/* ---- Registration ---------------------------------------------------------- */

static void add(const struct suite_case *c, char *name)
{
    struct suite_case *copy = malloc(sizeof(*copy));
    if (copy == NULL || name == NULL) {
        abort();
    }
    *copy = *c;
    copy->name = name;
    copy->index = registered++;
    copy->next = NULL;
    *last = copy;
    last = &copy->next;
}

void suite_add(struct suite_case c, const char *name, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, name);
    add(&c, vasprintf(&text, name, arguments) < 0 ? NULL : text);
    va_end(arguments);
}

const char *suite_kind_name(unsigned kind)
{
    return kind == ML ? "ml" : kind == MP ? "mp" : kind == NL ? "nl" : kind == NP ? "np" : "";
}

unsigned suite_ni_options(unsigned kind)
{
    return (kind & PLAIN_KINDS ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) |
           (kind & PHYSICAL_KINDS ? PTL_NI_PHYSICAL : PTL_NI_LOGICAL);
}

static const char *setting_name(unsigned setting)
{
    return setting == SELF ? ".self" : setting == PAIR ? ".pair" : "";
}

void suite_add_each(struct suite_case c, unsigned kinds, unsigned settings, const char *name, ...)
{
    char stem[256];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(stem, sizeof(stem), name, arguments);
    va_end(arguments);
    for (c.setting = SELF; c.setting <= BARE; c.setting *= 2) {
        if ((settings & c.setting) == 0) {
            continue;
        }
        c.kind = NO_KIND;
        if (kinds == NO_KIND) {
            suite_add(c, "%s%s", stem, setting_name(c.setting));
        }
        for (c.kind = ML; c.kind <= NP; c.kind *= 2) {
            if (kinds & c.kind) {
                suite_add(c, "%s.%s%s", stem, suite_kind_name(c.kind), setting_name(c.setting));
            }
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names are unique, rules begin with a section of chapter 3, kinds fit settings. */
static int check_cases(void)
{
    size_t n = 0;
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        n++;
        bool kind_due = c->setting == SELF || c->setting == PAIR;
        if (c->rule == NULL || strncmp(c->rule, "3.", 2) != 0 || strchr(c->rule, ':') == NULL ||
            c->body == NULL || (kind_due && *suite_kind_name(c->kind) == '\0')) {
            fprintf(stderr, "%s: badly registered: rule, body, setting or kind\n", c->name);
            return -1;
        }
    }
    const char **names = calloc(n + 1, sizeof(*names));
    if (names == NULL) {
        return -1;
    }
    n = 0;
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        names[n++] = c->name;
    }
    qsort(names, n, sizeof(*names), by_name);
    int result = 0;
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            fprintf(stderr, "%s: two cases of this name\n", names[i]);
            result = -1;
        }
    }
    free(names);
    return result;
}

static bool chosen(const struct suite_case *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (fnmatch(argv[i], c->name, 0) == 0) {
            return true;
        }
    }
    return argc <= 1;
}

const struct suite_case *suite_first(void)
{
    return first;
}

int suite_run(int argc, char **argv, void (*spread)(int ranks, void *life))
{
    if (check_cases() != 0) {
        return 2;
    }
    suite_spread = spread;
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    if (!list && !own_network()) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    uint64_t start = suite_now_ms();
    for (const struct suite_case *c = first; c != NULL; c = c->next) {
        if (spread != NULL && c->setting != PAIR) {
            continue;
        }
        if (list) {
            bool own = spread != NULL && c->own_process != NULL;
            printf("%s: %s%s%s\n", c->name, c->rule, own ? " # it " : "",
                   own ? c->own_process : "");
        } else if (chosen(c, argc, argv)) {
            suite_run_case(c);
        }
    }
    if (list) {
        return 0;
    }
    suite_close_crews();
    const struct suite_count *n = &suite_count;
    int number = suite_numbered();
    if (number == 0) {
        fprintf(stderr, "%s: no such case; %s --list shows them\n", argc > 1 ? argv[1] : "none",
                argv[0]);
        return 2;
    }
    printf("1..%d\n%d ok, %d not ok, %d skipped, %llu ms\n", number, n->ok, n->failed, n->skipped,
           (unsigned long long)(suite_now_ms() - start));
    return n->failed != 0;
}

int main(int argc, char **argv)
{
    return suite_run(argc, argv, NULL);
}
