/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel hpu budget`: at a packet size, rate and number of HPUs, how many cycles a
 * handler may take, by Little's law (the sPIN paper, section 4.4.2): packets come every
 * max(gap, size / rate); as long as each takes an HPU no longer than that times the
 * number of HPUs, they keep up.
 */
#include "hpu_commands.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET_BYTES = HPU_RUN_OPTIONS, BUDGET_RATE, BUDGET_HPUS, BUDGET_GAP, BUDGET_END };

static const struct args_option budget_options[] = {
    HPU_RUN_OPTION_ROWS,
    [BUDGET_BYTES] = {"--bytes", "N", "size of a packet; default: that of --packet, or 4096"},
    [BUDGET_RATE] = {"--rate", "GBITS", "of the network, in Gbit/s; default 400"},
    [BUDGET_HPUS] = {"--hpus", "N", "cores; default 32, the clusters of PsPIN"},
    [BUDGET_GAP] = {"--gap", "NS", "least time between packets; default 6.7"},
};

struct budget {
    double bytes, rate, hpus, gap;
    double interval; /* ns between packets */
    double cycles;   /* that a handler may take */
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
    bool fits = rc == 0 && (double)r->cycles <= b->cycles;
    printf("fits          %s, needs %.2f HPUs\n", fits ? "yes" : "no",
           (double)r->cycles / b->cycles * b->hpus);
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
        bool fits = rc == 0 && (double)r->cycles <= b->cycles;
        json_bool(&to, "fits", fits);
        json_real(&to, "hpus_needed", (double)r->cycles / b->cycles * b->hpus);
        rc = fits ? 0 : 1;
    } else {
        json_string(&to, "timing", j->timing->name);
        json_unsigned(&to, "clock_mhz", j->timing->clock_mhz);
    }
    json_close_object(&to);
    return json_end(&to) != 0 ? 1 : rc;
}

static int answer(struct hpu_job *j, struct budget *b, bool sized)
{
    const struct rv32_result *r = NULL;
    if (j->path != NULL && hpu_job_open(j, "budget") != 0) {
        return 1;
    }
    if (j->path != NULL) {
        r = rv32_core_call(&j->core, &j->call);
        b->bytes = sized || j->packet_path == NULL ? b->bytes : j->packet_size;
    }
    b->interval = fmax(b->gap, b->bytes * 8 / b->rate);
    b->cycles = b->interval * b->hpus * j->timing->clock_mhz / 1000;
    return j->json ? print_json(j, b, r) : print_lines(j, b, r);
}

int hpu_command_budget(int argc, char **argv)
{
    struct args a = {.command = "hpu budget",
                     .operands = "[IMAGE]",
                     .summary =
                         "Says how many cycles a handler may take if packets are to be processed "
                         "as fast as\nthey come. With an image, also whether its function does; "
                         "the exit status is 1 if not.",
                     .options = budget_options,
                     .count = sizeof(budget_options) / sizeof(budget_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    const char *own[BUDGET_END - HPU_RUN_OPTIONS] = {NULL};
    struct budget b = {.bytes = 4096, .rate = 400, .hpus = 32, .gap = 6.7};
    double *numbers[] = {&b.bytes, &b.rate, &b.hpus, &b.gap};
    static const double least[] = {1, 0.001, 1, 0};
    struct hpu_job *j = hpu_job_new();
    if (j == NULL) {
        return 1;
    }
    int rc = hpu_job_parse(j, &a, HPU_RUN_OPTIONS, own);
    for (int i = 0; rc < 0 && i < BUDGET_END - HPU_RUN_OPTIONS; i++) {
        const char *name = budget_options[HPU_RUN_OPTIONS + i].name;
        rc = read_number(&a, name, own[i], least[i], numbers[i]) != 0 ? 2 : rc;
    }
    rc = rc < 0 ? answer(j, &b, own[0] != NULL) : rc;
    hpu_job_free(j);
    return rc;
}
