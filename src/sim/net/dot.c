/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a network from a Graphviz file. It reads the part of the DOT language that is listed in
 * docs/network-model.md, in which files of networks are written; subgraphs are refused.
 *
 *   text ──► tokens ──► statements: names become nodes, edges become channels
 *
 * Nodes are numbered in the order in which their names appear; file.c later gives hosts and
 * switches numbers of their own.
 */
#include "dot.h"

#include "base/array.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum token { END, NAME, EDGE, OTHER, BAD };

struct reader {
    struct net_dot *dot;
    const char *file, *at, *end;
    uint32_t line;
    enum token token;
    char sign;   /* OTHER: the character; EDGE: '-' or '>' */
    char *name;  /* NAME: its characters, with a NUL */
    size_t room; /* capacity of `name` */
    bool quoted; /* the name is quoted, so it is no keyword */
    bool failed;
    char *error;
};

static void fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct reader *r, const char *format, ...)
{
    va_list args;
    r->token = BAD;
    if (r->failed) {
        return;
    }
    r->failed = true;
    int n = snprintf(r->error, NET_ERROR, "%.200s, line %u: ", r->file, r->line);
    va_start(args, format);
    vsnprintf(r->error + n, (size_t)(NET_ERROR - n), format, args);
    va_end(args);
}

static bool starts(const struct reader *r, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, text, length) == 0;
}

/* Skips blanks, comments and lines that begin with #. */
static void skip(struct reader *r)
{
    bool line_begins = r->line == 1;
    while (r->at < r->end) {
        if (starts(r, "//") || (*r->at == '#' && line_begins)) {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else if (starts(r, "/*")) {
            r->at += 2;
            while (r->at < r->end && !starts(r, "*/")) {
                r->line += *r->at++ == '\n';
            }
            r->at += r->at < r->end ? 2 : 0;
        } else if (isspace((unsigned char)*r->at)) {
            line_begins = *r->at == '\n';
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

static bool take_character(struct reader *r, size_t length, char c)
{
    if (!ARRAY_ROOM(r->name, length + 1, r->room, 64)) {
        fail(r, "not enough memory");
        return false;
    }
    r->name[length] = c;
    r->name[length + 1] = '\0';
    return true;
}

static bool of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 128;
}

static void read_word(struct reader *r)
{
    size_t length = 0;
    r->token = NAME;
    r->quoted = false;
    if (*r->at == '-' && !take_character(r, length++, *r->at++)) {
        return;
    }
    while (r->at < r->end && of_name(*r->at)) {
        if (!take_character(r, length++, *r->at++)) {
            return;
        }
    }
}

static void read_quoted(struct reader *r)
{
    size_t length = 0;
    r->token = NAME;
    r->quoted = true;
    if (!take_character(r, 0, '\0')) {
        return;
    }
    for (r->at++; r->at < r->end && *r->at != '"'; r->at++) {
        if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '"' || r->at[1] == '\n')) {
            r->at++;
        }
        r->line += *r->at == '\n';
        if (*r->at == '\0') {
            fail(r, "a byte 0 in a name");
            return;
        }
        if (!take_character(r, length++, *r->at)) {
            return;
        }
    }
    if (r->at == r->end) {
        fail(r, "a name in quotes has no end");
        return;
    }
    r->at++;
}

static void next(struct reader *r)
{
    if (r->failed) {
        return;
    }
    skip(r);
    if (r->at == r->end) {
        r->token = END;
    } else if (starts(r, "->") || starts(r, "--")) {
        r->token = EDGE;
        r->sign = r->at[1];
        r->at += 2;
    } else if (*r->at == '"') {
        read_quoted(r);
    } else if (of_name(*r->at) || (*r->at == '-' && r->at + 1 < r->end && of_name(r->at[1]))) {
        read_word(r);
    } else if (strchr("{}[]=;,:", *r->at) != NULL && *r->at != '\0') {
        r->token = OTHER;
        r->sign = *r->at++;
    } else if (isprint((unsigned char)*r->at)) {
        fail(r, "'%c' is not expected here", *r->at);
    } else {
        fail(r, "byte %u is not expected here", (unsigned char)*r->at);
    }
}

static bool is_sign(const struct reader *r, char sign)
{
    return r->token == OTHER && r->sign == sign;
}

static bool is_word(const struct reader *r, const char *word)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a NAME has characters */
    return r->token == NAME && !r->quoted && strcasecmp(r->name, word) == 0;
}

static void expect(struct reader *r, char sign)
{
    if (!is_sign(r, sign)) {
        fail(r, "'%c' is expected", sign);
    }
    next(r);
}

/* ---- Nodes ---- */

/* Returns the node called r->name, which is made if there was none. */
static uint32_t find_node(struct reader *r)
{
    struct net_dot *d = r->dot;
    struct net_dot_node *n;
    if (r->failed) {
        return 0;
    }
    HASH_FIND_STR(d->node, r->name, n);
    if (n != NULL) {
        return n->number;
    }
    if (d->nodes == NET_DOT_NODES) {
        fail(r, "more than %d nodes", NET_DOT_NODES);
        return 0;
    }
    n = malloc(sizeof(*n));
    char *name = strdup(r->name);
    if (n != NULL && name != NULL) {
        *n = (struct net_dot_node){.name = name, .number = d->nodes};
        HASH_ADD_KEYPTR(hh, d->node, name, strlen(name), n);
        if (hash_added(n)) {
            return d->nodes++;
        }
    }
    free(n);
    free(name);
    fail(r, "not enough memory");
    return 0;
}

static void add_edge(struct reader *r, uint32_t from, uint32_t to)
{
    struct net_dot *d = r->dot;
    if (from == to && !r->failed) {
        const struct net_dot_node *n = d->node;
        while (n->number != from) {
            n = n->hh.next;
        }
        fail(r, "a cable from %.100s to itself", n->name);
    }
    if (r->failed) {
        return;
    }
    if (!ARRAY_ROOM(d->edge, d->edges, d->room, 16)) {
        fail(r, "not enough memory");
        return;
    }
    d->edge[d->edges++] = (struct net_link){from, to};
}

/* ---- Statements ---- */

/* Skips lists of attributes, [NAME=VALUE, ...]: none concerns the network. */
static void skip_attributes(struct reader *r)
{
    while (is_sign(r, '[')) {
        next(r);
        while (r->token == NAME || is_sign(r, ',') || is_sign(r, ';') || is_sign(r, '=')) {
            next(r);
        }
        expect(r, ']');
    }
}

/* Reads a node's name and perhaps its port, which is ignored. */
static uint32_t read_node(struct reader *r)
{
    if (r->token != NAME) {
        fail(r, "the name of a node is expected");
        return 0;
    }
    uint32_t node = find_node(r);
    next(r);
    while (is_sign(r, ':')) {
        next(r);
        if (r->token != NAME) {
            fail(r, "the name of a port is expected");
        }
        next(r);
    }
    return node;
}

static void read_edges(struct reader *r, uint32_t from)
{
    while (r->token == EDGE) {
        if ((r->sign == '>') != r->dot->directed) {
            fail(r, "%s in a %s", r->sign == '>' ? "->" : "--",
                 r->dot->directed ? "digraph, whose edges are ->" : "graph, whose edges are --");
        }
        next(r);
        uint32_t to = read_node(r);
        add_edge(r, from, to);
        if (!r->dot->directed) {
            add_edge(r, to, from);
        }
        from = to;
    }
}

static void read_statement(struct reader *r)
{
    if (is_word(r, "subgraph") || is_sign(r, '{')) {
        fail(r, "subgraphs are not read; write their nodes and edges into the graph itself");
        return;
    }
    if (is_word(r, "node") || is_word(r, "edge") || is_word(r, "graph")) {
        next(r);
        skip_attributes(r);
        return;
    }
    if (r->token != NAME) {
        fail(r, "a node, an edge or '}' is expected");
        return;
    }
    /* NAME = VALUE sets an attribute of the drawing. So the reader looks for "=" before it makes a
     * node of the name. */
    const char *at = r->at;
    uint32_t line = r->line;
    skip(r);
    bool setting = r->at < r->end && *r->at == '=';
    r->at = at;
    r->line = line;
    if (setting) {
        next(r);
        next(r);
        if (r->token != NAME) {
            fail(r, "a value is expected after '='");
        }
        next(r);
        return;
    }
    uint32_t node = read_node(r);
    read_edges(r, node);
    skip_attributes(r);
}

static void read_graph(struct reader *r)
{
    next(r);
    if (is_word(r, "strict")) {
        next(r);
    }
    r->dot->directed = is_word(r, "digraph");
    if (!r->dot->directed && !is_word(r, "graph")) {
        fail(r, "a Graphviz file begins with graph or digraph");
        return;
    }
    next(r);
    if (r->token == NAME) {
        next(r);
    }
    expect(r, '{');
    while (!r->failed && !is_sign(r, '}')) {
        if (is_sign(r, ';')) {
            next(r);
        } else {
            read_statement(r);
        }
    }
    next(r);
    if (r->token != END) {
        fail(r, "nothing is expected after the graph");
    }
}

int net_dot_read(struct net_dot *d, const char *name, const char *text, size_t length,
                 char error[NET_ERROR])
{
    struct reader r = {
        .dot = d, .file = name, .at = text, .end = text + length, .line = 1, .error = error};
    *d = (struct net_dot){.edge = NULL};
    read_graph(&r);
    free(r.name);
    if (r.failed) {
        net_dot_free(d);
    }
    return r.failed ? -1 : 0;
}

void net_dot_free(struct net_dot *d)
{
    struct net_dot_node *n, *next;
    HASH_ITER(hh, d->node, n, next)
    {
        HASH_DEL(d->node, n);
        free(n->name);
        free(n);
    }
    free(d->edge);
    *d = (struct net_dot){.edge = NULL};
}
