/* SPDX-License-Identifier: BSD-3-Clause */
/* The scanner of GOAL text; see scan.h. */
#include "scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* How many characters of a long line an error shows, and how many of them before the caret. */
enum { SHOWN = 100, SHOWN_BEFORE = 60 };

/* Writes the line of `where` and a caret below that place. The caret's line begins with the blanks
 * and tabs of the line above, so that it is right whatever the width of a tab. */
static void show_line(const struct goal_scan *s, const char *where, char *text, size_t size)
{
    const char *first = where, *last = where;
    while (first > s->begin && first[-1] != '\n' && where - first < SHOWN_BEFORE) {
        first--;
    }
    while (last < s->end && *last != '\n' && *last != '\r' && last - first < SHOWN) {
        last++;
    }
    char line[SHOWN + 1], caret[SHOWN_BEFORE + 2];
    size_t n = (size_t)(last - first), before = (size_t)(where - first);
    *text = '\0';
    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        line[i] = (first[i] >= ' ' && first[i] < 0x7f) || first[i] == '\t' ? first[i] : '?';
    }
    for (size_t i = 0; i < before; i++) {
        caret[i] = first[i] == '\t' ? '\t' : ' ';
    }
    line[n] = '\0';
    caret[before] = '\0';
    snprintf(text, size, "\n    %s\n    %s^", line, caret);
}

int goal_scan_error(const struct goal_scan *s, const char *where, const char *format, ...)
{
    const char *first = where;
    while (first > s->begin && first[-1] != '\n') {
        first--;
    }
    char message[1024], shown[2 * SHOWN + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    show_line(s, where, shown, sizeof(shown));
    snprintf(s->error->text, sizeof(s->error->text), "%.512s:%" PRIu64 ":%td: %s%s", s->name,
             s->line, where - first + 1, message, shown);
    return -1;
}

int goal_scan_expected(const struct goal_scan *s, const char *where, const char *what)
{
    if (where == s->end) {
        return goal_scan_error(s, where, "expected %s, found the end of the file", what);
    }
    if (*where == '\n' || *where == '\r') {
        return goal_scan_error(s, where, "expected %s, found the end of the line", what);
    }
    int length = 1;
    bool word = goal_is_letter(*where) || goal_is_digit(*where);
    while (
        word && length < s->end - where && length < 40 &&
        (goal_is_letter(where[length]) || goal_is_digit(where[length]) || where[length] == '_')) {
        length++;
    }
    if (!word && (*where < ' ' || *where > '~')) {
        return goal_scan_error(s, where, "expected %s, found byte 0x%02x", what, (uint8_t)*where);
    }
    return goal_scan_error(s, where, "expected %s, found \"%.*s\"", what, length, where);
}

int goal_scan_number(struct goal_scan *s, uint64_t max, const char *what, uint64_t *number)
{
    goal_scan_blanks(s);
    const char *first = s->at;
    uint64_t n = 0;
    bool over = false;
    while (s->at < s->end && goal_is_digit(*s->at)) {
        over |= __builtin_mul_overflow(n, 10u, &n);
        over |= __builtin_add_overflow(n, (uint64_t)(*s->at++ - '0'), &n);
    }
    if (s->at == first) {
        return goal_scan_expected(s, first, what);
    }
    if (over || n > max) {
        int length = s->at - first < 40 ? (int)(s->at - first) : 40;
        return goal_scan_error(s, first, "%.*s is too large for %s: at most %" PRIu64, length,
                               first, what, max);
    }
    *number = n;
    return 0;
}

int goal_scan_comment(struct goal_scan *s)
{
    const char *first = s->at;
    if (goal_scan_literal(s, "//", 2)) {
        const char *end = memchr(s->at, '\n', (size_t)(s->end - s->at));
        s->at = end != NULL ? end : s->end;
        return 0;
    }
    if (!goal_scan_literal(s, "/*", 2)) {
        return goal_scan_expected(s, first, "\"//\" or \"/*\"");
    }
    uint64_t line = s->line;
    for (; s->end - s->at >= 2; s->at++) {
        if (s->at[0] == '*' && s->at[1] == '/') {
            s->at += 2;
            return 0;
        }
        s->line += *s->at == '\n';
    }
    s->line = line;
    return goal_scan_error(s, first, "this comment never ends: expected \"*/\"");
}

int goal_scan_space(struct goal_scan *s)
{
    for (;;) {
        goal_scan_blanks(s);
        if (s->at < s->end && *s->at == '/') {
            if (goal_scan_comment(s) != 0) {
                return -1;
            }
        } else if (!goal_scan_line_end(s)) {
            return 0;
        }
    }
}
