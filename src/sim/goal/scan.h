/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scanner of GOAL text: a position in the text, and functions that take what comes next. It
 * makes no list of tokens: the grammar wants certain words at certain places and allows blanks
 * nearly everywhere, so the compiler asks for each word where it may stand. The text is mapped and
 * has no terminator: every function compares its position with `end`.
 */
#ifndef SIM_GOAL_SCAN_H
#define SIM_GOAL_SCAN_H

#include "goal.h"

#include <string.h>

struct goal_scan {
    const char *at;
    const char *begin;
    const char *end;
    uint64_t line;
    const char *name; /* of the file */
    struct goal_error *error;
};

/* A word of letters, digits and "_". */
struct goal_word {
    const char *at;
    uint32_t length;
    uint32_t hash;
};

/* goal_scan_error() sets an error about the place `where`, with the line and a caret;
 * goal_scan_expected() sets one that names what was expected and what was found. Both return -1. */
int goal_scan_error(const struct goal_scan *s, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int goal_scan_expected(const struct goal_scan *s, const char *where, const char *what);

/* goal_scan_number() reads digits as a number of at most `max`; `what` names it in
 * errors. Returns 0 or -1. */
int goal_scan_number(struct goal_scan *s, uint64_t max, const char *what, uint64_t *number);

/* goal_scan_comment() skips the comment whose "/" comes next. goal_scan_space() skips blanks, ends
 * of lines and comments. Both return 0, or -1 with an error. */
int goal_scan_comment(struct goal_scan *s);
int goal_scan_space(struct goal_scan *s);

static inline bool goal_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool goal_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline void goal_scan_blanks(struct goal_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) {
        s->at++;
    }
}

/* Takes `word`, of `length` bytes, if it comes next; else takes nothing and returns false. */
static inline bool goal_scan_literal(struct goal_scan *s, const char *word, size_t length)
{
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) {
        return false;
    }
    s->at += length;
    return true;
}

/* Takes the blanks, and then `word` if it comes next. Always inlined, so that the compiler knows
 * the length of a literal. */
static inline __attribute__((always_inline)) bool goal_scan_take(struct goal_scan *s,
                                                                 const char *word)
{
    goal_scan_blanks(s);
    return goal_scan_literal(s, word, strlen(word));
}

/* Takes `word` like goal_scan_take(), but not if a letter follows at once: then it is another word.
 * A number may follow at once. */
static inline __attribute__((always_inline)) bool goal_scan_keyword(struct goal_scan *s,
                                                                    const char *word)
{
    goal_scan_blanks(s);
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) > length && goal_is_letter(s->at[length])) {
        return false;
    }
    return goal_scan_literal(s, word, length);
}

/* Takes the blanks, and then the end of the line if it comes next. */
static inline bool goal_scan_line_end(struct goal_scan *s)
{
    goal_scan_blanks(s);
    if (!goal_scan_literal(s, "\n", 1) && !goal_scan_literal(s, "\r\n", 2)) {
        return false;
    }
    s->line++;
    return true;
}

/* Takes a word, as long as possible, and computes its hash (FNV-1a: Fowler, Noll, Vo,
 * draft-eastlake-fnv). The length is 0 if no letter comes next. */
static inline struct goal_word goal_scan_word(struct goal_scan *s)
{
    const char *p = s->at;
    uint64_t h = 0xcbf29ce484222325u;
    if (p < s->end && goal_is_letter(*p)) {
        do {
            h = (h ^ (uint8_t)*p++) * 0x100000001b3u;
        } while (p < s->end && (goal_is_letter(*p) || goal_is_digit(*p) || *p == '_'));
    }
    struct goal_word w = {s->at, (uint32_t)(p - s->at), (uint32_t)(h ^ (h >> 32))};
    s->at = p;
    return w;
}

static inline bool goal_word_is(const struct goal_word *w, const char *text)
{
    return strlen(text) == w->length && memcmp(w->at, text, w->length) == 0;
}

#endif
