/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the result of a run, for all commands that run something; see commands.h. */
#include "commands.h"

#include <inttypes.h>
#include <string.h>

const char *hpu_job_name(const struct hpu_job *j)
{
    return j->handler.name != NULL ? j->handler.name : j->function;
}

void hpu_job_text(const struct hpu_job *j, const struct rv32_result *r, struct rv32_error *text)
{
    const struct hpu_handler *h = &j->handler;
    rv32_result_text(r, &j->code.image, &j->code.lines, text);
    if (h->name == NULL) {
        return;
    }
    if (r->end != RV32_RETURNED) {
        snprintf(text->text, sizeof(text->text), "%s", h->why);
    } else if (h->returned == (int)r->value) {
        snprintf(text->text, sizeof(text->text), "returned %s", hpu_handler_code(h->returned));
    } else {
        snprintf(text->text, sizeof(text->text), "returned %d, which counts as %s", (int)r->value,
                 hpu_handler_code(h->returned));
    }
}

static void where(const void *context, uint32_t pc, char *text, size_t size)
{
    hpu_where(context, pc, text, size);
}

/* Prints the host's counters that the handler has used. */
static void print_counts(const struct hpu_host *host)
{
    for (int i = 0; i < host->count_count; i++) {
        const struct hpu_host_count *c = &host->counts[i];
        printf("counter       0x%08x: %" PRIu64 " successes, %" PRIu64 " failures\n", c->ct,
               c->value.success, c->value.failure);
    }
    for (int i = 0; i < PTL_SPIN_COUNTERS; i++) {
        if (host->counters[i].count != 0) {
            printf("counter       %d of the NI: %" PRIu64 " in %" PRIu64 " calls\n", i,
                   host->counters[i].sum, host->counters[i].count);
        }
    }
    if (host->lost != 0) {
        printf("lost          %" PRIu64 " sent beyond what the peers hold\n", host->lost);
    }
}

static void json_counts(const struct hpu_host *host, struct json *to)
{
    json_open_array(to, "counters");
    for (int i = 0; i < host->count_count; i++) {
        json_open_object(to, NULL);
        json_unsigned(to, "handle", host->counts[i].ct);
        json_unsigned(to, "success", host->counts[i].value.success);
        json_unsigned(to, "failure", host->counts[i].value.failure);
        json_close_object(to);
    }
    for (int i = 0; i < PTL_SPIN_COUNTERS; i++) {
        if (host->counters[i].count != 0) {
            json_open_object(to, NULL);
            json_number(to, "index", i);
            json_unsigned(to, "sum", host->counters[i].sum);
            json_unsigned(to, "count", host->counters[i].count);
            json_close_object(to);
        }
    }
    json_close_array(to);
    json_unsigned(to, "sent_beyond_peers", host->lost);
}

static double nanoseconds(const struct hpu_job *j, uint64_t cycles)
{
    return 1000.0 * (double)cycles / j->timing->clock_mhz;
}

int hpu_result_print(const struct hpu_job *j, const struct rv32_result *r)
{
    struct rv32_error text;
    hpu_job_text(j, r, &text);
    printf("result        %s\n", text.text);
    printf("instructions  %" PRIu64 "\n", r->instructions);
    printf("cycles        %" PRIu64 ", %s instruction cache\n", r->cycles,
           j->cold ? "cold" : "warm");
    printf("core          %s, %u MHz: %.1f ns%s%s%s\n", j->timing->name, j->timing->clock_mhz,
           nanoseconds(j, r->cycles), j->timing->label != NULL ? " (" : "",
           j->timing->label != NULL ? j->timing->label : "", j->timing->label != NULL ? ")" : "");
    if (j->handler.name != NULL) {
        hpu_calls_print(&j->handler.calls, j->handler.core, where, j);
        print_counts(&j->handler.host);
    }
    return r->end == RV32_RETURNED ? 0 : 1;
}

int hpu_result_json(const struct hpu_job *j, const struct rv32_result *r, struct json *to)
{
    struct rv32_error text;
    hpu_job_text(j, r, &text);
    json_string(to, j->handler.name != NULL ? "handler" : "function", hpu_job_name(j));
    json_bool(to, "returned", r->end == RV32_RETURNED);
    if (r->end == RV32_RETURNED) {
        json_unsigned(to, "value", r->value);
    }
    json_string(to, "result", text.text);
    json_unsigned(to, "instructions", r->instructions);
    json_unsigned(to, "cycles", r->cycles);
    json_bool(to, "cold", j->cold);
    json_string(to, "timing", j->timing->name);
    if (j->timing->label != NULL) {
        json_string(to, "label", j->timing->label);
    }
    json_unsigned(to, "clock_mhz", j->timing->clock_mhz);
    json_real(to, "nanoseconds", nanoseconds(j, r->cycles));
    if (j->handler.name != NULL) {
        hpu_calls_json(&j->handler.calls, j->handler.core, where, j, to);
        json_counts(&j->handler.host, to);
    }
    return r->end == RV32_RETURNED ? 0 : 1;
}

void hpu_where(const struct hpu_job *j, uint32_t pc, char *text, size_t size)
{
    const struct rv32_symbol *s = rv32_image_function(&j->code.image, pc);
    const struct rv32_line *l = rv32_lines_at(&j->code.lines, pc);
    int n = s != NULL ? snprintf(text, size, "%s+0x%x", s->name, pc - s->address)
                      : snprintf(text, size, "?");
    if (l != NULL && n >= 0 && (size_t)n < size) {
        const char *slash = strrchr(l->file, '/');
        snprintf(text + n, size - (size_t)n, " %s:%d", slash != NULL ? slash + 1 : l->file,
                 l->line);
    }
}
