/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a policy, and what it does to rules; see policy.h. */
#include "raw/serve/policy.h"

#include "base/nearest.h"
#include "raw/rules/text.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 65534, NAMES = 16384 };

struct reading {
    struct raw_lexer *lexer;
    struct policy *policy;
    struct policy_line *line;
};

/* ---- Who ---- */

static bool look_up(bool group, const char *name, unsigned *id)
{
    char *room = malloc(NAMES);
    struct passwd p, *user = NULL;
    struct group g, *found = NULL;
    if (room != NULL && group && getgrnam_r(name, &g, room, NAMES, &found) == 0 && found != NULL) {
        *id = found->gr_gid;
    } else if (room != NULL && !group && getpwnam_r(name, &p, room, NAMES, &user) == 0 &&
               user != NULL) {
        *id = user->pw_uid;
    }
    free(room);
    return found != NULL || user != NULL;
}

/* Users that a user namespace does not know are all the same number there, so it is nobody's. */
static int check_id(struct raw_lexer *l, const char *name, unsigned id)
{
    return id != NOBODY ? 0
                        : raw_lexer_fail(l,
                                         "%s is number %d, which stands for all who have no number "
                                         "here: name another, or \"everyone\"",
                                         name, NOBODY);
}

static int read_name(struct reading *r, bool group)
{
    struct raw_lexer *l = r->lexer;
    struct policy_line *p = r->line;
    struct raw_lexer before = *l;
    if (raw_lexer_name(l, group ? "the name or number of a group" : "the name or number of a user",
                       p->name) != 0) {
        return -1;
    }
    char *end;
    unsigned long n = strtoul(p->name, &end, 10);
    if (*end == '\0' && end != p->name && n < UINT32_MAX) {
        p->id = (unsigned)n;
    } else if (!look_up(group, p->name, &p->id)) {
        l->token = before.token;
        return raw_lexer_fail(l,
                              "there is no %s \"%s\" on this machine: a name that `getent %s` "
                              "lists, or a number",
                              group ? "group" : "user", p->name, group ? "group" : "passwd");
    }
    return check_id(l, p->name, p->id);
}

static int read_who(struct reading *r)
{
    struct raw_lexer *l = r->lexer;
    struct policy_line *p = r->line;
    int rc = raw_lexer_take(l, "everyone");
    if (rc != 0) {
        p->who = POLICY_EVERYONE;
        snprintf(p->name, sizeof(p->name), "everyone");
        return rc < 0 ? -1 : 0;
    }
    rc = raw_lexer_take(l, "user");
    if (rc == 1) {
        p->who = POLICY_USER;
        return read_name(r, false);
    }
    rc = rc == 0 ? raw_lexer_take(l, "group") : rc;
    if (rc == 1) {
        p->who = POLICY_GROUP;
        return read_name(r, true);
    }
    return rc < 0 ? -1 : raw_lexer_expected(l, "user NAME, group NAME or everyone");
}

/* ---- How much ---- */

static const struct word {
    const char *name;
    size_t at;
    unsigned least, most;
} words[] = {
    {"contexts", offsetof(struct policy_line, contexts), 1, POLICY_CONTEXTS},
    {"sets", offsetof(struct policy_line, sets), 1, RAW_SETS},
    {"ring", offsetof(struct policy_line, ring), 2, POLICY_RING_MOST},
    {"share", offsetof(struct policy_line, share), 1, POLICY_SHARE_MOST},
    {"priority", offsetof(struct policy_line, priority), 0, 65535},
};

static int unknown_word(struct raw_lexer *l)
{
    char hint[80];
    struct nearest near = nearest_to(l->token.text, l->token.length);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        nearest_try(&near, words[i].name);
    }
    nearest_try(&near, "any-source");
    return raw_lexer_fail(l,
                          "a policy has no word \"%.*s\"%s: contexts, sets, ring, share, priority "
                          "with a number, any-source, then {",
                          (int)(l->token.length < RAW_NAME ? l->token.length : RAW_NAME),
                          l->token.text, nearest_text(&near, hint));
}

static int read_word(struct reading *r, const struct word *w)
{
    struct raw_lexer *l = r->lexer;
    struct raw_token number;
    uint32_t value;
    if (raw_lexer_next(l) != 0) {
        return -1;
    }
    number = l->token;
    if (raw_lexer_number(l, w->name, w->most, &value) != 0) {
        return -1;
    }
    if (value < w->least || (strcmp(w->name, "ring") == 0 && (value & (value - 1)) != 0)) {
        l->token = number;
        return raw_lexer_fail(l, "%s %u: it is %s from %u to %u", w->name, value,
                              strcmp(w->name, "ring") == 0 ? "a power of two" : "a number",
                              w->least, w->most);
    }
    memcpy((char *)r->line + w->at, &(unsigned){value}, sizeof(unsigned));
    return 0;
}

static int read_words(struct reading *r)
{
    struct raw_lexer *l = r->lexer;
    while (!raw_lexer_is(l, "{")) {
        const struct word *w = NULL;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && w == NULL; i++) {
            w = raw_lexer_is(l, words[i].name) ? &words[i] : NULL;
        }
        if (w != NULL) {
            if (read_word(r, w) != 0) {
                return -1;
            }
        } else if (raw_lexer_is(l, "any-source")) {
            r->line->any_source = true;
            if (raw_lexer_next(l) != 0) {
                return -1;
            }
        } else {
            return l->token.kind == RAW_WORD ? unknown_word(l) : raw_lexer_expected(l, "{");
        }
    }
    return raw_lexer_next(l);
}

/* ---- Which frames ---- */

static int read_conditions(struct reading *r)
{
    struct raw_lexer *l = r->lexer;
    struct policy_line *p = r->line;
    struct raw_reading side[2] = {{.set = &p->take}, {.set = &p->send}};
    while (!raw_lexer_is(l, "}")) {
        if (l->token.kind == RAW_LINE) {
            if (raw_lexer_next(l) != 0) {
                return -1;
            }
            continue;
        }
        int send = raw_lexer_take(l, "send");
        if (send < 0) {
            return -1;
        }
        struct raw_reading *s = &side[send];
        s->lexer = *l;
        int rc = raw_read_condition(s);
        *l = s->lexer;
        if (rc != 0) {
            return -1;
        }
        if (l->token.kind != RAW_LINE && !raw_lexer_is(l, "}")) {
            return raw_lexer_expected(l, "or, the end of the line or }");
        }
    }
    p->sends = p->send.count > 0;
    if (p->take.count == 0) {
        return raw_lexer_fail(
            l, "the line allows no frame: write which, as in rules; \"all\" is every "
               "frame");
    }
    if (p->any_source && !p->sends) {
        return raw_lexer_fail(l, "any-source is of frames that are sent, and the line has no "
                                 "\"send\"");
    }
    return raw_lexer_next(l);
}

static int read_line(struct reading *r)
{
    struct raw_lexer *l = r->lexer;
    if (r->policy->count == POLICY_LINES) {
        return raw_lexer_fail(l, "there are more than %d lines", POLICY_LINES);
    }
    r->line = &r->policy->of[r->policy->count];
    *r->line = (struct policy_line){
        .line = l->token.line, .contexts = 1, .sets = 8, .ring = 256, .share = 16};
    int rc = raw_lexer_take(l, "allow");
    if (rc <= 0) {
        return rc < 0 ? -1 : raw_lexer_expected(l, "\"allow user NAME {\"");
    }
    snprintf(r->line->take.name, RAW_NAME, "line-%u", r->line->line);
    snprintf(r->line->send.name, RAW_NAME, "send-%u", r->line->line);
    if (read_who(r) != 0 || read_words(r) != 0 || read_conditions(r) != 0) {
        return -1;
    }
    r->policy->count++;
    return 0;
}

int policy_parse(struct policy *p, const char *name, const char *text, size_t length,
                 char error[RAW_ERROR])
{
    struct raw_lexer l;
    struct reading r = {.lexer = &l, .policy = p};
    p->count = 0;
    if (raw_lexer_open(&l, name, text, length, error) != 0) {
        return -1;
    }
    while (l.token.kind != RAW_END) {
        if (l.token.kind == RAW_LINE ? raw_lexer_next(&l) != 0 : read_line(&r) != 0) {
            return -1;
        }
    }
    if (p->count == 0) {
        return raw_lexer_fail(&l, "nobody is allowed anything: write \"allow user NAME {\"");
    }
    return 0;
}

int policy_load(struct policy *p, const char *path, char error[RAW_ERROR])
{
    char *text;
    size_t length;
    if (raw_text_load(path, &text, &length, error) != 0) {
        return -1;
    }
    int rc = policy_parse(p, path, text, length, error);
    free(text);
    return rc;
}

int policy_find(const struct policy *p, unsigned from, const struct policy_peer *peer)
{
    for (unsigned i = from; i < p->count; i++) {
        const struct policy_line *line = &p->of[i];
        bool is = line->who == POLICY_EVERYONE ||
                  (line->who == POLICY_USER && line->id == (unsigned)peer->uid);
        for (unsigned g = 0; line->who == POLICY_GROUP && g < peer->groups; g++) {
            is = is || line->id == (unsigned)peer->group[g];
        }
        if (is) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- Both ---- */

/* Whether no word is in both. What it does not see is no hole: the sum matches no frame then. */
static bool apart(const struct raw_rule *a, const struct raw_rule *b)
{
    if (a->offset != b->offset || a->little != b->little) {
        return false;
    }
    if (a->mask == b->mask) {
        return a->end < b->start || b->end < a->start;
    }
    return a->start == a->end && b->start == b->end &&
           ((a->start ^ b->start) & a->mask & b->mask) != 0;
}

static bool contradict(const struct raw_clause *a, const struct raw_clause *b)
{
    for (unsigned i = 0; i < a->count; i++) {
        for (unsigned k = 0; k < b->count; k++) {
            if (!apart(&a->rule[i], &b->rule[k])) {
                return false;
            }
        }
    }
    return true;
}

static bool same(const struct raw_clause *a, const struct raw_clause *b)
{
    bool equal = a->count == b->count;
    for (unsigned i = 0; i < a->count && equal; i++) {
        const struct raw_rule *x = &a->rule[i], *y = &b->rule[i];
        equal = x->offset == y->offset && x->little == y->little && x->mask == y->mask &&
                x->start == y->start && x->end == y->end;
    }
    return equal;
}

static int and_one(const struct policy_line *line, struct raw_set *set, char error[RAW_ERROR])
{
    for (unsigned c = 0; c < line->take.count; c++) {
        const struct raw_clause *add = &line->take.clause[c];
        bool there = false;
        for (unsigned i = 0; i < set->count; i++) {
            there = there || same(&set->clause[i], add);
            if (contradict(&set->clause[i], add)) {
                snprintf(error, RAW_ERROR,
                         "set %s is outside of what line %u of the policy allows %s", set->name,
                         line->line, line->name);
                return -EACCES;
            }
        }
        if (there) {
            continue;
        }
        if (set->count == RAW_CLAUSES) {
            snprintf(
                error, RAW_ERROR,
                "set %s has with those of line %u of the policy more than %d conditions: write "
                "it with fewer",
                set->name, line->line, RAW_CLAUSES);
            return -E2BIG;
        }
        set->clause[set->count++] = *add;
    }
    return 0;
}

int policy_and(const struct policy_line *line, struct raw_set *sets, unsigned count,
               char error[RAW_ERROR])
{
    int rc = 0;
    for (unsigned s = 0; s < count && rc == 0; s++) {
        if (sets[s].action != RAW_HANDLERS) {
            snprintf(
                error, RAW_ERROR,
                "set %s passes or drops: the owner of the interface has sets for handlers only",
                sets[s].name);
            return -EACCES;
        }
        rc = and_one(line, &sets[s], error);
    }
    return rc;
}
