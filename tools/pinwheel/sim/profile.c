/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines by name and from files; see profile.h. */
#include "profile.h"

#include "base/number.h"
#include "hpu/rv32/timing.h"
#include "sim/util/parameters.h"
#include "toml.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How a parameter is written: a time, a time of a byte or a rate, a number, a clock, the name of a
 * table of cycles. */
enum kind { PS, BYTE, COUNT, MHZ, TIMING, MODEL };

struct parameter {
    const char *key, *example;
    enum kind kind;
    size_t at;            /* in struct sim_machine */
    uint64_t least, most; /* of what is stored */
};

#define AT(member) offsetof(struct sim_machine, member)
#define LONGEST UINT64_C(1000000000000) /* ps: a second */
#define SLOWEST UINT64_C(1000000000000) /* of a byte: a us */

static const struct parameter parameters[] = {
    {"o", "\"65ns\"", PS, AT(o), 0, LONGEST},
    {"o_receive", "\"0ns\"", PS, AT(o_receive), 0, LONGEST},
    {"g", "\"6.7ns\"", PS, AT(g), 0, LONGEST},
    {"G", "\"20ps\"", BYTE, AT(byte), 1, SLOWEST},
    {"model", "\"packets\"", MODEL, AT(loggops), 0, 1},
    {"match", "\"30ns\"", PS, AT(match), 0, LONGEST},
    {"cam", "\"2ns\"", PS, AT(cam), 0, LONGEST},
    {"dma_latency", "\"250ns\"", PS, AT(dma), 0, LONGEST},
    {"dma_byte", "\"15.6ps\"", BYTE, AT(dma_byte), 0, SLOWEST},
    {"host_latency", "\"51ns\"", PS, AT(host), 0, LONGEST},
    {"host_byte", "\"6.667ps\"", BYTE, AT(host_byte), 0, SLOWEST},
    {"look", "\"20ns\"", PS, AT(look), 1000, LONGEST},
    {"handler", "\"10ns\"", PS, AT(handler), 0, LONGEST},
    {"hpu_queue", "65536", COUNT, AT(hpu_queue), 1, 1000000},
    {"buffers", "65536", COUNT, AT(buffers), 1, 1000000},
    {"egress_queue", "4096", COUNT, AT(egress_queue), 1, 1000000},
    {"entry_messages", "1", COUNT, AT(entry_messages), 1, 1000000},
    {"hpus", "4", COUNT, AT(hpus), 1, SIM_HPUS},
    {"clock", "\"2.5GHz\"", MHZ, AT(clock_mhz), 1, 100000},
    {"timing", "\"arm\"", TIMING, AT(timing), 0, UINT64_MAX},
};

enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]), PSPIN = 0, ARM = 2 };

/* Queues and buffers, of which the paper has no figures: so long that none of its own fills them.
 */
#define QUEUES .hpu_queue = 65536, .buffers = 65536, .egress_queue = 4096, .entry_messages = 1

/* The machines of the sPIN paper, section 4: a NIC beside the processor, behind a bus, and one in
 * it; one that costs nothing, whose host and network are those of the LogGOPS model; and PsPIN's
 * cluster of 32 cores behind the bus. */
#define PAPER                                                                                      \
    .o = 65000, .g = 6700, .byte = 20000000, .match = 30000, .cam = 2000, .look = 20000,           \
    .host = 51000, .host_byte = 6667000, .handler = 10000, .hpus = 4, .clock_mhz = 2500,           \
    .timing = ARM, QUEUES

static const struct {
    const char *name;
    struct sim_machine machine;
} profiles[] = {
    {"discrete", {PAPER, .dma = 250000, .dma_byte = 15600000}},
    {"integrated", {PAPER, .dma = 50000, .dma_byte = 6700000}},
    {"zero",
     {.o = 65000,
      .o_receive = 65000,
      .g = 6700,
      .byte = 20000000,
      .loggops = 1,
      .look = 20000,
      .hpus = SIM_HPUS,
      .clock_mhz = 2500,
      .timing = ARM,
      QUEUES}},
    {"pspin",
     {.o = 65000,
      .g = 6700,
      .byte = 20000000,
      .match = 30000,
      .cam = 2000,
      .dma = 250000,
      .dma_byte = 15600000,
      .host = 51000,
      .host_byte = 6667000,
      .look = 20000,
      .handler = 10000,
      .hpus = 32,
      .clock_mhz = 1000,
      .timing = PSPIN,
      QUEUES}},
};

const char *profile_timing(const struct sim_machine *m)
{
    return rv32_timings[m->timing].name;
}

/* ---- values ---- */

static void store(struct sim_machine *m, const struct parameter *p, uint64_t value)
{
    void *at = (char *)m + p->at;
    if (p->kind == PS || p->kind == BYTE) {
        memcpy(at, &value, sizeof(value));
    } else {
        uint32_t word = (uint32_t)value;
        memcpy(at, &word, sizeof(word));
    }
}

/* A clock: a number of MHz, with the unit MHz or GHz. */
static bool parse_clock(const char *text, uint64_t *mhz)
{
    struct sim_parameters p;
    char number[TOML_VALUE], error[256];
    size_t n = strspn(text, "0123456789.");
    uint64_t scale = strcmp(text + n, "GHz") == 0 ? 1000 : strcmp(text + n, "MHz") == 0 ? 1 : 0;
    snprintf(number, sizeof(number), "%.*sps", (int)n, text); /* a decimal, exactly */
    if (scale == 0 || sim_parameter_parse(&p, SIM_G, number, error, sizeof(error)) != 0 ||
        p.value[SIM_G] > UINT64_MAX / scale || p.value[SIM_G] * scale % SIM_AS_PER_PS != 0) {
        return false;
    }
    *mhz = p.value[SIM_G] * scale / SIM_AS_PER_PS;
    return true;
}

static bool parse_timing(const char *text, uint64_t *value)
{
    const struct rv32_timing *t = rv32_timing_find(text);
    *value = t != NULL ? (uint64_t)(t - rv32_timings) : 0;
    return t != NULL;
}

static bool parse(const struct parameter *p, const char *text, uint64_t *value)
{
    struct sim_parameters all;
    char error[256];
    switch (p->kind) {
    case PS:
        return sim_time_parse(value, p->key, text, error, sizeof(error)) == 0;
    case BYTE:
        if (strchr(text, '/') != NULL && strstr(text, "ps/B") == NULL) {
            return sim_rate_parse(value, p->key, text, error, sizeof(error)) == 0;
        }
        if (sim_parameter_parse(&all, SIM_G, text, error, sizeof(error)) != 0) {
            return false;
        }
        *value = all.value[SIM_G];
        return true;
    case COUNT:
        return number_read_unsigned(text, UINT64_MAX, value);
    case MHZ:
        return parse_clock(text, value);
    case TIMING:
        return parse_timing(text, value);
    default:
        *value = strcmp(text, "loggops") == 0;
        return *value != 0 || strcmp(text, "packets") == 0;
    }
}

/* What is right, with the bounds, for the error. */
static void say_right(const struct parameter *p, char *text, size_t size)
{
    switch (p->kind) {
    case PS:
        snprintf(text, size, "a time of %" PRIu64 " ps to 1 s, in whole ps, such as %s", p->least,
                 p->example);
        break;
    case BYTE:
        snprintf(text, size, "the time of a byte, %sat most 1 us, or a rate, such as %s",
                 p->least != 0 ? "more than 0 and " : "", p->example);
        break;
    case COUNT:
        snprintf(text, size, "a number of %" PRIu64 " to %" PRIu64 ", such as %s", p->least,
                 p->most, p->example);
        break;
    case MHZ:
        snprintf(text, size, "a clock of 1 MHz to 100 GHz, in whole MHz, such as %s", p->example);
        break;
    case TIMING:
        snprintf(text, size, "the name of a table of cycles, \"pspin\", \"fpspin\" or \"arm\"");
        break;
    default:
        snprintf(text, size, "\"packets\" or \"loggops\"");
    }
}

/* ---- files ---- */

static const struct parameter *find_parameter(const char *key)
{
    for (int i = 0; i < PARAMETERS; i++) {
        if (strcmp(parameters[i].key, key) == 0) {
            return &parameters[i];
        }
    }
    return NULL;
}

static bool find_named(const char *name, struct sim_machine *m)
{
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            *m = profiles[i].machine;
            return true;
        }
    }
    return false;
}

/* ---- one parameter ---- */

int profile_parse(const char *key, const char *text, uint64_t *value, char error[PROFILE_ERROR])
{
    const struct parameter *p = find_parameter(key);
    char right[200];
    if (p == NULL || p->kind == TIMING || p->kind == MODEL) {
        int n = snprintf(error, PROFILE_ERROR, "%s is no parameter with values in order; these are",
                         key);
        for (int i = 0; i < PARAMETERS && n < PROFILE_ERROR; i++) {
            if (parameters[i].kind != TIMING && parameters[i].kind != MODEL) {
                n += snprintf(error + n, PROFILE_ERROR - (size_t)n, " %s", parameters[i].key);
            }
        }
        return -1;
    }
    if (!parse(p, text, value) || *value < p->least || *value > p->most) {
        say_right(p, right, sizeof(right));
        snprintf(error, PROFILE_ERROR, "%s=%s: must be %s", key, text, right);
        return -1;
    }
    return 0;
}

void profile_store(const char *key, uint64_t value, struct sim_machine *m)
{
    const struct parameter *p = find_parameter(key);
    if (p != NULL) {
        store(m, p, value);
    }
}

bool profile_is_number(const char *key)
{
    const struct parameter *p = find_parameter(key);
    return p != NULL && p->kind == COUNT;
}

double profile_scale(const char *key)
{
    const struct parameter *p = find_parameter(key);
    return p != NULL && p->kind == PS ? 1e-3 : p != NULL && p->kind == BYTE ? 1e-6 : 1;
}

const char *profile_unit(const char *key)
{
    static const char *const units[] = {[PS] = "ns", [BYTE] = "ps/B", [COUNT] = "", [MHZ] = "MHz"};
    const struct parameter *p = find_parameter(key);
    return p != NULL && p->kind <= MHZ ? units[p->kind] : "";
}

/* What a file has said so far. */
struct said {
    uint64_t keys; /* by the parameter's place in the table */
    bool base;
};

static int take(const char *file, const struct toml_line *l, struct said *said,
                struct sim_machine *m, char *error)
{
    const struct parameter *p = find_parameter(l->key);
    char right[200];
    uint64_t value = 0;
    if (strcmp(l->key, "base") == 0) {
        if (said->base || said->keys != 0 || !find_named(l->value, m)) {
            snprintf(error, PROFILE_ERROR,
                     "%s:%u: base = \"%s\": must be the first line with a value, and discrete, "
                     "integrated, zero or pspin",
                     file, l->number, l->value);
            return -1;
        }
        said->base = true;
        return 0;
    }
    if (p == NULL) {
        int n = snprintf(error, PROFILE_ERROR, "%s:%u: %s = %s: unknown key; keys are base", file,
                         l->number, l->key, l->value);
        for (int i = 0; i < PARAMETERS && n < PROFILE_ERROR; i++) {
            n += snprintf(error + n, PROFILE_ERROR - (size_t)n, ", %s", parameters[i].key);
        }
        return -1;
    }
    say_right(p, right, sizeof(right));
    if ((said->keys >> (p - parameters) & 1) != 0) {
        snprintf(error, PROFILE_ERROR, "%s:%u: %s = %s: the key stands there twice; leave one out",
                 file, l->number, l->key, l->value);
        return -1;
    }
    if (!parse(p, l->value, &value) || value < p->least || value > p->most) {
        snprintf(error, PROFILE_ERROR, "%s:%u: %s = %s: must be %s", file, l->number, l->key,
                 l->value, right);
        return -1;
    }
    said->keys |= UINT64_C(1) << (p - parameters);
    store(m, p, value);
    return 0;
}

int profile_read(const char *file, const char *text, size_t length, struct sim_machine *m,
                 char error[PROFILE_ERROR])
{
    struct toml_line line = {.number = 0};
    struct said said = {0};
    const char *at = text, *why = NULL;
    int more;
    *m = (struct sim_machine){0};
    while ((more = toml_next(&at, text + length, &line, &why)) > 0) {
        if (take(file, &line, &said, m, error) != 0) {
            return -1;
        }
    }
    if (more < 0) {
        snprintf(error, PROFILE_ERROR, "%s:%u: %s", file, line.number, why);
        return -1;
    }
    for (int i = 0; i < PARAMETERS && !said.base; i++) {
        if ((said.keys >> i & 1) == 0) {
            snprintf(error, PROFILE_ERROR,
                     "%s: %s is missing: add a line such as %s = %s, or begin with base = "
                     "\"discrete\"",
                     file, parameters[i].key, parameters[i].key, parameters[i].example);
            return -1;
        }
    }
    return 0;
}

static int read_file(const char *name, struct sim_machine *m, char error[PROFILE_ERROR])
{
    enum { MOST = 65536 };
    struct stat is;
    if (stat(name, &is) == 0 && !S_ISREG(is.st_mode)) {
        snprintf(error, PROFILE_ERROR, "%s: cannot be read: it is no regular file", name);
        return -1;
    }
    char *text = malloc(MOST);
    FILE *f = text != NULL ? fopen(name, "re") : NULL;
    size_t length = f != NULL ? fread(text, 1, MOST, f) : 0;
    int rc = -1;
    if (f == NULL || ferror(f)) {
        snprintf(error, PROFILE_ERROR, "%s: cannot be read: %s", name, strerror(errno));
    } else if (length == MOST) {
        snprintf(error, PROFILE_ERROR, "%s: has 64 KiB or more, and is no machine", name);
    } else {
        rc = profile_read(name, text, length, m, error);
    }
    if (f != NULL) {
        fclose(f);
    }
    free(text);
    return rc;
}

int profile_find(const char *name, struct sim_machine *m, char error[PROFILE_ERROR])
{
    if (find_named(name, m)) {
        return 0;
    }
    if (strpbrk(name, "./") != NULL) {
        return read_file(name, m, error);
    }
    snprintf(error, PROFILE_ERROR,
             "%s: must be discrete, integrated, zero or pspin, or a file "
             "whose name has a '.' or a '/'",
             name);
    return -1;
}
