/* SPDX-License-Identifier: BSD-3-Clause */
/* Noise; see noise.h. */
#include "noise.h"

#include "base/array.h"

#include "sim/util/charges.h"
#include "sim/util/parameters.h"
#include "sim/util/random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Detours of a rank ---- */

static uint64_t key_of(const struct sim_noise *n, uint32_t rank)
{
    return goal_random(n->seed, rank);
}

/* Returns a random number between 0 and 1, both excluded. */
static double draw(uint64_t key, uint64_t count)
{
    return ((double)(goal_random(key, count) >> 12) + 0.5) / 4503599627370496.0;
}

static uint64_t draw_length(const struct sim_noise *n, uint64_t key, uint64_t count)
{
    double u = draw(key, count), mean = (double)n->low, length;
    switch (n->kind) {
    case NOISE_UNIFORM:
        return n->low + goal_scale(goal_random(key, count), n->high - n->low);
    case NOISE_EXPONENTIAL:
        length = -mean * log(u);
        break;
    default: /* Box and Muller, "A note on the generation of random normal deviates", 1958 */
        length = mean + (double)n->high * sqrt(-2 * log(u)) *
                            cos(6.283185307179586 * draw(key, count + 1));
    }
    return length > 0 ? (uint64_t)length : 0;
}

/* Returns the i-th detour of a rank, counted from time 0 of the rank's own time line. */
static struct sim_detour detour_at(const struct sim_noise *n, uint64_t key, uint64_t i)
{
    struct sim_detour d;
    if (n->kind == NOISE_TRACE) {
        d = n->detours[i % n->count];
        d.begin += i / n->count * n->period;
        return d;
    }
    d.begin = i * n->period + goal_scale(goal_random(key, 3 * i), n->period - 1);
    d.length = draw_length(n, key, 3 * i + 1);
    return d;
}

/* Returns the number of the first detour that begins at `time` or later. */
static uint64_t first_from(const struct sim_noise *n, uint64_t key, uint64_t time)
{
    uint64_t i = time / n->period;
    if (n->kind == NOISE_TRACE) {
        uint64_t rest = time % n->period;
        return i * n->count + ARRAY_FIRST(k, n->count, n->detours[k].begin >= rest);
    }
    return i + (detour_at(n, key, i).begin < time);
}

uint64_t sim_noise_end(const struct sim_noise *n, uint32_t rank, uint64_t begin, uint64_t work)
{
    uint64_t key = key_of(n, rank), late = LOGGOPS_LAST + 1;
    uint64_t phase = n->kind == NOISE_TRACE ? goal_scale(goal_random(key, 0), n->period - 1) : 0;
    uint64_t time = begin + phase, i = first_from(n, key, time);
    if (work >= late - begin) {
        return late;
    }
    uint64_t end = time + work;
    if (i > 0) {
        struct sim_detour before = detour_at(n, key, i - 1);
        end += before.begin + before.length > time ? before.begin + before.length - time : 0;
    }
    for (;; i++) {
        struct sim_detour d = detour_at(n, key, i);
        if (end - phase > LOGGOPS_LAST) {
            return late;
        }
        if (d.begin >= end) {
            return end - phase;
        }
        end += d.length;
    }
}

/* ---- The option --noise ---- */

struct shape {
    const char *name;
    enum sim_noise_kind kind;
    const char *keys[3];
};

static const struct shape shapes[] = {
    {"uniform", NOISE_UNIFORM, {"period", "low", "high"}},
    {"normal", NOISE_NORMAL, {"period", "mean", "deviation"}},
    {"exponential", NOISE_EXPONENTIAL, {"period", "mean", NULL}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), KEYS = 3 };

static int bad_shape(const struct shape *s, const char *text, char *error, size_t size)
{
    snprintf(error, size, "--noise %s: must be %s:%s=TIME,%s=TIME%s%s%s", text, s->name, s->keys[0],
             s->keys[1], s->keys[2] != NULL ? "," : "", s->keys[2] != NULL ? s->keys[2] : "",
             s->keys[2] != NULL ? "=TIME" : "");
    return -1;
}

/* Reads the times behind the colon of --noise, each as KEY=TIME; all keys must be given. */
static int parse_shape(struct sim_noise *n, const struct shape *s, const char *text, char *error,
                       size_t size)
{
    uint64_t *values[KEYS] = {&n->period, &n->low, &n->high};
    unsigned given = 0;
    const char *at = text + strlen(s->name) + 1;
    while (*at != '\0') {
        char value[64];
        size_t length = strcspn(at, ","), name = strcspn(at, "=,");
        int k = 0;
        while (k < KEYS && (s->keys[k] == NULL || strlen(s->keys[k]) != name ||
                            memcmp(s->keys[k], at, name) != 0)) {
            k++;
        }
        if (k == KEYS || name == length || length - name > sizeof(value)) {
            return bad_shape(s, text, error, size);
        }
        snprintf(value, sizeof(value), "%.*s", (int)(length - name - 1), at + name + 1);
        if (sim_time_parse(values[k], "--noise", value, error, size) != 0) {
            return -1;
        }
        given |= 1u << k;
        at += length + (at[length] == ',');
    }
    return given == (s->keys[2] != NULL ? 7u : 3u) ? 0 : bad_shape(s, text, error, size);
}

/* Checks that detours leave time for work. */
static int check_shape(const struct sim_noise *n, const char *text, char *error, size_t size)
{
    if (n->kind == NOISE_UNIFORM && n->high < n->low) {
        snprintf(error, size, "--noise %s: high is below low", text);
        return -1;
    }
    uint64_t mean = n->kind == NOISE_UNIFORM ? n->low / 2 + n->high / 2 : n->low;
    /* The mean of a normal distribution that is cut off at 0 is below mean + deviation / 2. */
    mean += n->kind == NOISE_NORMAL ? n->high / 2 : 0;
    if (n->period == 0 || mean >= n->period) {
        snprintf(error, size, "--noise %s: detours that fill their period leave no time for work",
                 text);
        return -1;
    }
    return 0;
}

static int add_detour(struct sim_noise *n, const struct sim_detour *d)
{
    if (!ARRAY_ROOM(n->detours, n->count, n->room, 16)) {
        return -1;
    }
    n->detours[n->count++] = *d;
    n->period = d->begin + d->length;
    return 0;
}

static int read_trace(struct sim_noise *n, FILE *f, const char *path, char *error, size_t size)
{
    char line[256], why[160];
    for (unsigned number = 1; fgets(line, sizeof(line), f) != NULL; number++) {
        struct sim_detour d;
        line[strcspn(line, "#\r\n")] = '\0';
        char *save, *begin = strtok_r(line, " \t", &save), *length = strtok_r(NULL, " \t", &save);
        if (begin == NULL) {
            continue;
        }
        if (length == NULL || strtok_r(NULL, " \t", &save) != NULL) {
            snprintf(error, size,
                     "--noise %s, line %u: must be the begin of a detour and its length, in ns",
                     path, number);
            return -1;
        }
        if (sim_time_parse(&d.begin, "begin", begin, why, sizeof(why)) != 0 ||
            sim_time_parse(&d.length, "length", length, why, sizeof(why)) != 0) {
            snprintf(error, size, "--noise %s, line %u: %s", path, number, why);
            return -1;
        }
        if (n->count > 0 && d.begin < n->period) {
            snprintf(error, size, "--noise %s, line %u: begins before the detour above it ends",
                     path, number);
            return -1;
        }
        if (add_detour(n, &d) != 0) {
            snprintf(error, size, "--noise %s: not enough memory", path);
            return -1;
        }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < n->count; i++) {
        sum += n->detours[i].length;
    }
    if (sum >= n->period) { /* also true for an empty trace */
        snprintf(error, size, "--noise %s: has no detour, or no time between them", path);
        return -1;
    }
    return 0;
}

int sim_noise_open(struct sim_noise *n, const char *text, uint64_t seed, char *error, size_t size)
{
    *n = (struct sim_noise){.kind = NOISE_TRACE, .seed = seed};
    for (int i = 0; i < SHAPES; i++) {
        size_t length = strlen(shapes[i].name);
        if (strncmp(text, shapes[i].name, length) == 0 && text[length] == ':') {
            n->kind = shapes[i].kind;
            return parse_shape(n, &shapes[i], text, error, size) == 0
                       ? check_shape(n, text, error, size)
                       : -1;
        }
    }
    FILE *f = fopen(text, "r");
    if (f == NULL) {
        snprintf(error, size, "--noise %s: %s; it is uniform:, normal:, exponential: or a trace",
                 text, strerror(errno));
        return -1;
    }
    int status = read_trace(n, f, text, error, size);
    fclose(f);
    if (status != 0) {
        sim_noise_close(n);
    }
    return status;
}

void sim_noise_close(struct sim_noise *n)
{
    free(n->detours);
    n->detours = NULL;
}
