/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of `pinwheel nic` that shows the handlers of a NIC; see handlers.h. It reads everything
 * from the stats page, except HPU memory, which is in the process's own memory and is read by
 * process_vm_readv().
 */
#include "handlers.h"

#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { LINE = 16, CHUNK = 4096 };

static uint64_t calls(const struct stats_work *w)
{
    return w->calls[STATS_HEADER] + w->calls[STATS_PAYLOAD] + w->calls[STATS_COMPLETION];
}

static unsigned hpus(const struct nic_stats *b)
{
    return b->hpus != 0 && b->hpus <= PTL_NUM_HPUS ? b->hpus : PTL_NUM_HPUS;
}

/* ---- Text ---- */

/* Returns the time that handlers took: in cycles of the core with RV32, else of this processor. */
static uint64_t took(const struct nic_stats *b, const struct stats_work *w)
{
    return b->core_mhz != 0 ? w->core_cycles : w->cycles;
}

static void print_work(const struct nic_stats *b, const struct stats_work *w)
{
    printf("%10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %14" PRIu64 " %8" PRIu64 " %8" PRIu64,
           w->calls[STATS_HEADER], w->calls[STATS_PAYLOAD], w->calls[STATS_COMPLETION], took(b, w),
           w->faults, w->failed);
}

static void print_titles(const char *first)
{
    printf("    %s %10s %10s %10s %14s %8s %8s", first, "header", "payload", "completion", "cycles",
           "faults", "failed");
}

/* Writes the mask of the HPUs that may run the handlers of a context. */
static const char *mask_text(uint64_t mask, char text[20])
{
    snprintf(text, 20, mask == 0 || mask == UINT64_MAX ? "all" : "%" PRIx64, mask);
    return text;
}

/* Prints the execution contexts, which are entries with handlers. */
static void print_contexts(const struct nic_stats *b)
{
    char mask[20];
    printf("    context  on  pt       match bits      ignore bits        HPU mask     memory\n");
    for (unsigned i = 0; i < STATS_CONTEXTS; i++) {
        const struct stats_context *c = &b->context[i];
        if (c->number != 0) {
            printf("    %7" PRIu64 " %3s %3u %16" PRIx64 " %16" PRIx64 " %15s %10" PRIu64 "%s\n",
                   c->number, nic_kind(c->kind), c->pt_index, c->match_bits, c->ignore_bits,
                   mask_text(c->hpu_mask, mask), c->memory_length,
                   c->inactive != 0 ? "  inactive" : "");
        }
    }
}

/* Prints what the handlers of a context have done. */
static void print_done(const struct nic_stats *b, const struct stats_context *c, const char *name)
{
    printf("    %7s %8" PRIu64, name, c->messages);
    print_work(b, &c->work);
    printf(" %10" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", c->dropped_bytes, c->refused, c->unsent);
}

void nic_handlers_print(const struct nic_stats *b)
{
    char name[24];
    if (b->contexts == 0) {
        return;
    }
    printf("    %-24s%s\n", "handlers run on",
           b->hpus == 0 ? "whoever makes progress" : "threads of their own");
    if (b->core_mhz != 0) {
        printf("    %-24s%.*s, %u MHz\n", "as on RV32 cores", (int)sizeof(b->core), b->core,
               b->core_mhz);
    }
    print_titles("HPU");
    printf("\n");
    for (unsigned i = 0; i < hpus(b); i++) {
        if (b->hpus != 0 || calls(&b->hpu[i]) != 0) {
            printf("    %3u ", i);
            print_work(b, &b->hpu[i]);
            printf("\n");
        }
    }
    print_contexts(b);
    print_titles("context messages");
    printf(" %10s %8s %8s\n", "dropped B", "refused", "unsent");
    for (unsigned i = 0; i < STATS_CONTEXTS; i++) {
        if (b->context[i].number != 0) {
            snprintf(name, sizeof(name), "%" PRIu64, b->context[i].number);
            print_done(b, &b->context[i], name);
        }
    }
    print_done(b, &b->rest, "others");
}

/* ---- Rates ---- */

/* Adds `times` times the counts of a context; `times` may be negative. */
static void add(struct stats_context *to, const struct stats_context *c, int64_t times)
{
    uint64_t n = (uint64_t)times;
    to->messages += n * c->messages;
    to->dropped_bytes += n * c->dropped_bytes;
    to->refused += n * c->refused;
    to->unsent += n * c->unsent;
    for (unsigned k = 0; k < STATS_CALLS; k++) {
        to->work.calls[k] += n * c->work.calls[k];
    }
    to->work.cycles += n * c->work.cycles;
    to->work.core_cycles += n * c->work.core_cycles;
    to->work.faults += n * c->work.faults;
    to->work.failed += n * c->work.failed;
}

static struct stats_context all(const struct nic_stats *b)
{
    struct stats_context sum = {.number = 0};
    add(&sum, &b->rest, 1);
    for (unsigned i = 0; i < STATS_CONTEXTS; i++) {
        if (b->context[i].number != 0) {
            add(&sum, &b->context[i], 1);
        }
    }
    return sum;
}

/* The time between two looks at a NIC. */
struct span {
    const struct nic_stats *stats;
    double seconds;
    uint64_t cycles; /* cycles of the time stamp counter */
    bool titled;
};

static void print_per_second(const struct span *s, uint64_t number)
{
    char text[16];
    printf(" %10s", nic_number((double)number / s->seconds, text));
}

/* Prints a line of rates, or nothing if nothing has changed. HPUs have no counts of messages
 * (`is_context` is false). */
static void print_rate(struct span *s, const char *name, const struct stats_context *c,
                       bool is_context)
{
    char text[16];
    uint64_t called = calls(&c->work), used = took(s->stats, &c->work);
    if (called == 0 && c->work.cycles == 0 && c->messages == 0 && c->dropped_bytes == 0 &&
        c->refused == 0 && c->unsent == 0) {
        return;
    }
    if (!s->titled) {
        printf("    %-14s %10s %10s %10s %10s %10s %6s %10s %10s %10s %10s %10s\n", "handlers",
               "messages/s", "packets/s", "calls/s", "cycles/s", "each", "busy", "faults/s",
               "failed/s", "dropped B/s", "refused/s", "unsent/s");
        s->titled = true;
    }
    printf("    %-14s", name);
    if (is_context) {
        print_per_second(s, c->messages);
    } else {
        printf(" %10s", "-");
    }
    print_per_second(s, c->work.calls[STATS_PAYLOAD]);
    print_per_second(s, called);
    print_per_second(s, used);
    printf(" %10s", called != 0 ? nic_number((double)used / (double)called, text) : "-");
    printf(" %4.0f %%", s->cycles != 0 ? 100.0 * (double)c->work.cycles / (double)s->cycles : 0);
    print_per_second(s, c->work.faults);
    print_per_second(s, c->work.failed);
    if (is_context) {
        print_per_second(s, c->dropped_bytes);
        print_per_second(s, c->refused);
        print_per_second(s, c->unsent);
    } else {
        printf(" %10s %10s %10s", "-", "-", "-");
    }
    printf("\n");
}

void nic_handlers_rates(const struct nic_stats *before, const struct nic_stats *now, double seconds,
                        uint64_t cycles)
{
    struct span s = {.stats = now, .seconds = seconds, .cycles = cycles};
    struct stats_context others = all(now), old = all(before);
    char name[32];
    for (unsigned i = 0; i < hpus(now); i++) {
        struct stats_context c = {.work = now->hpu[i]};
        add(&c, &(struct stats_context){.work = before->hpu[i]}, -1);
        snprintf(name, sizeof(name), "HPU %u", i);
        print_rate(&s, name, &c, false);
    }
    add(&others, &old, -1);
    for (unsigned i = 0; i < STATS_CONTEXTS; i++) {
        struct stats_context c = now->context[i];
        if (c.number == 0) {
            continue;
        }
        if (before->context[i].number == c.number) {
            add(&c, &before->context[i], -1);
        }
        add(&others, &c, -1);
        snprintf(name, sizeof(name), "context %" PRIu64, c.number);
        print_rate(&s, name, &c, true);
    }
    /* includes contexts that have ended between the looks */
    print_rate(&s, "others", &others, true);
}

void nic_handlers_text(const struct nic_stats *b)
{
    for (unsigned i = 0; i < hpus(b); i++) {
        char text[PTL_SPIN_OUTPUT];
        uint64_t printed;
        size_t length = hpu_output_read(&b->outputs[i], text, sizeof(text), &printed);
        const char *at = text, *end = text + length;
        if (printed > length) { /* the ring has lost the beginning of the first line */
            const char *first = memchr(at, '\n', length);
            at = first != NULL ? first + 1 : at;
            printf("HPU %u: ... %" PRIu64 " bytes before\n", i, printed - (uint64_t)(end - at));
        }
        while (at < end) {
            const char *line = memchr(at, '\n', (size_t)(end - at));
            line = line != NULL ? line : end;
            printf("HPU %u: ", i);
            for (; at < line; at++) {
                putchar(isprint((unsigned char)*at) || *at == '\t' ? *at : '?');
            }
            putchar('\n');
            at = line + 1;
        }
    }
}

/* ---- JSON ---- */

static void json_work(struct json *j, const struct stats_work *w)
{
    json_unsigned(j, "headers", w->calls[STATS_HEADER]);
    json_unsigned(j, "packets", w->calls[STATS_PAYLOAD]);
    json_unsigned(j, "completions", w->calls[STATS_COMPLETION]);
    json_unsigned(j, "cycles", w->cycles);
    json_unsigned(j, "core_cycles", w->core_cycles);
    json_unsigned(j, "faults", w->faults);
    json_unsigned(j, "failed", w->failed);
}

static void json_context(struct json *j, const struct stats_context *c)
{
    json_open_object(j, NULL);
    json_unsigned(j, "number", c->number);
    json_string(j, "kind", nic_kind(c->kind));
    json_unsigned(j, "pt_index", c->pt_index);
    json_unsigned(j, "match_bits", c->match_bits);
    json_unsigned(j, "ignore_bits", c->ignore_bits);
    json_unsigned(j, "hpu_mask", c->hpu_mask);
    json_unsigned(j, "memory", c->memory_length);
    json_unsigned(j, "inactive", c->inactive);
    json_unsigned(j, "messages", c->messages);
    json_unsigned(j, "dropped_bytes", c->dropped_bytes);
    json_unsigned(j, "refused", c->refused);
    json_unsigned(j, "unsent", c->unsent);
    json_work(j, &c->work);
    json_close_object(j);
}

void nic_handlers_json(struct json *j, const struct nic_stats *b)
{
    json_unsigned(j, "hpu_threads", b->hpus);
    if (b->core_mhz != 0) {
        char core[sizeof(b->core) + 1] = "";
        memcpy(core, b->core, sizeof(b->core));
        json_string(j, "core", core);
        json_unsigned(j, "core_mhz", b->core_mhz);
    }
    json_open_array(j, "hpus");
    for (unsigned i = 0; i < hpus(b); i++) {
        uint64_t printed;
        char text[PTL_SPIN_OUTPUT + 1];
        size_t length = hpu_output_read(&b->outputs[i], text, PTL_SPIN_OUTPUT, &printed);
        text[length] = '\0';
        for (size_t k = 0; k < length; k++) {
            text[k] = text[k] == '\n' || isprint((unsigned char)text[k]) ? text[k] : '?';
        }
        json_open_object(j, NULL);
        json_work(j, &b->hpu[i]);
        json_unsigned(j, "printed", printed);
        json_string(j, "output", text);
        json_close_object(j);
    }
    json_close_array(j);
    json_unsigned(j, "contexts_ever", b->contexts);
    json_open_array(j, "contexts");
    for (unsigned i = 0; i < STATS_CONTEXTS; i++) {
        if (b->context[i].number != 0) {
            json_context(j, &b->context[i]);
        }
    }
    json_context(j, &b->rest); /* number 0 stands for all contexts that are not listed */
    json_close_array(j);
}

/* ---- HPU memory ---- */

static void dump_line(uint64_t at, const uint8_t *bytes, size_t n)
{
    printf("%08" PRIx64 " ", at);
    for (size_t i = 0; i < LINE; i++) {
        if (i < n) {
            printf(" %02x", bytes[i]);
        } else {
            printf("   ");
        }
    }
    printf("  |");
    for (size_t i = 0; i < n; i++) {
        putchar(isprint(bytes[i]) ? bytes[i] : '.');
    }
    printf("|\n");
}

/* The state of a dump: lines that repeat the line before are printed as one `*`. */
struct dump {
    uint8_t last[LINE];
    bool repeated, any;
};

static void dump_chunk(struct dump *d, uint64_t at, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) {
        size_t length = n - i < LINE ? n - i : LINE;
        bool same = d->any && length == LINE && memcmp(d->last, bytes + i, LINE) == 0;
        if (!same) {
            dump_line(at + i, bytes + i, length);
        } else if (!d->repeated) {
            printf("*\n");
        }
        d->repeated = same;
        d->any = true;
        memcpy(d->last, bytes + i, length);
    }
}

static int read_error(int32_t process, uint64_t context)
{
    int error = errno;
    fprintf(stderr,
            "pinwheel nic: cannot read the HPU memory of context %" PRIu64 " in process %d: %s%s\n",
            context, process, strerror(error),
            error == EPERM ? "; /proc/sys/kernel/yama/ptrace_scope must be 0, or the caller root"
                           : "");
    return 1;
}

int nic_handlers_memory(int32_t process, const struct nic_stats *b, uint64_t context)
{
    const struct stats_context *c = NULL;
    for (unsigned i = 0; i < STATS_CONTEXTS && context != 0; i++) {
        c = b->context[i].number == context ? &b->context[i] : c;
    }
    if (c == NULL) {
        fprintf(stderr,
                "pinwheel nic: process %d has no execution context %" PRIu64
                "; `pinwheel nic %d` lists those that it has\n",
                process, context, process);
        return 1;
    }
    struct dump d = {.any = false};
    for (uint64_t at = 0; at < c->memory_length;) {
        uint8_t bytes[CHUNK];
        uint64_t rest = c->memory_length - at;
        size_t n = rest < CHUNK ? rest : CHUNK;
        struct iovec local = {bytes, n}, remote = {(void *)(uintptr_t)(c->memory + at), n};
        ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (got <= 0) {
            return read_error(process, context);
        }
        dump_chunk(&d, at, bytes, (size_t)got);
        at += (uint64_t)got;
    }
    printf("%08" PRIx64 "\n", c->memory_length);
    return 0;
}
