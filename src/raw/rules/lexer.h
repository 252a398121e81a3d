/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a text of rules (text.c), with the line that each is on. */
#ifndef RAW_LEXER_H
#define RAW_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw/rules/rules.h"

/* A line ends with RAW_LINE; ";" is the same. RAW_WORD has letters, digits and _ . : / - in it. */
enum raw_token_kind { RAW_END, RAW_LINE, RAW_WORD, RAW_SYMBOL };

struct raw_token {
    enum raw_token_kind kind;
    const char *text; /* in the text, without a NUL; of RAW_SYMBOL: one of { } = & , or ".." */
    size_t length;
    unsigned line;
};

struct raw_lexer {
    const char *name, *at, *end;
    unsigned line;
    struct raw_token token; /* the one that has not been taken */
    char *error;
};

/* raw_lexer_open() reads the first token. raw_lexer_next() goes on to the next; -1 with the error
 * set if there is a character that no token has. */
int raw_lexer_open(struct raw_lexer *l, const char *name, const char *text, size_t length,
                   char error[RAW_ERROR]);
int raw_lexer_next(struct raw_lexer *l);

/* raw_lexer_is() compares the token with a word or symbol; raw_lexer_take() takes it if it is that
 * one (1), or not (0); -1 as above. */
bool raw_lexer_is(const struct raw_lexer *l, const char *text);
int raw_lexer_take(struct raw_lexer *l, const char *text);

/* raw_lexer_fail() sets the error "NAME:LINE: ..." of the token's line, and returns -1.
 * raw_lexer_expected() says what should be there instead of the token. */
int raw_lexer_fail(struct raw_lexer *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int raw_lexer_expected(struct raw_lexer *l, const char *what);

/* raw_lexer_number() takes a number, decimal or 0x..., up to `most`; raw_lexer_name() a name for
 * errors and reports. 0 or -1. */
int raw_lexer_number(struct raw_lexer *l, const char *what, uint32_t most, uint32_t *value);
int raw_lexer_name(struct raw_lexer *l, const char *what, char name[RAW_NAME]);

#endif
