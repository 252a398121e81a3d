/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of a table of rules:
 *
 *      # pings, and what is sent to port 7
 *      set ping priority 1 context echo {
 *          icmp.type = echo
 *          ip.dst = 10.0.0.0/8
 *      }
 *      set others drop { tcp; tcp.flags & 0x12 = 2 }
 *      set slmp {
 *          vlan 5
 *          slmp
 *          end slmp.flags & end = end
 *          message ip.src, slmp.id
 *      }
 *
 * Lines of a set are all true of a frame; `or` stands between alternatives in a line (clause.c).
 */
#include "raw/rules/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *text;
} known[] = {
    {"icmp-echo", "set icmp-echo {\n    icmp.type = echo\n    icmp.code = 0\n}\n"},
    {"udp-echo", "set udp-echo {\n    udp.dport = 7\n}\n"},
    {"slmp", "set slmp {\n    slmp\n    end slmp.flags & end = end\n"
             "    message ip.src, udp.sport, slmp.id\n}\n"},
    {"all", "set all {\n    all\n}\n"},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]), TEXT_MOST = 1 << 20 };

/* Takes the ends of lines; 0 or -1. */
static int skip_lines(struct raw_lexer *l)
{
    while (l->token.kind == RAW_LINE) {
        if (raw_lexer_next(l) != 0) {
            return -1;
        }
    }
    return 0;
}

/* `vlan [ID]` and `qinq`: the fields behind are four or eight bytes further on. */
static int read_tags(struct raw_reading *r, bool two)
{
    struct raw_lexer *l = &r->lexer;
    struct raw_set *s = r->set;
    uint32_t id;
    if (r->tags != 0 || s->count != 0 || s->ids != 0 || s->ends != 0) {
        return raw_lexer_fail(l, "the tags stand first in a set, and once");
    }
    r->tags = two ? 8 : 4;
    s->clause[s->count++] = (struct raw_clause){.count = 1,
                                                .rule[0] = {.offset = 12,
                                                            .mask = 0xffff0000,
                                                            .start = two ? 0x88a80000 : 0x81000000,
                                                            .end = two ? 0x88a80000 : 0x81000000}};
    if (two) {
        s->clause[s->count++] = (struct raw_clause){
            .count = 1,
            .rule[0] = {.offset = 16, .mask = 0xffff0000, .start = 0x81000000, .end = 0x81000000}};
    }
    if (l->token.kind != RAW_WORD) {
        return 0;
    }
    if (raw_lexer_number(l, "the number of a VLAN", 4095, &id) != 0) {
        return -1;
    }
    s->clause[s->count++] = (struct raw_clause){.count = 1,
                                                .rule[0] = {.offset = (uint16_t)(two ? 18 : 14),
                                                            .mask = 0x0fff0000,
                                                            .start = id << 16,
                                                            .end = id << 16}};
    return 0;
}

static int add_word(struct raw_reading *r, unsigned offset, uint32_t mask)
{
    struct raw_set *s = r->set;
    if (s->ids == RAW_IDS) {
        return raw_lexer_fail(&r->lexer, "the id of a message has more than %d words", RAW_IDS);
    }
    s->id[s->ids++] = (struct raw_word){(uint16_t)offset, mask};
    return 0;
}

/* `message PLACE, PLACE...`: which frames are of one message. */
static int read_message(struct raw_reading *r)
{
    struct raw_lexer *l = &r->lexer;
    int more;
    do {
        struct raw_rule rule;
        const struct raw_field *f = raw_read_field(r);
        int rc = raw_read_word(r, &rule);
        if (rc < 0) {
            return -1;
        }
        if (rc == 1 && (rule.little || add_word(r, rule.offset, rule.mask) != 0)) {
            return rule.little ? raw_lexer_fail(l, "the id of a message has no byte order") : -1;
        }
        if (rc == 0 && f == NULL) {
            return raw_lexer_expected(l, "a field, word or at");
        }
        if (rc == 0 && f->protocol != NULL && !raw_has(r, f->protocol)) {
            return raw_lexer_fail(l,
                                  "the set also matches frames without %s: write a line \"%s\" "
                                  "before this one",
                                  f->protocol, f->protocol);
        }
        for (unsigned at = 0; rc == 0 && at < f->bytes; at += 4) {
            unsigned left = f->bytes - at < 4 ? f->bytes - at : 4;
            uint32_t bits = f->bits != 0 ? f->bits : UINT32_MAX;
            if (add_word(r, f->offset + r->tags + at, bits << (32 - 8 * left)) != 0) {
                return -1;
            }
        }
        if (rc == 0 && raw_lexer_next(l) != 0) {
            return -1;
        }
        more = raw_lexer_take(l, ",");
    } while (more == 1);
    return more;
}

int raw_read_condition(struct raw_reading *r)
{
    struct raw_lexer *l = &r->lexer;
    int rc;
    if ((rc = raw_lexer_take(l, "vlan")) != 0) {
        return rc < 0 ? -1 : read_tags(r, false);
    }
    if ((rc = raw_lexer_take(l, "qinq")) != 0) {
        return rc < 0 ? -1 : read_tags(r, true);
    }
    return raw_read_clause(r, false);
}

static int read_line(struct raw_reading *r)
{
    struct raw_lexer *l = &r->lexer;
    int rc;
    if ((rc = raw_lexer_take(l, "message")) != 0) {
        return rc < 0 ? -1 : read_message(r);
    }
    if ((rc = raw_lexer_take(l, "end")) != 0) {
        return rc < 0 ? -1 : raw_read_clause(r, true);
    }
    return raw_read_condition(r);
}

static int read_head(struct raw_reading *r, const struct raw_rules *rules)
{
    struct raw_lexer *l = &r->lexer;
    struct raw_set *s = r->set;
    int rc = raw_lexer_take(l, "set");
    if (rc <= 0) {
        return rc < 0 ? -1 : raw_lexer_expected(l, "\"set NAME {\"");
    }
    s->line = l->token.line;
    if (raw_lexer_name(l, "the name of a set", s->name) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < rules->count; i++) {
        if (strcmp(rules->set[i].name, s->name) == 0) {
            return raw_lexer_fail(l, "set %s is on line %u already", s->name, rules->set[i].line);
        }
    }
    for (;;) {
        uint32_t priority;
        bool pass = raw_lexer_is(l, "pass");
        if (raw_lexer_is(l, "priority")) {
            if (raw_lexer_next(l) != 0 ||
                raw_lexer_number(l, "a priority", 65535, &priority) != 0) {
                return -1;
            }
            s->priority = priority;
        } else if (raw_lexer_is(l, "context")) {
            if (raw_lexer_next(l) != 0 || raw_lexer_name(l, "the name of a context", s->context)) {
                return -1;
            }
        } else if (pass || raw_lexer_is(l, "drop")) {
            s->action = pass ? RAW_TO_KERNEL : RAW_DISCARD;
            if (raw_lexer_next(l) != 0) {
                return -1;
            }
        } else {
            break;
        }
    }
    if (s->action != RAW_HANDLERS && s->context[0] != '\0') {
        return raw_lexer_fail(l, "set %s has a context, so its handlers say what is dropped",
                              s->name);
    }
    rc = raw_lexer_take(l, "{");
    return rc == 1  ? 0
           : rc < 0 ? -1
                    : raw_lexer_expected(l, "priority N, context NAME, pass, drop or {");
}

static int read_set(struct raw_reading *r, struct raw_rules *rules)
{
    struct raw_lexer *l = &r->lexer;
    if (rules->count == RAW_SETS) {
        return raw_lexer_fail(l, "there are more than %d sets", RAW_SETS);
    }
    r->set = &rules->set[rules->count];
    *r->set = (struct raw_set){0};
    r->tags = 0;
    r->has_count = 0;
    if (read_head(r, rules) != 0) {
        return -1;
    }
    while (skip_lines(l) == 0 && !raw_lexer_is(l, "}")) {
        if (read_line(r) != 0) {
            return -1;
        }
        if (l->token.kind != RAW_LINE && !raw_lexer_is(l, "}")) {
            return raw_lexer_expected(l, "or, the end of the line or }");
        }
    }
    if (!raw_lexer_is(l, "}")) {
        return -1;
    }
    if (r->set->count == 0) {
        return raw_lexer_fail(l, "set %s has no condition; \"all\" takes every frame",
                              r->set->name);
    }
    if (r->set->action != RAW_HANDLERS && (r->set->ids != 0 || r->set->ends != 0)) {
        return raw_lexer_fail(l, "set %s passes or drops frames: it has no messages and no ends",
                              r->set->name);
    }
    if (r->set->ids != 0 && r->set->ends == 0) {
        return raw_lexer_fail(l,
                              "set %s says what a message is, and not where it ends: write a "
                              "line \"end ...\"",
                              r->set->name);
    }
    rules->count++;
    return raw_lexer_next(l);
}

/* Orders the sets by priority; equal ones stay in the order of the text. */
static void order(struct raw_rules *rules)
{
    for (unsigned i = 1; i < rules->count; i++) {
        for (unsigned k = i; k > 0 && rules->set[k].priority < rules->set[k - 1].priority; k--) {
            struct raw_set set = rules->set[k];
            rules->set[k] = rules->set[k - 1];
            rules->set[k - 1] = set;
        }
    }
}

int raw_rules_parse(struct raw_rules *rules, const char *name, const char *text, size_t length,
                    char error[RAW_ERROR])
{
    struct raw_reading r = {0};
    rules->count = 0;
    if (raw_lexer_open(&r.lexer, name, text, length, error) != 0 || skip_lines(&r.lexer) != 0) {
        return -1;
    }
    while (r.lexer.token.kind != RAW_END) {
        if (read_set(&r, rules) != 0 || skip_lines(&r.lexer) != 0) {
            return -1;
        }
    }
    if (rules->count == 0) {
        return raw_lexer_fail(&r.lexer, "there is no set: no frame would match");
    }
    order(rules);
    return 0;
}

const char *raw_rules_known(const char *name)
{
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].text;
        }
    }
    return NULL;
}

const char *raw_rules_name(unsigned n)
{
    return n < KNOWN ? known[n].name : NULL;
}

int raw_text_load(const char *path, char **text, size_t *length, char error[RAW_ERROR])
{
    char *bytes = malloc(TEXT_MOST);
    FILE *file = bytes != NULL ? fopen(path, "re") : NULL;
    if (file == NULL) {
        snprintf(error, RAW_ERROR, "%.100s: %s", path, strerror(bytes != NULL ? errno : ENOMEM));
        free(bytes);
        return -1;
    }
    *length = fread(bytes, 1, TEXT_MOST, file);
    int rc = 0;
    if (ferror(file)) {
        snprintf(error, RAW_ERROR, "%.100s: cannot be read: %s", path, strerror(errno));
        rc = -1;
    } else if (*length == TEXT_MOST) {
        snprintf(error, RAW_ERROR, "%.100s: is longer than %d bytes", path, TEXT_MOST - 1);
        rc = -1;
    }
    fclose(file);
    if (rc != 0) {
        free(bytes);
        return -1;
    }
    *text = bytes;
    return 0;
}

int raw_rules_load(struct raw_rules *rules, const char *path, char error[RAW_ERROR])
{
    const char *known = raw_rules_known(path);
    char *text;
    size_t length;
    if (known != NULL) {
        return raw_rules_parse(rules, path, known, strlen(known), error);
    }
    if (raw_text_load(path, &text, &length, error) != 0) {
        size_t n = strlen(error);
        snprintf(error + n, RAW_ERROR - n, "; rules are a file, or icmp-echo, udp-echo, slmp, all");
        return -1;
    }
    int rc = raw_rules_parse(rules, path, text, length, error);
    free(text);
    return rc;
}
