/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs of a sweep, and their table. The values have equal distances and include both ends. Each
 * is rounded down to a value that the parameter and the model can have; if that equals its
 * neighbour it is run only once.
 */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEP_MOST = 10000 };

/* ---- The option ---- */

static int bad_sweep(const struct args *args)
{
    return args_error(args,
                      "--sweep %s: must be like L=0:10us:11, a parameter (L, o, g, G, O, S), its "
                      "first and its last value, and how many",
                      args->value);
}

/* Reads one end of the sweep, from the text between `begin` and `end`. */
static int parse_end(struct args *args, const struct goal_sweep *sweep, const char *begin,
                     const char *end, uint64_t *value)
{
    char text[64], error[256];
    struct sim_parameters p = {{0}};
    int length = snprintf(text, sizeof(text), "%.*s", (int)(end - begin), begin);
    if (length >= (int)sizeof(text)) {
        return bad_sweep(args);
    }
    if (sim_parameter_parse(&p, sweep->which, text, error, sizeof(error)) != 0) {
        return args_error(args, "--sweep %s: %s", args->value, error);
    }
    *value = p.value[sweep->which];
    return 0;
}

int goal_sweep_take(struct args *args, void *into)
{
    struct goal_sweep *sweep = into;
    const char *text = args->value;
    int which = 0;
    while (which < SIM_PARAMETERS && *text != *sim_parameter_name((enum sim_parameter)which)) {
        which++;
    }
    if (which == SIM_PARAMETERS || text[1] != '=') {
        return bad_sweep(args);
    }
    *sweep = (struct goal_sweep){.text = text, .which = (enum sim_parameter)which};
    const char *from = text + 2, *to = strchr(from, ':');
    const char *count = to != NULL ? strchr(to + 1, ':') : NULL;
    if (count == NULL) {
        return bad_sweep(args);
    }
    if (parse_end(args, sweep, from, to, &sweep->from) != 0 ||
        parse_end(args, sweep, to + 1, count, &sweep->to) != 0) {
        return 2;
    }
    size_t digits = strspn(count + 1, "0123456789");
    unsigned long values = digits > 0 && digits < 6 ? strtoul(count + 1, NULL, 10) : 0;
    if (count[1 + digits] != '\0' || values < 2 || values > SWEEP_MOST) {
        return args_error(args, "--sweep %s: \"%s\" must be how many values: 2 to %d", text,
                          count + 1, SWEEP_MOST);
    }
    sweep->values = (uint32_t)values;
    return ARGS_GO_ON;
}

int goal_sweep_check(struct goal_run *r)
{
    struct sim_parameters p = r->parameters;
    struct sim_input in = r->in;
    char error[256];
    in.parameters = &p;
    for (int end = 0; end < 2; end++) {
        p.value[r->sweep.which] = end == 0 ? r->sweep.from : r->sweep.to;
        if (sim_check(&in, error, sizeof(error)) != 0) {
            return args_error(&r->args, "--sweep %s: %s", r->sweep.text, error);
        }
    }
    return 0;
}

/* ---- Values ---- */

/* Returns the least difference that two values of the parameter can have. */
static uint64_t grain(const struct goal_run *r)
{
    enum sim_parameter which = r->sweep.which;
    if (which == SIM_S) {
        return 1;
    }
    if (r->in.model == SIM_LOGGOPSIM) {
        return SIM_AS_PER_NS;
    }
    return which == SIM_G || which == SIM_O ? 1 : SIM_AS_PER_PS;
}

static uint64_t value_at(const struct goal_run *r, uint32_t i)
{
    const struct goal_sweep *s = &r->sweep;
    bool up = s->to >= s->from;
    unsigned __int128 way = up ? s->to - s->from : s->from - s->to;
    uint64_t step = (uint64_t)(way * i / (s->values - 1));
    uint64_t value = up ? s->from + step : s->from - step;
    return value - value % grain(r);
}

/* Writes a value as a number without unit: in ns, ns per byte, or bytes. */
static void number_text(const struct goal_run *r, uint64_t value, char text[40])
{
    if (r->sweep.which == SIM_S) {
        snprintf(text, 40, "%" PRIu64, value);
        return;
    }
    int length =
        snprintf(text, 40, "%" PRIu64 ".%09" PRIu64, value / SIM_AS_PER_NS, value % SIM_AS_PER_NS);
    while (text[length - 1] == '0') {
        text[--length] = '\0';
    }
    if (text[length - 1] == '.') {
        text[length - 1] = '\0';
    }
}

/* ---- Results ---- */

static int print_json(const struct goal_run *r, const struct sweep_point *points, uint32_t count)
{
    struct json j = {.to = stdout};
    json_open_array(&j, NULL);
    for (uint32_t i = 0; i < count; i++) {
        char text[40];
        number_text(r, points[i].value, text);
        json_open_object(&j, NULL);
        json_verbatim(&j, "value", text);
        goal_json_time(&j, &r->out, "finish_ns", points[i].finish);
        json_unsigned(&j, "last_rank", points[i].last);
        json_close_object(&j);
    }
    json_close_array(&j);
    return json_end(&j);
}

static int print_table(const struct goal_run *r, const struct sweep_point *points, uint32_t count)
{
    static const char *const units[] = {"ns", "ns", "ns", "ns/B", "ns/B", "B"};
    char head[16];
    snprintf(head, sizeof(head), "%s (%s)", sim_parameter_name(r->sweep.which),
             units[r->sweep.which]);
    printf("%20s %20s %10s\n", head, "finish (ns)", "last rank");
    for (uint32_t i = 0; i < count; i++) {
        char value[40], finish[32];
        number_text(r, points[i].value, value);
        goal_time_text(&r->out, points[i].finish, finish);
        printf("%20s %20s %10" PRIu32 "\n", value, finish, points[i].last);
    }
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

static int report(const struct goal_run *r, const struct sweep_point *points, uint32_t count)
{
    if (r->svg != NULL && goal_sweep_draw(r, points, count) != 0) {
        fprintf(stderr, "pinwheel goal run: --svg %s: %s\n", r->svg, strerror(errno));
        return 1;
    }
    return goal_run_written(r->json ? print_json(r, points, count) : print_table(r, points, count));
}

/* Prints which of the sweep's runs has failed. */
static void say_value(const struct goal_run *r)
{
    char text[64];
    sim_parameter_format(&r->parameters, r->sweep.which, text, sizeof(text));
    fprintf(stderr, "pinwheel goal run: that was the run of --sweep %s with %s %s\n", r->sweep.text,
            sim_parameter_name(r->sweep.which), text);
}

int goal_sweep_run(struct goal_run *r)
{
    struct sweep_point *points = calloc(r->sweep.values, sizeof(*points));
    uint32_t count = 0;
    int status = 0;
    if (points == NULL) {
        fprintf(stderr, "pinwheel goal run: not enough memory for the results of --sweep\n");
        return 1;
    }
    for (uint32_t i = 0; i < r->sweep.values && status == 0; i++) {
        uint64_t value = value_at(r, i);
        if (count > 0 && points[count - 1].value == value) {
            continue;
        }
        r->parameters.value[r->sweep.which] = value;
        status = goal_run_simulate(r);
        if (status == 0) {
            struct goal_summary s = goal_summarise(&r->goal, &r->out);
            points[count++] = (struct sweep_point){value, s.most, s.last};
        } else {
            say_value(r);
        }
        sim_output_free(&r->out);
    }
    if (status == 0) {
        status = report(r, points, count);
    }
    free(points);
    return status;
}
