/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers print; see output.h. */
#include "hpu/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/nic_copy.h"

/* ---- The ring ---- */

void hpu_output_add(struct hpu_output *o, const char *text, size_t length)
{
    uint64_t at = atomic_load_explicit(&o->written, memory_order_relaxed);
    atomic_store_explicit(&o->begun, at + length, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < length; i++) {
        __atomic_store_n(&o->text[(at + i) % HPU_OUTPUT_SIZE], text[i], __ATOMIC_RELAXED);
    }
    atomic_store_explicit(&o->written, at + length, memory_order_release);
}

size_t hpu_output_read(const struct hpu_output *o, char *text, size_t size, uint64_t *written)
{
    uint64_t end = atomic_load_explicit(&o->written, memory_order_acquire);
    size_t most = size < HPU_OUTPUT_SIZE ? size : HPU_OUTPUT_SIZE;
    uint64_t first = end < most ? 0 : end - most;
    for (uint64_t i = first; i < end; i++) {
        text[i - first] = __atomic_load_n(&o->text[i % HPU_OUTPUT_SIZE], __ATOMIC_RELAXED);
    }
    atomic_thread_fence(memory_order_acquire);
    uint64_t begun = atomic_load_explicit(&o->begun, memory_order_relaxed);
    uint64_t sure = begun < HPU_OUTPUT_SIZE ? 0 : begun - HPU_OUTPUT_SIZE;
    uint64_t lost = sure <= first ? 0 : sure < end ? sure - first : end - first;
    memmove(text, text + lost, end - first - lost);
    *written = end;
    return end - first - lost;
}

/* ---- The line ---- */

enum { SPEC_MOST = 24, DIGITS_MOST = 64 };

/* One conversion, as it stands in the format, with what `*` stood for put in. */
struct spec {
    char text[SPEC_MOST];
    size_t length;
    char size; /* h, H for hh, l, L for ll, z, j, t, or 0 */
    char conversion;
    int precision; /* of %s; negative: none */
};

struct line {
    char *text;
    size_t size, length;
};

static void append(struct line *l, const char *text, size_t n)
{
    size_t room = l->size - l->length;
    n = n < room ? n : room;
    memcpy(l->text + l->length, text, n);
    l->length += n;
}

static int next(const char **format, char *c)
{
    int rc = nic_copy(c, *format, 1);
    *format = (const char *)((uintptr_t)*format + 1);
    return rc;
}

static bool keep(struct spec *s, char c)
{
    if (s->length + 1 >= SPEC_MOST) {
        return false;
    }
    s->text[s->length++] = c;
    s->text[s->length] = '\0';
    return true;
}

/* A number or `*`: no more than DIGITS_MOST, so that no conversion is long. */
static int read_number(const char **format, char *c, struct spec *s, va_list *args, int *number)
{
    char digits[16];
    *number = 0;
    if (*c == '*') {
        *number = va_arg(*args, int);
        if (next(format, c) != 0) {
            return -EFAULT;
        }
    } else {
        while (*c >= '0' && *c <= '9') {
            *number = *number < DIGITS_MOST ? *number * 10 + (*c - '0') : *number;
            if (next(format, c) != 0) {
                return -EFAULT;
            }
        }
    }
    if (*number > DIGITS_MOST || *number < -DIGITS_MOST) {
        return -EINVAL;
    }
    snprintf(digits, sizeof(digits), "%d", *number);
    for (const char *d = digits; *d != '\0'; d++) {
        if (!keep(s, *d)) {
            return -EINVAL;
        }
    }
    return 0;
}

static int read_size(const char **format, char *c, struct spec *s)
{
    while (*c != '\0' && strchr("hlzjt", *c) != NULL) {
        bool twice = (*c == 'h' || *c == 'l') && s->size == *c;
        if ((s->size != 0 && !twice) || !keep(s, *c)) {
            return -EINVAL;
        }
        s->size = twice ? (*c == 'h' ? 'H' : 'L') : *c;
        if (next(format, c) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

/* Reads what follows a `%`. */
static int read_spec(const char **format, struct spec *s, va_list *args)
{
    char c;
    int width, rc = next(format, &c);
    *s = (struct spec){.precision = -1};
    keep(s, '%');
    while (rc == 0 && c != '\0' && strchr("-+ #0", c) != NULL) {
        rc = keep(s, c) ? next(format, &c) : -EINVAL;
    }
    if (rc == 0 && (c == '*' || (c >= '1' && c <= '9'))) {
        rc = read_number(format, &c, s, args, &width);
    }
    if (rc == 0 && c == '.') {
        rc = keep(s, c) ? next(format, &c) : -EINVAL;
        rc = rc == 0 ? read_number(format, &c, s, args, &s->precision) : rc;
    }
    rc = rc == 0 ? read_size(format, &c, s) : rc;
    s->conversion = c;
    return rc != 0 ? rc : keep(s, c) ? 0 : -EINVAL;
}

/* The length of a handler's string up to `most`; -EFAULT if it leaves its memory before. */
static int string_length(const char *string, size_t most, size_t *length)
{
    char c;
    for (*length = 0; *length < most; (*length)++) {
        if (next(&string, &c) != 0) {
            return -EFAULT;
        }
        if (c == '\0') {
            break;
        }
    }
    return 0;
}

static int print_string(struct line *l, struct spec *s, const char *string)
{
    char copy[HPU_LINE_MOST + 1], text[HPU_LINE_MOST + DIGITS_MOST + 1];
    size_t most = s->precision >= 0 ? (size_t)s->precision : HPU_LINE_MOST, length;
    int rc = s->size != 0 ? -EINVAL : string_length(string, most, &length);
    if (rc != 0 || nic_copy(copy, string, length) != 0) {
        return rc != 0 ? rc : -EFAULT;
    }
    copy[length] = '\0';
    append(l, text, (size_t)snprintf(text, sizeof(text), s->text, copy));
    return 0;
}

static size_t print_signed(char *text, size_t size, const struct spec *s, va_list *args)
{
    switch (s->size) {
    case 'l':
    case 'L':
    case 'j':
    case 'z':
    case 't': /* all of 64 bits here */
        return (size_t)snprintf(text, size, s->text, va_arg(*args, long));
    default:
        return (size_t)snprintf(text, size, s->text, va_arg(*args, int));
    }
}

static int print(struct line *l, struct spec *s, va_list *args)
{
    char text[512]; /* %f of the largest number has 309 digits and its precision */
    size_t length;
    switch (s->conversion) {
    case '%':
        append(l, "%", 1);
        return 0;
    case 's':
        return print_string(l, s, va_arg(*args, const char *));
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        length = print_signed(text, sizeof(text), s, args);
        break;
    case 'c':
    case 'p':
    case 'f':
    case 'e':
    case 'g':
        if (s->size != 0 && s->size != 'l') {
            return -EINVAL;
        }
        length = s->conversion == 'p'
                     ? (size_t)snprintf(text, sizeof(text), s->text, va_arg(*args, void *))
                 : s->conversion == 'c'
                     ? (size_t)snprintf(text, sizeof(text), s->text, va_arg(*args, int))
                     : (size_t)snprintf(text, sizeof(text), s->text, va_arg(*args, double));
        break;
    default:
        return -EINVAL;
    }
    append(l, text, length < sizeof(text) ? length : sizeof(text) - 1);
    return 0;
}

int hpu_format(char *text, size_t size, size_t *length, const char *format, va_list args)
{
    struct line l = {.text = text, .size = size};
    va_list rest;
    va_copy(rest, args);
    int rc;
    for (char c; (rc = next(&format, &c)) == 0 && c != '\0';) {
        struct spec s;
        if (c != '%') {
            append(&l, &c, 1);
            continue;
        }
        rc = read_spec(&format, &s, &rest);
        rc = rc == 0 ? print(&l, &s, &rest) : rc;
        if (rc != 0) {
            break;
        }
    }
    va_end(rest);
    *length = l.length;
    return rc;
}
