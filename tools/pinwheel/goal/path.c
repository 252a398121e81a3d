/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal run --critical-path`: prints its results, as text or JSON. */
#include "run.h"

#include "sim/report/stuck.h"

#include <inttypes.h>

/* Of a long path the text shows only so many first and last steps. */
enum { SHOWN_AT_ENDS = 20 };

/* In which runs a part exists: with a network L is replaced by more detailed parts. */
enum where { ANYWHERE, ON_LATENCY, ON_NETWORK, WITH_NOISE };

static const struct {
    const char *name, *json;
    size_t at;
    enum where where;
} parts[] = {
    {"o", "o_ns", offsetof(struct path_parts, o), ANYWHERE},
    {"g", "g_ns", offsetof(struct path_parts, g), ANYWHERE},
    {"G", "G_ns", offsetof(struct path_parts, G), ANYWHERE},
    {"L", "L_ns", offsetof(struct path_parts, L), ON_LATENCY},
    {"way", "path_ns", offsetof(struct path_parts, path), ON_NETWORK},
    {"bytes", "serialisation_ns", offsetof(struct path_parts, serial), ON_NETWORK},
    {"contention", "queueing_ns", offsetof(struct path_parts, queue), ON_NETWORK},
    {"O", "O_ns", offsetof(struct path_parts, O), ANYWHERE},
    {"computation", "calc_ns", offsetof(struct path_parts, calc), ANYWHERE},
    {"noise", "noise_ns", offsetof(struct path_parts, noise), WITH_NOISE},
    {"wait", "wait_ns", offsetof(struct path_parts, wait), ANYWHERE},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]), SUMMED = PARTS - 1 };

static uint64_t part(const struct path_parts *p, int i)
{
    return *(const uint64_t *)((const char *)p + parts[i].at);
}

/* True if a part exists in this run. */
static bool has_part(const struct goal_run *r, int i)
{
    switch (parts[i].where) {
    case ON_LATENCY:
        return r->in.network == NULL;
    case ON_NETWORK:
        return r->in.network != NULL;
    case WITH_NOISE:
        return r->in.noise != NULL;
    default:
        return true;
    }
}

/* Returns the name of what an operation does in a step. */
static const char *step_name(const struct goal_run *r, const struct path_step *step)
{
    struct charges c;
    const struct goal_node *n = record_node(&r->record, step->operation);
    switch (step->slot) {
    case RECORD_BEGIN:
        if (n->type == GOAL_CALC) {
            return "calc";
        }
        if (n->type == GOAL_RECV) {
            return "post";
        }
        return record_charges(&r->record, step->operation, &c) ? "request" : "send";
    case RECORD_ANSWER:
        return n->type == GOAL_RECV ? "reply" : "data";
    case RECORD_IN:
        return "in";
    default:
        return "take";
    }
}

static const char *why_name(enum record_why why)
{
    static const char *const names[] = {
        [RECORD_AT_ONCE] = "at once",       [RECORD_AFTER_START] = "after start",
        [RECORD_AFTER_END] = "after end",   [RECORD_POSTED] = "posted",
        [RECORD_MESSAGE] = "message",       [RECORD_LAST_BYTE] = "last byte",
        [RECORD_HANDED_OVER] = "last byte", [RECORD_CPU] = "cpu free",
        [RECORD_NIC] = "nic free",          [RECORD_NIC_IN] = "nic free",
    };
    return names[why];
}

static void json_parts(struct json *j, const struct goal_run *r, const struct path_parts *p,
                       bool zeros)
{
    for (int i = 0; i < PARTS; i++) {
        if (has_part(r, i) && (zeros || part(p, i) > 0)) {
            goal_json_time(j, &r->out, parts[i].json, part(p, i));
        }
    }
}

void goal_path_json(struct json *j, struct goal_run *r)
{
    const struct path *p = &r->path;
    json_open_object(j, "critical_path");
    goal_json_time(j, &r->out, "end_ns", p->end);
    json_parts(j, r, &p->sum, true);
    json_open_array(j, "steps");
    for (size_t i = 0; i < p->count; i++) {
        const struct path_step *step = &p->steps[i];
        uint32_t rank, op;
        record_find(&r->record, step->operation, &rank, &op);
        json_open_object(j, NULL);
        goal_json_time(j, &r->out, "time_ns", step->time);
        json_unsigned(j, "rank", rank);
        json_unsigned(j, "operation", op);
        json_string(j, "step", step_name(r, step));
        json_string(j, "why", why_name(step->why));
        json_parts(j, r, &step->parts, false);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void print_step(struct goal_run *r, const struct path_step *step)
{
    char time[32];
    uint32_t rank, op;
    goal_time_text(&r->out, step->time, time);
    printf("%14s  %-11s  %-7s  ", time, why_name(step->why), step_name(r, step));
    record_find(&r->record, step->operation, &rank, &op);
    stuck_print_operation(&r->goal, rank, op, stdout);
    putchar('\n');
}

void goal_path_text(struct goal_run *r)
{
    const struct path *p = &r->path;
    char text[32];
    goal_time_text(&r->out, p->end, text);
    printf("critical path of %zu steps, %s ns\n", p->count, text);
    for (int i = 0; i < PARTS; i++) {
        uint64_t time = part(&p->sum, i);
        if (!has_part(r, i)) {
            continue;
        }
        goal_time_text(&r->out, time, text);
        if (i == SUMMED) {
            printf("of these, time that others spent on a cpu or nic that was needed\n");
        }
        printf("  %-11s %16s ns %5.1f %%\n", parts[i].name, text,
               p->end > 0 ? 100.0 * (double)time / (double)p->end : 0.0);
    }
    printf("%14s  %-11s  %-7s\n", "time (ns)", "because of", "step");
    for (size_t i = 0; i < p->count; i++) {
        if (p->count > 2 * SHOWN_AT_ENDS && i == SHOWN_AT_ENDS) {
            printf("%14s  (%zu more steps; --json has all)\n", "...", p->count - 2 * SHOWN_AT_ENDS);
            i = p->count - SHOWN_AT_ENDS;
        }
        print_step(r, &p->steps[i]);
    }
}
