/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON checker by recursive descent, one function per rule of RFC 8259. Each
 * takes the place where its rule begins and returns the place behind it; on an
 * error it stores the place in `wrong` and everything unwinds.
 */
#include "json_check.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct check {
    const char *wrong;
    int depth;
};

static const char *value(struct check *c, const char *at);

static const char *fail_at(struct check *c, const char *at)
{
    if (c->wrong == NULL) {
        c->wrong = at;
    }
    return at;
}

static const char *blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *string(struct check *c, const char *at)
{
    if (*at != '"') {
        return fail_at(c, at);
    }
    for (at++; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) {
            return fail_at(c, at);
        }
        if (*at != '\\') {
            continue;
        }
        at++;
        if (*at == 'u') {
            for (int i = 0; i < 4; i++) {
                at++;
                if (!isxdigit((unsigned char)*at)) {
                    return fail_at(c, at);
                }
            }
        } else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL) {
            return fail_at(c, at);
        }
    }
    return at + 1;
}

static const char *digits(struct check *c, const char *at)
{
    size_t n = strspn(at, "0123456789");
    return n > 0 ? at + n : fail_at(c, at);
}

static const char *number(struct check *c, const char *at)
{
    at += *at == '-';
    at = *at == '0' ? at + 1 : digits(c, at);
    if (*at == '.') {
        at = digits(c, at + 1);
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        at = digits(c, at);
    }
    return at;
}

static const char *member(struct check *c, const char *at)
{
    at = blanks(string(c, blanks(at)));
    return c->wrong == NULL && *at == ':' ? value(c, at + 1) : fail_at(c, at);
}

/* What stands between brackets, behind the first of which `at` is. */
static const char *list(struct check *c, const char *at, char close,
                        const char *(*item)(struct check *c, const char *at))
{
    at = blanks(at);
    if (*at == close) {
        return at + 1;
    }
    for (;;) {
        at = blanks(item(c, at));
        if (c->wrong != NULL || (*at != ',' && *at != close)) {
            return fail_at(c, at);
        }
        if (*at++ == close) {
            return at;
        }
    }
}

static const char *value(struct check *c, const char *at)
{
    at = blanks(at);
    if (++c->depth > DEPTH_MAX) {
        return fail_at(c, at);
    }
    if (*at == '{') {
        at = list(c, at + 1, '}', member);
    } else if (*at == '[') {
        at = list(c, at + 1, ']', value);
    } else if (*at == '"') {
        at = string(c, at);
    } else if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0) {
        at += 4;
    } else if (strncmp(at, "false", 5) == 0) {
        at += 5;
    } else {
        at = number(c, at);
    }
    c->depth--;
    return at;
}

const char *json_check(const char *text)
{
    struct check c = {NULL, 0};
    const char *end = blanks(value(&c, text));
    return c.wrong != NULL ? c.wrong : *end != '\0' ? end : NULL;
}
