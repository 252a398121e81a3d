/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON writer: objects, arrays and values in the order of the calls, indented
 * by two blanks. Commas and escapes are the writer's business; nesting is the
 * caller's. Strings may hold any bytes: what is no UTF-8 becomes U+FFFD.
 */
#ifndef PINWHEEL_JSON_H
#define PINWHEEL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *to;
    int depth;
    bool follows; /* a value stands before the next one in the same object or array */
};

/* `name` is the member's name inside an object; NULL inside an array and for
 * the outermost value. */
void json_open_object(struct json *j, const char *name);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *name);
void json_close_array(struct json *j);
void json_string(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, int64_t value);
void json_unsigned(struct json *j, const char *name, uint64_t value);
void json_real(struct json *j, const char *name, double value); /* 6 digits; null if not finite */
/* json_verbatim() writes text that is a number, however long. */
void json_verbatim(struct json *j, const char *name, const char *number);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

/* json_end() ends the text with a newline; it returns -1 if writing failed. */
int json_end(struct json *j);

#endif
