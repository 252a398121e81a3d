/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and prints the calls that a handler makes; see calls.h. */
#include "calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = HPU_LINE_MOST + 1, CALL_TEXT = 4 * HPU_LINE_MOST + 512 };

/* ---- Recording ---- */

static struct hpu_made_call *made_last(const struct hpu_calls *c)
{
    return c->count > 0 && c->count <= HPU_CALLS_MOST && !c->full ? &c->made[c->count - 1] : NULL;
}

/* Makes room for one more call; the array doubles when the count is a power of two. */
static bool make_room(struct hpu_calls *c)
{
    if ((c->count & (c->count - 1)) != 0 || c->count >= HPU_CALLS_MOST || c->full) {
        return !c->full;
    }
    size_t room = c->count == 0 ? 1 : 2 * (size_t)c->count;
    struct hpu_made_call *more = realloc(c->made, room * sizeof(*more));
    if (more != NULL) {
        c->made = more;
    }
    c->full = more == NULL;
    return more != NULL;
}

void hpu_calls_begin(struct hpu_calls *c, const struct hpu_device_call *call)
{
    if (make_room(c) && c->count < HPU_CALLS_MOST) {
        c->made[c->count] = (struct hpu_made_call){.call = *call};
    }
    c->count++;
}

/* Returns the text that the call has printed; NULL: none. */
static char *take_text(struct hpu_calls *c)
{
    char text[TEXT_MOST];
    uint64_t written = c->printed;
    size_t n = hpu_output_read(c->output, text, TEXT_MOST - 1, &written);
    uint64_t more = written - c->printed;
    c->printed = written;
    return more > 0 && more <= n ? strndup(text + n - more, more) : NULL;
}

void hpu_calls_end(struct hpu_calls *c, const struct hpu_device_call *call)
{
    struct hpu_made_call *m = made_last(c);
    c->cycles += call->cycles;
    if (m != NULL) {
        m->call = *call;
        m->returned = true;
        m->text = take_text(c);
    }
}

void hpu_calls_free(struct hpu_calls *c)
{
    for (uint64_t i = 0; c->made != NULL && i < c->count && i < HPU_CALLS_MOST; i++) {
        free(c->made[i].text);
    }
    free(c->made);
    *c = (struct hpu_calls){0};
}

/* ---- Text ---- */

struct words {
    char *at;
    size_t left;
};

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct words *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(w->at, w->left, format, arguments);
    va_end(arguments);
    size_t more = n < 0 ? 0 : (size_t)n < w->left ? (size_t)n : w->left - 1;
    w->at += more;
    w->left -= more;
}

static void add_pointer(struct words *w, const struct rv32_core *core, uint32_t pointer)
{
    for (int i = 1; i <= core->region_count; i++) {
        const struct rv32_region *r = &core->region[i];
        if (r->size != 0 && pointer - r->base < r->size) {
            add(w, pointer == r->base ? "%s" : "%s+%u", r->name, pointer - r->base);
            return;
        }
    }
    add(w, pointer == 0 ? "NULL" : "0x%08x", pointer);
}

static void add_quoted(struct words *w, const char *text)
{
    add(w, "\"");
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n') {
            add(w, "\\n");
        } else if (c == '"' || c == '\\') {
            add(w, "\\%c", c);
        } else if (c < ' ' || c > '~') {
            add(w, "\\%03o", c);
        } else {
            add(w, "%c", c);
        }
    }
    add(w, "\"");
}

/* Writes a number: a large one in hexadecimal, since it is more often a mask or address than a
 * count. */
static void add_number(struct words *w, uint64_t value)
{
    if (value <= UINT32_MAX) {
        add(w, "%" PRIu64, value);
    } else {
        add(w, "0x%" PRIx64, value);
    }
}

/* Writes a process: a rank, or an address. */
static void add_process(struct words *w, uint64_t process)
{
    uint32_t nid = (uint32_t)process, pid = (uint32_t)(process >> 32);
    if (pid == 0) {
        add(w, "rank %u", nid);
    } else {
        add(w, "%u.%u.%u.%u:%u", nid >> 24, nid >> 16 & 255, nid >> 8 & 255, nid & 255, pid);
    }
}

void hpu_call_text(const struct hpu_made_call *m, const struct rv32_core *core, char *text,
                   size_t size)
{
    struct words w = {text, size};
    const struct hpu_device_call *call = &m->call;
    add(&w, "%s(", call->name);
    for (int i = 0; i < call->count; i++) {
        add(&w, i > 0 ? ", " : "");
        if (m->text != NULL && i == 0) {
            add_quoted(&w, m->text);
        } else if (call->kind[i] == HPU_DEVICE_POINTER) {
            add_pointer(&w, core, (uint32_t)call->argument[i]);
        } else if (call->kind[i] == HPU_DEVICE_PROCESS) {
            add_process(&w, call->argument[i]);
        } else {
            add_number(&w, call->argument[i]);
        }
    }
    add(&w, ")");
    if (!m->returned) {
        add(&w, " has not returned");
    } else if (call->gives) {
        add(&w, " = %u", call->result);
    }
}

/* ---- All calls ---- */

static uint64_t noted(const struct hpu_calls *c)
{
    return c->full ? 0 : c->count < HPU_CALLS_MOST ? c->count : HPU_CALLS_MOST;
}

void hpu_calls_print(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                     const void *context)
{
    char text[CALL_TEXT], place[160];
    printf("calls         %" PRIu64 ", %" PRIu64 " cycles\n", c->count, c->cycles);
    for (uint64_t i = 0; i < noted(c); i++) {
        const struct hpu_made_call *m = &c->made[i];
        hpu_call_text(m, core, text, sizeof(text));
        where(context, m->call.pc, place, sizeof(place));
        printf("%s%8" PRIu64 " %6" PRIu64 "  %-56s  %s\n", i == 0 ? "   cycle   took  call\n" : "",
               m->call.cycle, m->call.cycles, text, place);
    }
    if (c->count > noted(c)) {
        printf("                 and %" PRIu64 " more\n", c->count - noted(c));
    }
}

void hpu_calls_json(const struct hpu_calls *c, const struct rv32_core *core, hpu_where_text *where,
                    const void *context, struct json *to)
{
    char text[CALL_TEXT], place[160];
    json_unsigned(to, "call_count", c->count);
    json_unsigned(to, "call_cycles", c->cycles);
    json_open_array(to, "calls");
    for (uint64_t i = 0; i < noted(c); i++) {
        const struct hpu_made_call *m = &c->made[i];
        hpu_call_text(m, core, text, sizeof(text));
        where(context, m->call.pc, place, sizeof(place));
        json_open_object(to, NULL);
        json_string(to, "name", m->call.name);
        json_unsigned(to, "cycle", m->call.cycle);
        json_unsigned(to, "cycles", m->call.cycles);
        json_string(to, "call", text);
        json_bool(to, "returned", m->returned);
        if (m->returned && m->call.gives) {
            json_unsigned(to, "result", m->call.result);
        }
        json_string(to, "where", place);
        json_close_object(to);
    }
    json_close_array(to);
}
