/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON writer; see json.h. */
#include "json.h"

#include "utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

void json_text(FILE *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', to);
    while (*s != '\0') {
        size_t length = utf8_length(s);
        if (length == 0) {
            fputs("\\ufffd", to);
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(to, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            fprintf(to, "\\u%04x", *s);
        } else {
            fwrite(s, 1, length, to);
        }
        s += length;
    }
    fputc('"', to);
}

static void new_line(struct json *j)
{
    fputc('\n', j->to);
    for (int i = 0; i < j->depth; i++) {
        fputs("  ", j->to);
    }
}

static void begin_value(struct json *j, const char *name)
{
    if (j->follows) {
        fputc(',', j->to);
    }
    if (j->depth > 0) {
        new_line(j);
    }
    if (name != NULL) {
        json_text(j->to, name);
        fputs(": ", j->to);
    }
    j->follows = true;
}

static void open_level(struct json *j, const char *name, char bracket)
{
    begin_value(j, name);
    fputc(bracket, j->to);
    j->depth++;
    j->follows = false;
}

static void close_level(struct json *j, char bracket)
{
    j->depth--;
    if (j->follows) {
        new_line(j);
    }
    fputc(bracket, j->to);
    j->follows = true;
}

void json_open_object(struct json *j, const char *name)
{
    open_level(j, name, '{');
}

void json_close_object(struct json *j)
{
    close_level(j, '}');
}

void json_open_array(struct json *j, const char *name)
{
    open_level(j, name, '[');
}

void json_close_array(struct json *j)
{
    close_level(j, ']');
}

void json_string(struct json *j, const char *name, const char *value)
{
    begin_value(j, name);
    json_text(j->to, value);
}

void json_number(struct json *j, const char *name, int64_t value)
{
    begin_value(j, name);
    fprintf(j->to, "%" PRId64, value);
}

void json_unsigned(struct json *j, const char *name, uint64_t value)
{
    begin_value(j, name);
    fprintf(j->to, "%" PRIu64, value);
}

void json_real(struct json *j, const char *name, double value)
{
    if (!isfinite(value)) {
        json_null(j, name);
        return;
    }
    begin_value(j, name);
    fprintf(j->to, "%.6g", value);
}

void json_verbatim(struct json *j, const char *name, const char *number)
{
    begin_value(j, name);
    fputs(number, j->to);
}

void json_bool(struct json *j, const char *name, bool value)
{
    begin_value(j, name);
    fputs(value ? "true" : "false", j->to);
}

void json_null(struct json *j, const char *name)
{
    begin_value(j, name);
    fputs("null", j->to);
}

int json_end(struct json *j)
{
    fputc('\n', j->to);
    return fflush(j->to) != 0 || ferror(j->to) ? -1 : 0;
}
