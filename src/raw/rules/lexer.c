/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits a text of rules into tokens; see lexer.h. The text need not be a string, nor printable. */
#include "raw/rules/lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* bytes of the text that an error shows */

int raw_lexer_fail(struct raw_lexer *l, const char *format, ...)
{
    va_list list;
    int n = snprintf(l->error, RAW_ERROR, "%.80s:%u: ", l->name, l->token.line);
    va_start(list, format);
    vsnprintf(l->error + n, RAW_ERROR - (size_t)n, format, list);
    va_end(list);
    return -1;
}

int raw_lexer_expected(struct raw_lexer *l, const char *what)
{
    const struct raw_token *t = &l->token;
    if (t->kind == RAW_END || t->kind == RAW_LINE) {
        return raw_lexer_fail(l, "%s is missing at the end of the %s", what,
                              t->kind == RAW_END ? "text" : "line");
    }
    return raw_lexer_fail(l, "%s is expected, not \"%.*s\"", what,
                          (int)(t->length < SHOWN ? t->length : SHOWN), t->text);
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_.:/-", c) != NULL);
}

static bool two_dots(const struct raw_lexer *l, const char *at)
{
    return l->end - at >= 2 && at[0] == '.' && at[1] == '.';
}

static void skip_blanks(struct raw_lexer *l)
{
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')) {
        l->at++;
    }
    if (l->at < l->end && *l->at == '#') {
        const char *line = memchr(l->at, '\n', (size_t)(l->end - l->at));
        l->at = line != NULL ? line : l->end;
    }
}

int raw_lexer_next(struct raw_lexer *l)
{
    skip_blanks(l);
    struct raw_token *t = &l->token;
    *t = (struct raw_token){RAW_END, l->at, 1, l->line};
    if (l->at == l->end) {
        t->length = 0;
        return 0;
    }
    if (*l->at == '\n' || *l->at == ';') {
        t->kind = RAW_LINE;
        l->line += *l->at == '\n';
    } else if (two_dots(l, l->at)) {
        t->kind = RAW_SYMBOL;
        t->length = 2;
    } else if (*l->at != '\0' && strchr("{}=&,", *l->at) != NULL) {
        t->kind = RAW_SYMBOL;
    } else if (in_word(*l->at)) {
        const char *end = l->at;
        while (end < l->end && in_word(*end) && !two_dots(l, end)) {
            end++;
        }
        t->kind = RAW_WORD;
        t->length = (size_t)(end - l->at);
    } else {
        return raw_lexer_fail(l, "the character 0x%02x has no meaning here",
                              (unsigned)(unsigned char)*l->at);
    }
    l->at += t->length;
    return 0;
}

int raw_lexer_open(struct raw_lexer *l, const char *name, const char *text, size_t length,
                   char error[RAW_ERROR])
{
    *l = (struct raw_lexer){
        .name = name, .at = text, .end = text + length, .line = 1, .error = error};
    error[0] = '\0';
    return raw_lexer_next(l);
}

bool raw_lexer_is(const struct raw_lexer *l, const char *text)
{
    return (l->token.kind == RAW_WORD || l->token.kind == RAW_SYMBOL) &&
           strlen(text) == l->token.length && memcmp(text, l->token.text, l->token.length) == 0;
}

int raw_lexer_take(struct raw_lexer *l, const char *text)
{
    if (!raw_lexer_is(l, text)) {
        return 0;
    }
    return raw_lexer_next(l) == 0 ? 1 : -1;
}

int raw_lexer_number(struct raw_lexer *l, const char *what, uint32_t most, uint32_t *value)
{
    char text[24], *end;
    const struct raw_token *t = &l->token;
    if (t->kind != RAW_WORD || t->length >= sizeof(text) || !isdigit((unsigned char)t->text[0])) {
        return raw_lexer_expected(l, what);
    }
    memcpy(text, t->text, t->length);
    text[t->length] = '\0';
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    if (*end != '\0' || end == text) {
        return raw_lexer_expected(l, what);
    }
    if (v > most) {
        return raw_lexer_fail(l, "%s %s is above %u (0x%x)", what, text, most, most);
    }
    *value = (uint32_t)v;
    return raw_lexer_next(l);
}

int raw_lexer_name(struct raw_lexer *l, const char *what, char name[RAW_NAME])
{
    const struct raw_token *t = &l->token;
    if (t->kind != RAW_WORD) {
        return raw_lexer_expected(l, what);
    }
    if (t->length >= RAW_NAME) {
        return raw_lexer_fail(l, "%s has more than %d letters", what, RAW_NAME - 1);
    }
    memcpy(name, t->text, t->length);
    name[t->length] = '\0';
    return raw_lexer_next(l);
}
