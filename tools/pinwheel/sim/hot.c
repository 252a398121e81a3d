/* SPDX-License-Identifier: BSD-3-Clause */
/* Where cycles went; see hot.h. */
#include "hot.h"

#include "pinwheel/util/json.h"
#include "state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 40 };

/* ---- reading ---- */

/* A row of a rank, as it is in memory that its program may have written over. */
static struct sim_spent read_row(const struct sim_spent *from)
{
    struct sim_spent is;
    memcpy(&is, from, sizeof(is));
    is.handler[sizeof(is.handler) - 1] = '\0';
    is.function[sizeof(is.function) - 1] = '\0';
    is.file[sizeof(is.file) - 1] = '\0';
    return is;
}

static int by_place(const void *a, const void *b)
{
    const struct sim_spent *x = a, *y = b;
    int order = strcmp(x->handler, y->handler);
    order = order != 0 ? order : strcmp(x->function, y->function);
    order = order != 0 ? order : strcmp(x->file, y->file);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static int by_cycles(const void *a, const void *b)
{
    const struct sim_spent *x = a, *y = b;
    return x->cycles != y->cycles ? (x->cycles < y->cycles ? 1 : -1) : by_place(a, b);
}

/* Adds up rows of one place, and sorts them. */
static size_t merge(struct sim_spent *row, size_t count)
{
    size_t kept = 0;
    qsort(row, count, sizeof(*row), by_place);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && by_place(&row[kept - 1], &row[i]) == 0) {
            row[kept - 1].cycles += row[i].cycles;
            row[kept - 1].instructions += row[i].instructions;
        } else {
            row[kept++] = row[i];
        }
    }
    qsort(row, kept, sizeof(*row), by_cycles);
    return kept;
}

static struct sim_spent *rows_of(const struct coordinator *c, uint32_t rank)
{
    return (struct sim_spent *)((uintptr_t)c->segment + c->layout.spent_at +
                                rank * sim_spent_bytes(&c->layout));
}

struct sim_hot *hot_take(const struct coordinator *c)
{
    size_t count = 0;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_spent *rows = rows_of(c, i);
        for (size_t k = 0; k < SIM_SPENT && rows[k].used != 0; k++) {
            count++;
        }
    }
    struct sim_hot *h = malloc(sizeof(*h) + (count + 1) * sizeof(h->row[0]));
    if (h == NULL) {
        return NULL;
    }
    *h = (struct sim_hot){.ranks = c->setup.ranks};
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_spent *rows = rows_of(c, i);
        for (size_t k = 0; k < SIM_SPENT && rows[k].used != 0 && h->count < count; k++) {
            h->row[h->count++] = read_row(&rows[k]);
            h->full |= k == SIM_SPENT - 1;
        }
    }
    h->count = merge(h->row, h->count);
    return h;
}

/* ---- printing ---- */

static void print_rows(const struct sim_spent *row, size_t count, uint64_t all, bool lines,
                       FILE *to)
{
    fprintf(to, "\n%14s %6s %14s  %-28s %-28s %s\n", "cycles", "%", "instructions", "handler",
            "function", lines ? "line" : "");
    for (size_t i = 0; i < count && i < LINES; i++) {
        const struct sim_spent *r = &row[i];
        char line[96] = "";
        if (lines && r->file[0] != '\0') {
            const char *name = strrchr(r->file, '/'); /* with its folder, in JSON */
            snprintf(line, sizeof(line), "%s:%" PRIu32, name != NULL ? name + 1 : r->file, r->line);
        }
        fprintf(to, "%14" PRIu64 " %6.1f %14" PRIu64 "  %-28s %-28s %s\n", r->cycles,
                all != 0 ? 100 * (double)r->cycles / (double)all : 0, r->instructions, r->handler,
                r->function, line);
    }
    if (count > LINES) {
        fprintf(to, "%14s and %zu more, which --json has\n", "", count - LINES);
    }
}

void hot_print(const struct sim_hot *h, FILE *to)
{
    uint64_t all = 0;
    struct sim_spent *functions = malloc((h->count + 1) * sizeof(*functions));
    for (size_t i = 0; i < h->count; i++) {
        all += h->row[i].cycles;
    }
    if (h->count == 0) {
        fputs("pinwheel sim: --profile: no handler of RV32 code ran: build handlers by `pinwheel "
              "cc`, and set PINWHEEL_HPU=rv32\n",
              to);
    } else if (functions != NULL) {
        memcpy(functions, h->row, h->count * sizeof(*functions));
        for (size_t i = 0; i < h->count; i++) {
            functions[i].file[0] = '\0';
            functions[i].line = 0;
        }
        print_rows(functions, merge(functions, h->count), all, false, to);
        print_rows(h->row, h->count, all, true, to);
    }
    if (h->full) {
        fprintf(to, "a rank has room for %d places: what is beyond is (others)\n", SIM_SPENT - 1);
    }
    free(functions);
}

void hot_json(const struct sim_hot *h, FILE *to)
{
    struct json j = {.to = to};
    json_open_array(&j, NULL);
    for (size_t i = 0; i < h->count; i++) {
        const struct sim_spent *r = &h->row[i];
        json_open_object(&j, NULL);
        json_string(&j, "handler", r->handler);
        json_string(&j, "function", r->function);
        if (r->file[0] != '\0') {
            json_string(&j, "file", r->file);
            json_unsigned(&j, "line", r->line);
        }
        json_unsigned(&j, "cycles", r->cycles);
        json_unsigned(&j, "instructions", r->instructions);
        json_close_object(&j);
    }
    json_close_array(&j);
}
