/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between two runs; see compare.h. A file is read into figures, each with a path:
 *
 *      {"time_ps": 7, "sum": {"handlers": [{"name": "add", "calls": 2}]}}
 *          time_ps = 7, sum.handlers[add].calls = 2
 *
 * Things in arrays are known by their name, or by their rank and process; others by their number.
 */
#include "compare.h"

#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 240, DEPTH = 16, TEXT = 96, MOST = 1 << 28 };
#define RANKS "by_rank["

struct figure {
    char path[PATH];
    double value;
};

struct run {
    const char *name;
    struct figure *figure;
    size_t count, capacity;
};

struct reader {
    struct run *to;
    const char *begin, *at, *wrong; /* `wrong`: what was expected there */
};

/* ---- reading ---- */

static void blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool fail(struct reader *r, const char *wanted)
{
    r->wrong = r->wrong == NULL ? wanted : r->wrong;
    return false;
}

static bool expect(struct reader *r, char c, const char *what)
{
    blanks(r);
    if (*r->at != c) {
        return fail(r, what);
    }
    r->at++;
    return true;
}

static bool follows(struct reader *r, char c)
{
    blanks(r);
    bool is = *r->at == c;
    r->at += is;
    return is;
}

/* Reads a string; of escapes only those of a quote and of themselves are resolved: strings only
 * tell names apart. */
static bool read_text(struct reader *r, char text[TEXT])
{
    size_t n = 0;
    if (!expect(r, '"', "a string")) {
        return false;
    }
    for (; *r->at != '"'; r->at++) {
        if (*r->at == '\0') {
            return fail(r, "the end of a string");
        }
        r->at += *r->at == '\\' && (r->at[1] == '"' || r->at[1] == '\\');
        text[n] = *r->at;
        n += n < TEXT - 1;
    }
    text[n] = '\0';
    r->at++;
    return true;
}

static bool add(struct reader *r, const char *path, double value)
{
    struct run *to = r->to;
    if (!ARRAY_ROOM(to->figure, to->count, to->capacity, 256)) {
        return fail(r, "memory for more figures");
    }
    struct figure *f = &to->figure[to->count++];
    snprintf(f->path, sizeof(f->path), "%s", path);
    f->value = value;
    return true;
}

/* What a thing in an array is known by: its first members. */
static void name_of(const struct reader *r, size_t number, char text[TEXT])
{
    struct reader ahead = *r;
    char key[TEXT], value[TEXT] = "";
    snprintf(text, TEXT, "%zu", number);
    if (!follows(&ahead, '{') || !read_text(&ahead, key) || !follows(&ahead, ':')) {
        return;
    }
    blanks(&ahead);
    if (strcmp(key, "name") == 0 && read_text(&ahead, value)) {
        snprintf(text, TEXT, "%s", value);
    } else if (strcmp(key, "rank") == 0) {
        char *end;
        long rank = strtol(ahead.at, &end, 10), process = 0;
        ahead.at = end;
        if (follows(&ahead, ',') && read_text(&ahead, key) && strcmp(key, "process") == 0 &&
            follows(&ahead, ':')) {
            process = strtol(ahead.at, NULL, 10);
        }
        snprintf(text, TEXT, process != 0 ? "%ld.%ld" : "%ld", rank, process);
    }
}

static bool read_value(struct reader *r, const char *path, int depth);

/* Reads what is between brackets. */
static bool read_members(struct reader *r, const char *path, int depth, bool object)
{
    char below[PATH], name[TEXT];
    const char *dot = path[0] != '\0' ? "." : "";
    char end = object ? '}' : ']';
    for (size_t i = 0; !follows(r, end); i++) {
        if ((i != 0 && !expect(r, ',', "a comma")) ||
            (object && (!read_text(r, name) || !expect(r, ':', "a colon")))) {
            return false;
        }
        if (!object) {
            name_of(r, i, name);
        }
        int n = object ? snprintf(below, sizeof(below), "%s%s%s", path, dot, name)
                       : snprintf(below, sizeof(below), "%s[%s]", path, name);
        if (n >= PATH || !read_value(r, below, depth + 1)) {
            return fail(r, "shorter names");
        }
    }
    return true;
}

static bool read_value(struct reader *r, const char *path, int depth)
{
    char text[TEXT], *end;
    blanks(r);
    if (depth > DEPTH) {
        return fail(r, "less deep nesting");
    }
    if (*r->at == '"') {
        return read_text(r, text);
    }
    if (*r->at == '{' || *r->at == '[') {
        bool object = *r->at++ == '{';
        return read_members(r, path, depth, object);
    }
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        if (strncmp(r->at, words[i], strlen(words[i])) == 0) {
            r->at += strlen(words[i]);
            return i == 2 || add(r, path, i == 0);
        }
    }
    double value = strtod(r->at, &end);
    if (end == r->at) {
        return fail(r, "a value");
    }
    r->at = end;
    return add(r, path, value);
}

/* Reads the statistics in a text, which may have output of a program before them. */
static bool read_run(struct run *run, const char *text)
{
    const char *begin = strncmp(text, "{\n", 2) == 0 ? text : strstr(text, "\n{\n");
    struct reader r = {.to = run, .begin = text, .at = begin != NULL ? begin : text};
    bool ok = read_value(&r, "", 0);
    blanks(&r);
    if (ok && *r.at != '\0') {
        ok = fail(&r, "the end");
    }
    bool is = false;
    for (size_t i = 0; i < run->count; i++) {
        is |= strcmp(run->figure[i].path, "sum.egress_ps") == 0;
    }
    if (!ok || !is) {
        fprintf(stderr,
                "pinwheel sim: --compare %s: no output of --stats=json: byte %td is not %s; write "
                "one with pinwheel sim --stats=FILE.json\n",
                run->name, r.at - r.begin, r.wrong != NULL ? r.wrong : "of such");
    }
    return ok && is;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0, capacity = 0, n;
    while (f != NULL && size < MOST && ARRAY_HOLDS(text, size + 65537, capacity, 65537) &&
           (n = fread(text + size, 1, 65536, f)) != 0) {
        size += n;
    }
    if (f == NULL || ferror(f) || text == NULL) {
        fprintf(stderr, "pinwheel sim: --compare %s: %s\n", path, strerror(errno));
        free(text);
        text = NULL;
    } else {
        text[size] = '\0';
    }
    if (f != NULL) {
        fclose(f);
    }
    return text;
}

/* ---- what differs ---- */

/* Two figures of one path; NULL: a run has none. */
struct pair {
    const struct figure *a, *b;
};

static int by_path(const void *a, const void *b)
{
    const struct figure *const *x = a, *const *y = b;
    return strcmp((*x)->path, (*y)->path);
}

static const struct figure **sorted(const struct run *r)
{
    const struct figure **all = malloc((r->count + 1) * sizeof(const struct figure *));
    for (size_t i = 0; all != NULL && i < r->count; i++) {
        all[i] = &r->figure[i];
    }
    if (all != NULL) {
        qsort(all, r->count, sizeof(const struct figure *), by_path);
    }
    return all;
}

static const struct figure *find(const struct figure **in, size_t count, const struct figure *f)
{
    const struct figure **found = bsearch(&f, in, count, sizeof(f), by_path);
    return found != NULL ? *found : NULL;
}

/* The figures that differ, in the order of the first run, and then those that only the other one
 * has; the count, or -1: no memory. */
static long differing(const struct run *a, const struct run *b, struct pair *to)
{
    const struct figure **in_a = sorted(a), **in_b = sorted(b);
    long count = in_a != NULL && in_b != NULL ? 0 : -1;
    for (size_t i = 0; count >= 0 && i < a->count; i++) {
        struct pair p = {&a->figure[i], find(in_b, b->count, &a->figure[i])};
        if (p.b == NULL || p.a->value != p.b->value) {
            to[count++] = p;
        }
    }
    for (size_t i = 0; count >= 0 && i < b->count; i++) {
        if (find(in_a, a->count, &b->figure[i]) == NULL) {
            to[count++] = (struct pair){NULL, &b->figure[i]};
        }
    }
    free(in_a);
    free(in_b);
    return count;
}

/* A figure as people read it: times in us. */
static void value_text(const struct figure *f, char *text, size_t size)
{
    size_t n = f != NULL ? strlen(f->path) : 0;
    if (f == NULL) {
        snprintf(text, size, "none");
    } else if (n > 3 && strcmp(f->path + n - 3, "_ps") == 0) {
        snprintf(text, size, "%.5f us", f->value / 1e6);
    } else {
        snprintf(text, size, "%.10g", f->value);
    }
}

static void print_pairs(const struct run *a, const struct run *b, const struct pair *p, long count)
{
    long ranks = 0;
    printf("%-44s %20.20s %20.20s %10s\n", count != 0 ? "what differs" : "nothing differs", a->name,
           b->name, count != 0 ? "change" : "");
    for (long i = 0; i < count; i++) {
        const struct figure *any = p[i].a != NULL ? p[i].a : p[i].b;
        char before[40], after[40], change[24] = "";
        if (strncmp(any->path, RANKS, strlen(RANKS)) == 0) {
            ranks++;
            continue;
        }
        value_text(p[i].a, before, sizeof(before));
        value_text(p[i].b, after, sizeof(after));
        if (p[i].a != NULL && p[i].b != NULL && p[i].a->value != 0) {
            snprintf(change, sizeof(change), "%+.2f %%",
                     100 * (p[i].b->value - p[i].a->value) / p[i].a->value);
        }
        printf("%-44s %20s %20s %10s\n", any->path, before, after, change);
    }
    if (ranks != 0) {
        printf("and %ld figures of single ranks, which --json has\n", ranks);
    }
}

static int print_json(const struct pair *p, long count)
{
    struct json j = {.to = stdout};
    json_open_array(&j, NULL);
    for (long i = 0; i < count; i++) {
        const struct figure *const sides[] = {p[i].a, p[i].b};
        json_open_object(&j, NULL);
        json_string(&j, "figure", (p[i].a != NULL ? p[i].a : p[i].b)->path);
        for (int k = 0; k < 2; k++) {
            char number[40];
            snprintf(number, sizeof(number), "%.17g", sides[k] != NULL ? sides[k]->value : 0);
            if (sides[k] != NULL) {
                json_verbatim(&j, k == 0 ? "a" : "b", number);
            } else {
                json_null(&j, k == 0 ? "a" : "b");
            }
        }
        json_close_object(&j);
    }
    json_close_array(&j);
    return json_end(&j) != 0;
}

static int compare(const struct run *a, const struct run *b, bool json)
{
    struct pair *pairs = malloc((a->count + b->count + 1) * sizeof(*pairs));
    long count = pairs != NULL ? differing(a, b, pairs) : -1;
    int status = 1;
    if (count < 0) {
        fprintf(stderr, "pinwheel sim: no memory for --compare\n");
    } else if (json) {
        status = print_json(pairs, count);
    } else {
        print_pairs(a, b, pairs, count);
        status = 0;
    }
    free(pairs);
    return status;
}

static int compare_texts(const char *a, const char *of_a, const char *b, const char *of_b,
                         bool json)
{
    struct run first = {.name = a}, second = {.name = b};
    bool ok = of_a != NULL && of_b != NULL && read_run(&first, of_a) && read_run(&second, of_b);
    int status = ok ? compare(&first, &second, json) : 1;
    free(first.figure);
    free(second.figure);
    return status;
}

int compare_files(const char *a, const char *b, bool json)
{
    char *of_a = read_file(a), *of_b = of_a != NULL ? read_file(b) : NULL;
    int status = compare_texts(a, of_a, b, of_b, json);
    free(of_a);
    free(of_b);
    return status;
}

static char *text_of(const struct sim_stats *s)
{
    char *text = NULL;
    size_t size;
    struct json j = {.to = open_memstream(&text, &size)};
    if (j.to == NULL) {
        return NULL;
    }
    json_open_object(&j, NULL);
    stats_json(s, &j);
    json_close_object(&j);
    bool failed = json_end(&j) != 0;
    return fclose(j.to) == 0 && !failed ? text : NULL;
}

int compare_stats(const char *a, const struct sim_stats *of_a, const char *b,
                  const struct sim_stats *of_b, bool json)
{
    char *first = text_of(of_a), *second = text_of(of_b);
    int status = compare_texts(a, first, b, second, json);
    free(first);
    free(second);
    return status;
}
