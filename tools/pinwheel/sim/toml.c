/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict reader of flat TOML; see toml.h. */
#include "toml.h"

#include <stdbool.h>
#include <string.h>

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

/* Reads characters for which fits() is true; false: there are none, or too many. */
static bool take_word(const char **at, const char *end, bool (*fits)(char), char *to, size_t size)
{
    size_t n = 0;
    while (*at < end && fits(**at)) {
        if (n + 1 == size) {
            return false;
        }
        to[n++] = *(*at)++;
    }
    to[n] = '\0';
    return n != 0;
}

static bool is_number(char c)
{
    return is_bare(c) || c == '.' || c == '+';
}

/* Leaves out the underscores between digits. */
static const char *tidy_number(char *value)
{
    char *to = value;
    if (strspn(value, "0123456789._") != strlen(value) || value[0] == '_' || value[0] == '.') {
        return "a value is a number, or a string in quotation marks";
    }
    for (const char *from = value; *from != '\0'; from++) {
        if (*from == '_' && (from[1] < '0' || from[1] > '9')) {
            return "an underscore in a number stands between two digits";
        }
        if (*from != '_') {
            *to++ = *from;
        }
    }
    *to = '\0';
    return to[-1] == '.' ? "a digit must follow the point of a number" : NULL;
}

static const char *take_string(const char **at, const char *end, char *to)
{
    char quote = *(*at)++;
    size_t n = 0;
    while (*at < end && **at != quote) {
        if (**at == '\\' && quote == '"') {
            return "escapes are not read; no value here needs one";
        }
        if ((unsigned char)**at < ' ' || n + 1 == TOML_VALUE) {
            return "a string ends on its line, and has at most 127 characters";
        }
        to[n++] = *(*at)++;
    }
    to[n] = '\0';
    if (*at == end) {
        return "the string has no closing quotation mark";
    }
    (*at)++;
    return NULL;
}

/* Reads the line between `at` and `end`, which has a value. */
static const char *take_line(const char *at, const char *end, struct toml_line *line)
{
    if (*at == '[') {
        return "tables are not read: all keys stand at the top";
    }
    if (!take_word(&at, end, is_bare, line->key, TOML_KEY)) {
        return "a line is KEY = VALUE, and a key has letters, digits, _ and -, 63 at most";
    }
    at = skip_blanks(at, end);
    if (at == end || *at != '=') {
        return "'=' is missing behind the key";
    }
    at = skip_blanks(at + 1, end);
    if (at == end || *at == '#') {
        return "the value is missing";
    }
    const char *why = *at == '"' || *at == '\'' ? take_string(&at, end, line->value)
                      : take_word(&at, end, is_number, line->value, TOML_VALUE)
                          ? tidy_number(line->value)
                          : "a value is a number, or a string in quotation marks";
    at = skip_blanks(at, end);
    return why != NULL ? why : at < end && *at != '#' ? "something stands behind the value" : NULL;
}

int toml_next(const char **at, const char *end, struct toml_line *line, const char **why)
{
    while (*at < end) {
        const char *start = *at, *stop = memchr(start, '\n', (size_t)(end - start));
        stop = stop != NULL ? stop : end;
        *at = stop < end ? stop + 1 : end;
        line->number++;
        if (stop > start && stop[-1] == '\r') {
            stop--;
        }
        start = skip_blanks(start, stop);
        if (start == stop || *start == '#') {
            continue;
        }
        *why = take_line(start, stop, line);
        return *why == NULL ? 1 : -1;
    }
    return 0;
}
