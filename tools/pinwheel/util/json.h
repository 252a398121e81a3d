/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON writer: objects, arrays and values in the order of the calls, indented by two blanks. The
 * writer adds commas and escapes; the caller must nest objects and arrays correctly. Strings may
 * hold any bytes: bytes that are no UTF-8 become U+FFFD.
 */
#ifndef PINWHEEL_JSON_H
#define PINWHEEL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *to;
    int depth;
    /* the object or array has a value already, so a comma comes before the next one */
    bool follows;
};

/* `name` is the name of a member in an object; NULL in an array and for the outermost value. */
void json_open_object(struct json *j, const char *name);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *name);
void json_close_array(struct json *j);
void json_string(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, int64_t value);
void json_unsigned(struct json *j, const char *name, uint64_t value);
/* with 6 digits; null if it is not finite */
void json_real(struct json *j, const char *name, double value);
/* json_verbatim() writes text that is a number, of any length, as it is. */
void json_verbatim(struct json *j, const char *name, const char *number);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

/* json_text() writes a string, in quotes, wherever `to` is. */
void json_text(FILE *to, const char *text);

/* json_end() writes the final newline; it returns -1 if writing failed. */
int json_end(struct json *j);

#endif
