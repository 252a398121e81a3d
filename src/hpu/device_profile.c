/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the cycles of device code go; see device_profile.h. */
#include "hpu/device_profile.h"

#include <stdlib.h>

/* The rows of a handler's instructions, by half-word of its image's code; NULL: it has not run. */
struct hpu_device_seen {
    struct hpu_device_seen *next;
    const struct hpu_image *image;
    const char *name;
    uint64_t *row[];
};

/* A call that runs: its instruction, and the cycle in which that began. */
struct run {
    const struct hpu_device_code *code;
    struct hpu_device_seen *seen;
    uint64_t *row; /* of the instruction; NULL: none has begun */
    uint64_t since;
};

static struct hpu_device_seen *seen_of(const struct hpu_device_code *code)
{
    struct hpu_device *t = code->device;
    struct hpu_device_seen *s = t->seen;
    while (s != NULL && (s->image != code->image || s->name != code->name)) {
        s = s->next;
    }
    if (s == NULL) {
        s = calloc(1, sizeof(*s) + (code->image->image.code.size / 2 + 1) * sizeof(s->row[0]));
        if (s != NULL) {
            s->next = t->seen;
            s->image = code->image;
            s->name = code->name;
            t->seen = s;
        }
    }
    return s;
}

static uint64_t *row_of(const struct run *r, uint32_t pc)
{
    const struct hpu_image *image = r->code->image;
    uint64_t **row = &r->seen->row[(pc - image->image.code.base) / 2];
    if (*row == NULL) {
        const struct hpu_device_rows *rows = r->code->device->rows;
        const struct rv32_symbol *s = rv32_image_function(&image->image, pc);
        const struct rv32_line *l = rv32_lines_at(&image->lines, pc);
        struct hpu_code_place p = {.handler = r->code->name, .function = s != NULL ? s->name : "?"};
        if (l != NULL) {
            p.file = l->file;
            p.line = l->line;
        }
        *row = rows->row(rows->arg, &p);
    }
    return *row;
}

static void charge(const struct run *r, uint64_t cycles)
{
    if (r->row != NULL) {
        r->row[0] += cycles - r->since;
        r->row[1]++;
    }
}

static enum rv32_turn watch(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    (void)core;
    struct run *r = context;
    charge(r, cycles);
    r->row = row_of(r, pc);
    r->since = cycles;
    return RV32_GO_ON;
}

const struct rv32_result *hpu_device_profile(const struct hpu_device_code *code,
                                             struct rv32_core *core, const struct rv32_call *call)
{
    struct run run = {.code = code, .seen = seen_of(code)};
    if (run.seen == NULL) {
        return rv32_core_call(core, call);
    }
    const struct rv32_result *r = rv32_core_trace(core, call, watch, &run);
    charge(&run, r->cycles);
    return r;
}

void hpu_device_forget(struct hpu_device *t)
{
    while (t->seen != NULL) {
        struct hpu_device_seen *s = t->seen;
        t->seen = s->next;
        free(s);
    }
}
