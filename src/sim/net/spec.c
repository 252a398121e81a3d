/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the text by which a user asks for a network; see graph.h. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a whole number from `least` to `most`, of `length` digits at `text`; -1 if there is
 * none. */
static int number(const char *text, size_t length, uint32_t least, uint32_t most, uint32_t *value)
{
    if (length == 0 || length > 9 || strspn(text, "0123456789") < length) {
        return -1;
    }
    unsigned long v = strtoul(text, NULL, 10);
    *value = (uint32_t)v;
    return v >= least && v <= most ? 0 : -1;
}

struct key {
    const char *name;
    uint32_t *value;
    uint32_t least, most;
};

static int bad_key(const struct net_spec *spec, const char *at, size_t length,
                   const struct key *keys, int count, char error[NET_ERROR])
{
    int n = snprintf(error, NET_ERROR, "%s: \"%.*s\" must be", spec->text,
                     (int)(length < 64 ? length : 64), at);
    for (int i = 0; i < count && n < NET_ERROR; i++) {
        n += snprintf(error + n, (size_t)(NET_ERROR - n), "%s %s=%u to %u", i > 0 ? " or" : "",
                      keys[i].name, keys[i].least, keys[i].most);
    }
    return -1;
}

/* Reads NAME=NUMBER, and more of these after commas. */
static int take_keys(const struct net_spec *spec, const char *text, const struct key *keys,
                     int count, char error[NET_ERROR])
{
    while (*text != '\0') {
        size_t length = strcspn(text, ","), name = strcspn(text, "=,");
        int i = 0;
        while (i < count &&
               (strlen(keys[i].name) != name || memcmp(keys[i].name, text, name) != 0)) {
            i++;
        }
        if (i == count || name == length ||
            number(text + name + 1, length - name - 1, keys[i].least, keys[i].most,
                   keys[i].value) != 0) {
            return bad_key(spec, text, length, keys, count, error);
        }
        text += length + (text[length] == ',');
    }
    return 0;
}

static int parse_fattree(struct net_spec *s, const char *text, char error[NET_ERROR])
{
    const struct key keys[] = {{"radix", &s->radix, 2, 4096},
                               {"oversubscription", &s->oversubscription, 1, 64},
                               {"levels", &s->levels, 1, NET_LEVELS}};
    s->radix = 36;
    s->oversubscription = 1;
    if (take_keys(s, text, keys, 3, error) != 0) {
        return -1;
    }
    if (s->radix % 2 != 0 || s->radix % (1 + s->oversubscription) != 0) {
        snprintf(error, NET_ERROR,
                 "%s: radix %u must be even and a multiple of oversubscription + 1 = %u, so that "
                 "ports can be shared out",
                 s->text, s->radix, 1 + s->oversubscription);
        return -1;
    }
    return 0;
}

static int parse_torus(struct net_spec *s, const char *text, char error[NET_ERROR])
{
    for (;;) {
        size_t length = strcspn(text, "x");
        if (s->dimensions == NET_DIMENSIONS ||
            number(text, length, 1, 1 << 20, &s->size[s->dimensions]) != 0) {
            snprintf(error, NET_ERROR, "%s: must be like torus:8x8x8, up to %d sizes from 1 to %d",
                     s->text, NET_DIMENSIONS, 1 << 20);
            return -1;
        }
        s->dimensions++;
        if (text[length] == '\0') {
            return 0;
        }
        text += length + 1;
    }
}

static int parse_dragonfly(struct net_spec *s, const char *text, char error[NET_ERROR])
{
    const struct key keys[] = {{"a", &s->a, 1, 4096},
                               {"h", &s->h, 1, 4096},
                               {"p", &s->p, 1, 4096},
                               {"groups", &s->groups, 1, 1 << 20}};
    if (take_keys(s, text, keys, 4, error) != 0) {
        return -1;
    }
    if (s->a == 0 || s->h == 0 || s->p == 0) {
        snprintf(error, NET_ERROR,
                 "%s: %s= is missing; dragonfly:a=4,h=2,p=2 has groups of a routers, each with p "
                 "hosts and h cables to other groups",
                 s->text,
                 s->a == 0   ? "a"
                 : s->h == 0 ? "h"
                             : "p");
        return -1;
    }
    return 0;
}

static const char *after(const char *text, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0) {
        return NULL;
    }
    return text[length] == ':' ? text + length + 1 : text[length] == '\0' ? text + length : NULL;
}

static bool names_file(const char *text)
{
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 4 && strcmp(text + length - 4, ".dot") == 0) ||
           (length > 3 && strcmp(text + length - 3, ".gv") == 0);
}

int net_spec_parse(struct net_spec *s, const char *text, char error[NET_ERROR])
{
    *s = (struct net_spec){.text = text};
    const char *rest;
    if ((rest = after(text, "fattree")) != NULL) {
        s->kind = NET_FATTREE;
        return parse_fattree(s, rest, error);
    }
    if ((rest = after(text, "torus")) != NULL) {
        s->kind = NET_TORUS;
        return parse_torus(s, rest, error);
    }
    if ((rest = after(text, "dragonfly")) != NULL) {
        s->kind = NET_DRAGONFLY;
        return parse_dragonfly(s, rest, error);
    }
    s->kind = NET_FILE;
    if (names_file(text)) {
        return 0;
    }
    snprintf(error, NET_ERROR,
             "%s: must be fattree:radix=36,oversubscription=1,levels=2, torus:8x8x8, "
             "dragonfly:a=4,h=2,p=2,groups=9 or a Graphviz file NAME.dot",
             text);
    return -1;
}
