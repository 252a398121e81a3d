/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel hpu budget`: computes how many cycles a handler may take at a packet size, rate and
 * number of HPUs, by Little's law (the sPIN paper, section 4.4.2). A packet comes every max(gap,
 * size / rate); the HPUs keep up as long as a handler takes no longer than that time multiplied by
 * their number. --table prints the paper's figure 4: how many HPUs are needed, by packet size and
 * handler time.
 */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct budget {
    double bytes, rate, hpus, gap;
    double interval; /* ns between packets */
    double cycles;   /* cycles that an HPU has for each packet */
};

/* Returns for how many cycles a handler keeps its HPU busy: its own, and those between two
 * handlers. */
static double busy(const struct hpu_job *j, const struct rv32_result *r)
{
    return (double)r->cycles + j->timing->around;
}

/* Numbers that options set; their texts are in hpu_job.own. */
enum { BYTES, RATE, HPUS, GAP, NUMBERS };

static const struct args_option budget_options[] = {
    HPU_SETUP_OPTION_ROWS,
    HPU_JSON_ROW,
    {"--bytes", "N", "size of a packet; default: that of --packet, or 4096", ARGS_TEXT,
     HPU_AT(own[BYTES])},
    {"--rate", "GBITS", "of the network, in Gbit/s; default 400", ARGS_TEXT, HPU_AT(own[RATE])},
    {"--hpus", "N", "cores; default 32, the clusters of PsPIN", ARGS_TEXT, HPU_AT(own[HPUS])},
    {"--gap", "NS", "least time between packets; default 6.7", ARGS_TEXT, HPU_AT(own[GAP])},
    {"--table", NULL, "HPUs needed, by packet size and the handler's time", ARGS_FLAG,
     HPU_AT(table)},
};

static int read_number(const struct args *a, const char *name, const char *text, double least,
                       double *number)
{
    if (text == NULL) {
        return 0;
    }
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !(value >= least && value <= 1e9)) {
        return args_error(a, "%s %s: must be a number from %g to 1e9", name, text, least);
    }
    *number = value;
    return 0;
}

static int print_lines(const struct hpu_job *j, const struct budget *b, const struct rv32_result *r)
{
    printf("packets       %g bytes each, one every %.2f ns (%s)\n", b->bytes, b->interval,
           b->interval > b->gap ? "the rate" : "the gap");
    printf("may take      %.1f cycles on each of %g HPUs at %u MHz: %.1f ns\n", floor(b->cycles),
           b->hpus, j->timing->clock_mhz, b->interval * b->hpus);
    if (r == NULL) {
        return 0;
    }
    int rc = hpu_result_print(j, r);
    bool fits = rc == 0 && busy(j, r) <= b->cycles;
    printf("busy          %.1f cycles of an HPU a packet: the handler, and %u around it\n",
           busy(j, r), j->timing->around);
    printf("fits          %s, needs %.2f HPUs\n", fits ? "yes" : "no",
           busy(j, r) / b->cycles * b->hpus);
    return fits ? 0 : 1;
}

static int print_json(const struct hpu_job *j, const struct budget *b, const struct rv32_result *r)
{
    struct json to = {.to = stdout};
    int rc = 0;
    json_open_object(&to, NULL);
    json_real(&to, "bytes", b->bytes);
    json_real(&to, "interval_ns", b->interval);
    json_real(&to, "hpus", b->hpus);
    json_real(&to, "cycles_allowed", floor(b->cycles));
    if (r != NULL) {
        rc = hpu_result_json(j, r, &to);
        bool fits = rc == 0 && busy(j, r) <= b->cycles;
        json_unsigned(&to, "cycles_around", j->timing->around);
        json_bool(&to, "fits", fits);
        json_real(&to, "hpus_needed", busy(j, r) / b->cycles * b->hpus);
        rc = fits ? 0 : 1;
    } else {
        json_string(&to, "timing", j->timing->name);
        json_unsigned(&to, "clock_mhz", j->timing->clock_mhz);
    }
    json_close_object(&to);
    return json_end(&to) != 0 ? 1 : rc;
}

/* ---- The table ---- */

enum { TABLE_LEAST = 16, TABLE_MOST = HPU_PACKET_MAX, TABLE_TIMES = 6 };

static const double table_times[TABLE_TIMES] = {10, 50, 100, 200, 500, 1000}; /* ns */

static void set_size(const struct hpu_job *j, struct budget *b, double bytes)
{
    b->bytes = bytes;
    b->interval = fmax(b->gap, b->bytes * 8 / b->rate);
    b->cycles = b->interval * b->hpus * j->timing->clock_mhz / 1000;
}

static double hpus_for(const struct budget *b, double nanoseconds)
{
    return fmax(1, ceil(nanoseconds / b->interval - 1e-9));
}

/* Runs the image's function on a packet of `bytes` bytes, with memory as at first, and returns the
 * result. If the function does not return, it prints why and returns NULL. */
static const struct rv32_result *run_sized(struct hpu_job *j, const struct hpu_job *first,
                                           uint32_t bytes)
{
    struct rv32_error text;
    memcpy(j->packet, first->packet, HPU_PACKET_MAX);
    memcpy(j->state, first->state, j->state_size);
    memset(j->stack, 0, sizeof(j->stack));
    if (hpu_job_resize(j, "budget", bytes) != 0) {
        return NULL;
    }
    const struct rv32_result *r = hpu_job_run(j, "budget", hpu_run_core, NULL);
    if (r == NULL || r->end == RV32_RETURNED) {
        return r;
    }
    hpu_job_text(j, r, &text);
    fprintf(stderr, "pinwheel hpu budget: %s, packet of %u bytes: %s\n", hpu_job_name(j), bytes,
            text.text);
    return NULL;
}

static void print_row(const struct hpu_job *j, const struct budget *b, const struct rv32_result *r)
{
    printf("%6g %8.2f %10.0f", b->bytes, b->interval, floor(b->cycles));
    for (int i = 0; i < TABLE_TIMES; i++) {
        printf(" %7.0f", hpus_for(b, table_times[i]));
    }
    if (r != NULL) {
        printf(" %8" PRIu64 " %6.0f", r->cycles,
               hpus_for(b, busy(j, r) * 1000 / j->timing->clock_mhz));
    }
    putchar('\n');
}

static void json_row(const struct hpu_job *j, const struct budget *b, const struct rv32_result *r,
                     struct json *to)
{
    json_open_object(to, NULL);
    json_real(to, "bytes", b->bytes);
    json_real(to, "interval_ns", b->interval);
    json_real(to, "cycles_allowed", floor(b->cycles));
    json_open_array(to, "needed");
    for (int i = 0; i < TABLE_TIMES; i++) {
        json_open_object(to, NULL);
        json_real(to, "handler_ns", table_times[i]);
        json_real(to, "hpus", hpus_for(b, table_times[i]));
        json_close_object(to);
    }
    json_close_array(to);
    if (r != NULL) {
        json_unsigned(to, "cycles", r->cycles);
        json_real(to, "hpus", hpus_for(b, busy(j, r) * 1000 / j->timing->clock_mhz));
    }
    json_close_object(to);
}

static void print_head(const struct hpu_job *j, const struct budget *b)
{
    const char *label = j->timing->label;
    printf("HPUs needed at %g Gbit/s, packets at least %g ns apart, by the time that a handler "
           "takes\n",
           b->rate, b->gap);
    printf("may take: cycles, on each of %g HPUs of %s, %u MHz%s%s%s\n", b->hpus, j->timing->name,
           j->timing->clock_mhz, label != NULL ? " (" : "", label != NULL ? label : "",
           label != NULL ? ")" : "");
    printf(" bytes every ns   may take");
    for (int i = 0; i < TABLE_TIMES; i++) {
        printf(" %4.0f ns", table_times[i]);
    }
    printf("%s\n", j->path != NULL ? "   cycles   HPUs, of the function" : "");
}

static int table(struct hpu_job *j, struct budget *b)
{
    struct json to = {.to = stdout};
    struct hpu_job *first = NULL;
    int rc = 0;
    if (j->path != NULL) {
        if (hpu_job_open(j, "budget") != 0 || (first = hpu_job_new()) == NULL) {
            return 1;
        }
        memcpy(first->packet, j->packet, HPU_PACKET_MAX);
        memcpy(first->state, j->state, j->state_size);
    }
    if (j->json) {
        json_open_object(&to, NULL);
        json_string(&to, "timing", j->timing->name);
        if (j->timing->label != NULL) {
            json_string(&to, "label", j->timing->label);
        }
        json_open_array(&to, "table");
    } else {
        print_head(j, b);
    }
    for (uint32_t bytes = TABLE_LEAST; bytes <= TABLE_MOST && rc == 0; bytes *= 2) {
        const struct rv32_result *r = first != NULL ? run_sized(j, first, bytes) : NULL;
        set_size(j, b, bytes);
        rc = first != NULL && r == NULL;
        if (rc == 0 && j->json) {
            json_row(j, b, r, &to);
        } else if (rc == 0) {
            print_row(j, b, r);
        }
    }
    if (j->json) {
        json_close_array(&to);
        json_close_object(&to);
        rc = json_end(&to) != 0 ? 1 : rc;
    }
    if (first != NULL) {
        hpu_job_free(first);
    }
    return rc;
}

static int answer(struct hpu_job *j, struct budget *b, bool sized)
{
    const struct rv32_result *r = NULL;
    if (j->path != NULL && hpu_job_open(j, "budget") != 0) {
        return 1;
    }
    if (j->path != NULL) {
        r = hpu_job_run(j, "budget", hpu_run_core, NULL);
        if (r == NULL) {
            return 1;
        }
        b->bytes = sized || j->packet_path == NULL ? b->bytes : j->packet_size;
    }
    set_size(j, b, b->bytes);
    return j->json ? print_json(j, b, r) : print_lines(j, b, r);
}

static int budget(struct hpu_job *j, struct args *a)
{
    struct budget b = {.bytes = 4096, .rate = 400, .hpus = 32, .gap = 6.7};
    double *numbers[] = {&b.bytes, &b.rate, &b.hpus, &b.gap};
    static const double least[] = {1, 0.001, 1, 0};
    static const char *const names[] = {"--bytes", "--rate", "--hpus", "--gap"};
    for (int i = 0; i < NUMBERS; i++) {
        if (read_number(a, names[i], j->own[i], least[i], numbers[i]) != 0) {
            return 2;
        }
    }
    return j->table ? table(j, &b) : answer(j, &b, j->own[BYTES] != NULL);
}

int hpu_command_budget(int argc, char **argv)
{
    struct args a = {.command = "hpu budget",
                     .operands = "[IMAGE]",
                     .summary =
                         "Says how many cycles a handler may take if packets are to be processed "
                         "as fast as\nthey come. With an image, also whether its function does; "
                         "the exit status is 1 if not.",
                     ARGS_OPTIONS(budget_options)};
    return hpu_job_command(&a, argc, argv, budget);
}
