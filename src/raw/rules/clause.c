/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line of a set:      TERM [or TERM]...
 *
 *      TERM:  PROTOCOL | all | PLACE [& NUMBER] = VALUE [.. VALUE]
 *      PLACE: FIELD | word N [little] [mask M] | at BYTE [little] [mask M]
 *
 * A field of more than four bytes becomes a clause for each four of them; so it cannot stand beside
 * an `or`, and has no range.
 */
#include "raw/rules/text.h"

#include "base/nearest.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static int add_clause(struct raw_reading *r, bool ends, const struct raw_clause *clause)
{
    struct raw_set *s = r->set;
    unsigned *count = ends ? &s->ends : &s->count;
    if (*count == RAW_CLAUSES) {
        return raw_lexer_fail(&r->lexer, "set %s has more than %d conditions", s->name,
                              RAW_CLAUSES);
    }
    (ends ? s->end : s->clause)[(*count)++] = *clause;
    return 0;
}

static int add_equal(struct raw_reading *r, bool ends, unsigned offset, uint32_t mask,
                     uint32_t value)
{
    struct raw_clause one = {.count = 1,
                             .rule[0] = {.offset = (uint16_t)(offset),
                                         .mask = mask,
                                         .start = value & mask,
                                         .end = value & mask}};
    return add_clause(r, ends, &one);
}

/* ---- Protocols ---- */

bool raw_has(const struct raw_reading *r, const char *protocol)
{
    for (unsigned i = 0; i < r->has_count; i++) {
        if (strcmp(r->has[i]->name, protocol) == 0) {
            return true;
        }
    }
    return false;
}

int raw_require(struct raw_reading *r, const char *name)
{
    if (name == NULL || raw_has(r, name)) {
        return 0;
    }
    const struct raw_protocol *p = raw_protocol_find(name, strlen(name));
    if (raw_require(r, p->below) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < p->count; i++) {
        const struct raw_implied *c = &p->implied[i];
        if (add_equal(r, false, c->offset + r->tags, c->mask, c->value) != 0) {
            return -1;
        }
    }
    if (r->has_count == RAW_PROTOCOLS) {
        return raw_lexer_fail(&r->lexer, "set %s has more than %d protocols", r->set->name,
                              RAW_PROTOCOLS);
    }
    r->has[r->has_count++] = p;
    return 0;
}

static int require_for(struct raw_reading *r, const struct raw_field *f, bool ends)
{
    if (ends && f->protocol != NULL && !raw_has(r, f->protocol)) {
        return raw_lexer_fail(&r->lexer,
                              "%s tells the end of a message, and the set also matches frames "
                              "without %s: write a line \"%s\" before this one",
                              f->name, f->protocol, f->protocol);
    }
    return raw_require(r, f->protocol);
}

const struct raw_field *raw_read_field(struct raw_reading *r)
{
    const struct raw_token *t = &r->lexer.token;
    return t->kind == RAW_WORD ? raw_field_find(t->text, t->length) : NULL;
}

/* ---- Values ---- */

int raw_read_word(struct raw_reading *r, struct raw_rule *rule)
{
    struct raw_lexer *l = &r->lexer;
    uint32_t place, most = RAW_REACH;
    int is_word = raw_lexer_take(l, "word"), is_at = is_word == 0 ? raw_lexer_take(l, "at") : 0;
    if (is_word < 0 || is_at < 0) {
        return -1;
    }
    if (is_word == 0 && is_at == 0) {
        return 0;
    }
    most = is_word ? most / 4 - 1 : most - 4;
    if (raw_lexer_number(l, is_word ? "the number of a word" : "the number of a byte", most,
                         &place) != 0) {
        return -1;
    }
    *rule = (struct raw_rule){
        .offset = (uint16_t)(is_word ? 4 * place : place), .mask = UINT32_MAX, .end = UINT32_MAX};
    int little = raw_lexer_take(l, "little");
    int masked = little >= 0 ? raw_lexer_take(l, "mask") : -1;
    rule->little = little == 1;
    if (masked < 0 || (masked && raw_lexer_number(l, "a mask", UINT32_MAX, &rule->mask) != 0)) {
        return -1;
    }
    return 1;
}

static int read_address(struct raw_reading *r, const struct raw_field *f, uint8_t bytes[16],
                        unsigned *prefix)
{
    struct raw_lexer *l = &r->lexer;
    char text[64], slash;
    unsigned b[6], given = 0;
    int end = 0;
    const char *what = f->kind == RAW_MAC   ? "an address aa:bb:cc:dd:ee:ff"
                       : f->kind == RAW_IP4 ? "an address 10.0.0.1 or 10.0.0.0/8"
                                            : "an address fe80::1 or fe80::/10";
    if (l->token.kind != RAW_WORD || l->token.length >= sizeof(text)) {
        return raw_lexer_expected(l, what);
    }
    memcpy(text, l->token.text, l->token.length);
    text[l->token.length] = '\0';
    *prefix = 8u * f->bytes;
    if (f->kind == RAW_MAC) {
        if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                   &end) != 6 ||
            text[end] != '\0') {
            return raw_lexer_expected(l, what);
        }
        for (int i = 0; i < 6; i++) {
            bytes[i] = (uint8_t)b[i];
        }
        return raw_lexer_next(l);
    }
    char *at = strchr(text, '/');
    if (at != NULL) {
        *at = '\0';
        if (sscanf(at + 1, "%3u%c", &given, &slash) != 1 || given > *prefix) {
            return raw_lexer_expected(l, what);
        }
        *prefix = given;
    }
    if (inet_pton(f->kind == RAW_IP4 ? AF_INET : AF_INET6, text, bytes) != 1) {
        return raw_lexer_expected(l, what);
    }
    return raw_lexer_next(l);
}

static int read_number(struct raw_reading *r, const struct raw_field *f, uint32_t most,
                       uint32_t *value)
{
    const struct raw_token *t = &r->lexer.token;
    const struct raw_constant *c =
        f != NULL && t->kind == RAW_WORD ? raw_constant_find(f->name, t->text, t->length) : NULL;
    if (c != NULL) {
        *value = c->value;
        return raw_lexer_next(&r->lexer);
    }
    return raw_lexer_number(&r->lexer, f != NULL ? f->name : "a value", most, value);
}

static uint32_t prefix_mask(unsigned prefix)
{
    return prefix == 0 ? 0 : UINT32_MAX << (32 - (prefix < 32 ? prefix : 32));
}

/* A field of 6 or 16 bytes, or an address with a prefix: clauses of its own. */
static int read_long(struct raw_reading *r, const struct raw_field *f, bool ends)
{
    uint8_t bytes[16] = {0};
    unsigned prefix = 0;
    if (read_address(r, f, bytes, &prefix) != 0) {
        return -1;
    }
    for (unsigned at = 0; at < f->bytes; at += 4) {
        uint32_t value = (uint32_t)bytes[at] << 24 | (uint32_t)bytes[at + 1] << 16 |
                         (uint32_t)bytes[at + 2] << 8 | bytes[at + 3];
        uint32_t mask = prefix_mask(prefix > 8 * at ? prefix - 8 * at : 0);
        if (mask != 0 && add_equal(r, ends, f->offset + r->tags + at, mask, value) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Terms ---- */

/* Reads [& NUMBER] = VALUE [.. VALUE] for the `bits` that stand `shift` bits above the word's low
 * end. */
static int read_values(struct raw_reading *r, const struct raw_field *f, struct raw_rule *rule,
                       unsigned shift)
{
    struct raw_lexer *l = &r->lexer;
    uint32_t most = f != NULL && f->bits != 0 ? f->bits : UINT32_MAX >> shift;
    uint32_t mask = most, start, end;
    int rc = raw_lexer_take(l, "&");
    if (rc < 0 || (rc == 1 && read_number(r, f, most, &mask) != 0)) {
        return -1;
    }
    rc = raw_lexer_take(l, "=");
    if (rc <= 0) {
        return rc < 0 ? -1 : raw_lexer_expected(l, "=");
    }
    if (read_number(r, f, most, &start) != 0 || (rc = raw_lexer_take(l, "..")) < 0) {
        return -1;
    }
    end = start;
    if (rc == 1 && read_number(r, f, most, &end) != 0) {
        return -1;
    }
    if (start > end) {
        return raw_lexer_fail(l, "the range %u..%u is empty", start, end);
    }
    mask <<= shift;
    rule->mask = f != NULL ? mask : rule->mask & mask;
    rule->start = start << shift;
    rule->end = end << shift;
    if (start == end && (rule->start & ~rule->mask) != 0) {
        return raw_lexer_fail(l, "this is never true: 0x%x has bits that the mask 0x%x leaves out",
                              start, rule->mask >> shift);
    }
    return 0;
}

static int unknown_term(struct raw_reading *r)
{
    const struct raw_token *t = &r->lexer.token;
    char hint[80];
    if (t->kind != RAW_WORD) {
        return raw_lexer_expected(&r->lexer, "a protocol, a field, word, at or all");
    }
    struct nearest near = nearest_to(t->text, t->length);
    for (unsigned n = 0; raw_name_at(n) != NULL; n++) {
        nearest_try(&near, raw_name_at(n));
    }
    return raw_lexer_fail(&r->lexer, "there is no protocol or field \"%.*s\"%s",
                          (int)(t->length < RAW_NAME ? t->length : RAW_NAME), t->text,
                          nearest_text(&near, hint));
}

/* Reads a term into `rule`. 1: it is one rule; 0: it has become clauses of its own; -1: the error
 * is set. */
static int read_term(struct raw_reading *r, bool ends, struct raw_rule *rule)
{
    struct raw_lexer *l = &r->lexer;
    const struct raw_token *t = &l->token;
    int rc = raw_read_word(r, rule);
    if (rc != 0) {
        return rc < 0 || read_values(r, NULL, rule, 0) != 0 ? -1 : 1;
    }
    if ((rc = raw_lexer_take(l, "all")) != 0) {
        *rule = (struct raw_rule){0};
        return rc;
    }
    const struct raw_protocol *p =
        t->kind == RAW_WORD ? raw_protocol_find(t->text, t->length) : NULL;
    if (p != NULL) {
        if (ends) {
            return raw_lexer_fail(l, "a protocol does not tell the end of a message");
        }
        return raw_require(r, p->name) != 0 || raw_lexer_next(l) != 0 ? -1 : 0;
    }
    const struct raw_field *f = raw_read_field(r);
    if (f == NULL) {
        return unknown_term(r);
    }
    if (require_for(r, f, ends) != 0 || raw_lexer_next(l) != 0) {
        return -1;
    }
    if (f->kind != RAW_NUMBER) {
        if (!raw_lexer_is(l, "=")) {
            return raw_lexer_expected(l, "=");
        }
        return raw_lexer_next(l) != 0 || read_long(r, f, ends) != 0 ? -1 : 0;
    }
    *rule = (struct raw_rule){.offset = (uint16_t)(f->offset + r->tags)};
    return read_values(r, f, rule, 32 - 8u * f->bytes) != 0 ? -1 : 1;
}

int raw_read_clause(struct raw_reading *r, bool ends)
{
    struct raw_lexer *l = &r->lexer;
    struct raw_clause clause = {0};
    unsigned terms = 0, before = r->has_count;
    int more;
    do {
        struct raw_rule rule;
        if (clause.count == RAW_RULES) {
            return raw_lexer_fail(l, "a line has more than %d alternatives", RAW_RULES);
        }
        int rc = read_term(r, ends, &rule);
        if (rc < 0) {
            return -1;
        }
        if (terms++ > 0 && r->has_count != before) {
            return raw_lexer_fail(l, "the alternatives of a line are of one protocol; write a set "
                                     "for each protocol");
        }
        before = r->has_count;
        if (rc == 1) {
            clause.rule[clause.count++] = rule;
        }
        more = raw_lexer_take(l, "or");
        if (more == 1 && clause.count != terms) {
            return raw_lexer_fail(l, "a protocol or an address has no alternatives in its line; "
                                     "write a set for each");
        }
    } while (more == 1);
    if (more < 0) {
        return -1;
    }
    if (terms > 1 && clause.count != terms) {
        return raw_lexer_fail(l, "a protocol or an address has no alternatives in its line; write "
                                 "a set for each");
    }
    return clause.count > 0 ? add_clause(r, ends, &clause) : 0;
}
