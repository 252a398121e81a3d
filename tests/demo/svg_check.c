/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checker for XML: one pass, a stack of the elements that are open. Each
 * function takes the place where its part begins and returns the place behind
 * it, or NULL after it has noted where the fault is.
 */
#include "svg_check.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { DEPTH_MAX = 32, NAME_MAX = 32 };

struct check {
    const char *wrong;
    char open[DEPTH_MAX][NAME_MAX + 1];
    int depth;
    bool root_seen;
};

static const char *fail_at(struct check *c, const char *at)
{
    c->wrong = at;
    return NULL;
}

static const char *name(struct check *c, const char *at, char *into)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || (n > 0 && strchr("-_:", at[n]) != NULL && at[n])) {
        n++;
    }
    if (n == 0 || n > NAME_MAX || isdigit((unsigned char)at[0])) {
        return fail_at(c, at);
    }
    memcpy(into, at, n);
    into[n] = '\0';
    return at + n;
}

/* One character of text or of an attribute's value. */
static const char *character(struct check *c, const char *at)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    if (*at == '<' || *at == '\0' || ((unsigned char)*at < 0x20 && strchr("\t\r\n", *at) == NULL)) {
        return fail_at(c, at);
    }
    if (*at != '&') {
        return at + 1;
    }
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (strncmp(at, entities[i], strlen(entities[i])) == 0) {
            return at + strlen(entities[i]);
        }
    }
    return fail_at(c, at);
}

static const char *attribute(struct check *c, const char *at)
{
    char ignored[NAME_MAX + 1];
    at = name(c, at, ignored);
    if (at == NULL || at[0] != '=' || at[1] != '"') {
        return at == NULL ? NULL : fail_at(c, at);
    }
    for (at += 2; at != NULL && *at != '"';) {
        at = character(c, at);
    }
    return at == NULL ? NULL : at + 1;
}

static const char *blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *end_tag(struct check *c, const char *at)
{
    char closed[NAME_MAX + 1];
    const char *end = name(c, at + 2, closed);
    if (end == NULL || *end != '>' || c->depth == 0 || strcmp(closed, c->open[c->depth - 1]) != 0) {
        return fail_at(c, at);
    }
    c->depth--;
    return end + 1;
}

static const char *start_tag(struct check *c, const char *at)
{
    if (c->depth == DEPTH_MAX || (c->depth == 0 && c->root_seen)) {
        return fail_at(c, at);
    }
    char *opened = c->open[c->depth];
    const char *tag = at;
    at = name(c, at + 1, opened);
    if (at != NULL && c->depth == 0 && strcmp(opened, "svg") != 0) {
        return fail_at(c, tag);
    }
    c->root_seen = true;
    while (at != NULL && isspace((unsigned char)*at)) {
        at = blanks(at);
        if (*at == '/' || *at == '>') {
            break;
        }
        at = attribute(c, at);
    }
    if (at == NULL) {
        return NULL;
    }
    if (at[0] == '/' && at[1] == '>') {
        return at + 2;
    }
    c->depth++;
    return *at == '>' ? at + 1 : fail_at(c, at);
}

const char *svg_check(const char *text)
{
    struct check c = {.depth = 0};
    const char *at = text;
    if (strncmp(at, "<?xml ", 6) == 0) {
        at = strstr(at, "?>");
        if (at == NULL) {
            return text;
        }
        at += 2;
    }
    while (at != NULL && *at != '\0') {
        if (at[0] == '<') {
            at = at[1] == '/' ? end_tag(&c, at) : start_tag(&c, at);
        } else if (c.depth == 0 && !isspace((unsigned char)*at)) {
            return at;
        } else {
            at = character(&c, at);
        }
    }
    return at == NULL ? c.wrong : c.depth > 0 || !c.root_seen ? at : NULL;
}
