/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that handlers print; see output.h. */
#include "hpu/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

/* One conversion of a format: its text, with numbers in place of `*`. */
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

/* Reads the format of a call, one character after the other. */
struct reader {
    struct hpu_text *from;
    uint64_t format; /* address of the next character */
};

static int next(struct reader *r, char *c)
{
    return r->from->byte(r->from, r->format++, c);
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

/* Reads a number or `*`. It may not exceed DIGITS_MOST, so that no conversion gets long. */
static int read_number(struct reader *r, char *c, struct spec *s, int *number)
{
    char digits[16];
    *number = 0;
    if (*c == '*') {
        uint64_t value;
        if (r->from->argument(r->from, HPU_TEXT_INT, &value) != 0 || next(r, c) != 0) {
            return -EFAULT;
        }
        *number = (int)value;
    } else {
        while (*c >= '0' && *c <= '9') {
            *number = *number < DIGITS_MOST ? *number * 10 + (*c - '0') : *number;
            if (next(r, c) != 0) {
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

static int read_size(struct reader *r, char *c, struct spec *s)
{
    while (*c != '\0' && strchr("hlzjt", *c) != NULL) {
        bool twice = (*c == 'h' || *c == 'l') && s->size == *c;
        if ((s->size != 0 && !twice) || !keep(s, *c)) {
            return -EINVAL;
        }
        s->size = twice ? (*c == 'h' ? 'H' : 'L') : *c;
        if (next(r, c) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

/* Reads a conversion, behind its `%`. */
static int read_spec(struct reader *r, struct spec *s)
{
    char c;
    int width, rc = next(r, &c);
    *s = (struct spec){.precision = -1};
    keep(s, '%');
    while (rc == 0 && c != '\0' && strchr("-+ #0", c) != NULL) {
        rc = keep(s, c) ? next(r, &c) : -EINVAL;
    }
    if (rc == 0 && (c == '*' || (c >= '1' && c <= '9'))) {
        rc = read_number(r, &c, s, &width);
    }
    if (rc == 0 && c == '.') {
        rc = keep(s, c) ? next(r, &c) : -EINVAL;
        rc = rc == 0 ? read_number(r, &c, s, &s->precision) : rc;
    }
    rc = rc == 0 ? read_size(r, &c, s) : rc;
    s->conversion = c;
    return rc != 0 ? rc : keep(s, c) ? 0 : -EINVAL;
}

/* Prints a string, up to its end, the precision, or the end of the line. */
static int print_string(struct line *l, struct reader *r, const struct spec *s)
{
    char copy[HPU_LINE_MOST + 1], text[HPU_LINE_MOST + DIGITS_MOST + 1];
    size_t most = s->precision >= 0 ? (size_t)s->precision : HPU_LINE_MOST, length = 0;
    uint64_t at;
    if (s->size != 0) {
        return -EINVAL;
    }
    if (r->from->argument(r->from, HPU_TEXT_POINTER, &at) != 0) {
        return -EFAULT;
    }
    while (length < most) {
        if (r->from->byte(r->from, at + length, &copy[length]) != 0) {
            return -EFAULT;
        }
        if (copy[length] == '\0') {
            break;
        }
        length++;
    }
    copy[length] = '\0';
    append(l, text, (size_t)snprintf(text, sizeof(text), s->text, copy));
    return 0;
}

/* Returns the type that the handler's compiler gives the argument of a conversion. */
static enum hpu_text_kind kind_of(const struct spec *s)
{
    bool sign = s->conversion == 'd' || s->conversion == 'i';
    switch (s->size) {
    case 'L':
    case 'j':
        return HPU_TEXT_LONG_LONG;
    case 'l':
    case 'z':
    case 't':
        return sign ? HPU_TEXT_LONG : HPU_TEXT_UNSIGNED_LONG;
    default:
        return HPU_TEXT_INT;
    }
}

static int print_integer(struct line *l, struct reader *r, const struct spec *s)
{
    char text[128];
    uint64_t value;
    enum hpu_text_kind kind = kind_of(s);
    if (r->from->argument(r->from, kind, &value) != 0) {
        return -EFAULT;
    }
    int n = kind == HPU_TEXT_INT ? snprintf(text, sizeof(text), s->text, (int)value)
                                 : snprintf(text, sizeof(text), s->text, (long)value);
    append(l, text, (size_t)n);
    return 0;
}

static int print_other(struct line *l, struct reader *r, const struct spec *s)
{
    char text[512]; /* the largest number in %f has 309 digits before the point */
    uint64_t value;
    double real;
    int n;
    if (s->size != 0 && s->size != 'l') {
        return -EINVAL;
    }
    if (r->from->argument(r->from,
                          s->conversion == 'p'   ? HPU_TEXT_POINTER
                          : s->conversion == 'c' ? HPU_TEXT_INT
                                                 : HPU_TEXT_DOUBLE,
                          &value) != 0) {
        return -EFAULT;
    }
    memcpy(&real, &value, sizeof(real));
    if (s->conversion == 'p') {
        n = snprintf(text, sizeof(text), s->text, (void *)(uintptr_t)value);
    } else if (s->conversion == 'c') {
        n = snprintf(text, sizeof(text), s->text, (int)value);
    } else {
        n = snprintf(text, sizeof(text), s->text, real);
    }
    append(l, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
    return 0;
}

static int print(struct line *l, struct reader *r, const struct spec *s)
{
    switch (s->conversion) {
    case '%':
        append(l, "%", 1);
        return 0;
    case 's':
        return print_string(l, r, s);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        return print_integer(l, r, s);
    case 'c':
    case 'p':
    case 'f':
    case 'e':
    case 'g':
        return print_other(l, r, s);
    default:
        return -EINVAL;
    }
}

int hpu_format(char *text, size_t size, size_t *length, struct hpu_text *from, uint64_t format)
{
    struct line l = {.text = text, .size = size};
    struct reader r = {from, format};
    int rc;
    for (char c; (rc = next(&r, &c)) == 0 && c != '\0';) {
        struct spec s;
        if (c != '%') {
            append(&l, &c, 1);
            continue;
        }
        rc = read_spec(&r, &s);
        rc = rc == 0 ? print(&l, &r, &s) : rc;
        if (rc != 0) {
            break;
        }
    }
    *length = l.length;
    return rc;
}
