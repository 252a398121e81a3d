/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that read the text of rules share: the set that is being read. */
#ifndef RAW_TEXT_H
#define RAW_TEXT_H

#include "raw/rules/fields.h"
#include "raw/rules/lexer.h"

enum { RAW_PROTOCOLS = 16 }; /* protocols that a set has, at most */

struct raw_reading {
    struct raw_lexer lexer;
    struct raw_set *set;
    unsigned tags; /* bytes of the tags that stand before the fields' places */
    const struct raw_protocol *has[RAW_PROTOCOLS]; /* protocols that the set has */
    unsigned has_count;
};

/* raw_read_word() takes `word N` or `at N` with what may follow: `little`, `mask M`. 1: it was one;
 * 0: it is none; -1: the error is set. */
int raw_read_word(struct raw_reading *r, struct raw_rule *rule);

/* raw_read_clause() takes a clause, up to the end of its line. For the end of messages (`ends`)
 * a protocol must have been named before. 0 or -1. */
int raw_read_clause(struct raw_reading *r, bool ends);

/* raw_read_condition() takes a line that says which frames match: tags or a clause. 0 or -1. */
int raw_read_condition(struct raw_reading *r);

/* raw_require() makes the set have a protocol and all below it, before its next clause. 0 or -1. */
int raw_require(struct raw_reading *r, const char *protocol);

/* raw_read_field() takes the name of a field; NULL: it is none. */
const struct raw_field *raw_read_field(struct raw_reading *r);
bool raw_has(const struct raw_reading *r, const char *protocol);

#endif
