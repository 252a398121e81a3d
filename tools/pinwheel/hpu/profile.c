/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel hpu profile`: shows in which functions and lines a handler spends its cycles.
 *
 * It recognises calls and returns by the instructions: a jump that stores its return address in ra
 * is a call; a jump to ra that stores none is a return; any other jump into another function is a
 * tail call. The calls form a tree. The cycles from one instruction to the next are added to the
 * call and to the source line of the first of the two.
 */
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct args_option profile_options[] = {
    HPU_SETUP_OPTION_ROWS,
    HPU_JSON_ROW,
    {"--flame", "FILE", "draw a flame graph (SVG)", ARGS_TEXT, HPU_AT(own[0])},
};

struct row {
    char name[160];
    uint64_t cycles, instructions;
};

struct profile {
    const struct hpu_job *job;
    struct hpu_frame *root, *top;
    uint64_t *by_half; /* cycles by half-word of the code */
    uint64_t *runs;    /* by half-word: how often the instruction ran */
    uint32_t before;   /* the instruction that is executed; 0: none yet */
    uint64_t since;    /* the cycle in which it began */
    bool full;         /* memory was short for another frame */
};

static const char *function_name(const struct hpu_job *j, uint32_t pc)
{
    const struct rv32_symbol *s = rv32_image_function(&j->code.image, pc);
    return s != NULL ? s->name : "?";
}

/* Returns the child with a name, which is made if there is none. */
static struct hpu_frame *descend(struct profile *p, struct hpu_frame *parent, const char *name)
{
    struct hpu_frame **link = &parent->child;
    while (*link != NULL && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link == NULL) {
            p->full = true;
            return parent;
        }
        **link = (struct hpu_frame){.name = name, .parent = parent};
    }
    return *link;
}

static void follow(struct profile *p, uint32_t pc)
{
    enum { RA = 1 };
    const struct hpu_job *j = p->job;
    struct rv32_insn i = rv32_program_insn(&j->code.image.code, p->before);
    unsigned class = rv32_traits[i.op].class;
    const char *name = function_name(j, pc);
    bool jumps = class == RV32_CLASS_JAL || class == RV32_CLASS_JALR;
    if (jumps && i.rd == RA) {
        p->top = descend(p, p->top, name);
    } else if (class == RV32_CLASS_JALR && i.rd == 0 && i.rs1 == RA && p->top->parent != p->root) {
        p->top = p->top->parent;
    } else if (strcmp(p->top->name, name) != 0) {
        p->top = descend(p, p->top->parent, name);
    }
}

static void charge(struct profile *p, uint64_t now)
{
    uint32_t half = (p->before - p->job->code.image.code.base) / 2;
    p->top->cycles += now - p->since;
    p->by_half[half] += now - p->since;
    p->runs[half]++;
}

static enum rv32_turn step(void *context, struct rv32_core *core, uint32_t pc, uint64_t cycles)
{
    struct profile *p = context;
    if (p->before == 0) {
        p->top = descend(p, p->root, function_name(p->job, pc));
    } else {
        charge(p, cycles);
        follow(p, pc);
    }
    p->before = pc;
    p->since = cycles;
    return RV32_GO_ON;
}

static const struct rv32_result *run_core(void *context, struct rv32_core *core,
                                          const struct rv32_call *call)
{
    return rv32_core_trace(core, call, step, context);
}

static int by_cycles(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->cycles != y->cycles ? (x->cycles < y->cycles ? 1 : -1) : strcmp(x->name, y->name);
}

static void line_name(const struct hpu_job *j, uint32_t pc, char *text, size_t size)
{
    const struct rv32_line *l = rv32_lines_at(&j->code.lines, pc);
    if (l == NULL) {
        snprintf(text, size, "(%s)", function_name(j, pc));
    } else {
        snprintf(text, size, "%s:%d", l->file, l->line);
    }
}

/* Adds up the cycles by function, or by line; returns the number of rows, which are sorted with the
 * most cycles first. */
static size_t sum_rows(const struct profile *p, bool lines, struct row *rows)
{
    const struct rv32_segment *code = &p->job->code.image.code;
    size_t count = 0;
    for (uint32_t half = 0; half < code->size / 2; half++) {
        struct row row = {.cycles = p->by_half[half], .instructions = p->runs[half]};
        if (row.instructions == 0) {
            continue;
        }
        if (lines) {
            line_name(p->job, code->base + 2 * half, row.name, sizeof(row.name));
        } else {
            snprintf(row.name, sizeof(row.name), "%s",
                     function_name(p->job, code->base + 2 * half));
        }
        size_t at = 0;
        while (at < count && strcmp(rows[at].name, row.name) != 0) {
            at++;
        }
        if (at == count) {
            rows[count++] = row;
        } else {
            rows[at].cycles += row.cycles;
            rows[at].instructions += row.instructions;
        }
    }
    qsort(rows, count, sizeof(*rows), by_cycles);
    return count;
}

static void print_rows(const char *title, const struct row *rows, size_t count, uint64_t cycles)
{
    printf("\n%10s %6s %12s  by %s\n", "cycles", "%", "instructions", title);
    for (size_t i = 0; i < count; i++) {
        printf("%10" PRIu64 " %6.1f %12" PRIu64 "  %s\n", rows[i].cycles,
               cycles > 0 ? 100.0 * (double)rows[i].cycles / (double)cycles : 0,
               rows[i].instructions, rows[i].name);
    }
}

static void json_rows(struct json *to, const char *title, const struct row *rows, size_t count)
{
    json_open_array(to, title);
    for (size_t i = 0; i < count; i++) {
        json_open_object(to, NULL);
        json_string(to, "name", rows[i].name);
        json_unsigned(to, "cycles", rows[i].cycles);
        json_unsigned(to, "instructions", rows[i].instructions);
        json_close_object(to);
    }
    json_close_array(to);
}

static int print(const struct profile *p, const struct rv32_result *r, struct row *rows)
{
    const struct hpu_job *j = p->job;
    if (!j->json) {
        int rc = hpu_result_print(j, r);
        print_rows("function", rows, sum_rows(p, false, rows), r->cycles);
        if (j->code.lines.count > 0) {
            print_rows("line", rows, sum_rows(p, true, rows), r->cycles);
        }
        return rc;
    }
    struct json to = {.to = stdout};
    json_open_object(&to, NULL);
    int rc = hpu_result_json(j, r, &to);
    json_rows(&to, "functions", rows, sum_rows(p, false, rows));
    if (j->code.lines.count > 0) {
        json_rows(&to, "lines", rows, sum_rows(p, true, rows));
    }
    json_close_object(&to);
    return json_end(&to) != 0 ? 1 : rc;
}

static void free_frames(struct hpu_frame *f)
{
    while (f != NULL) {
        struct hpu_frame *next = f->next;
        free_frames(f->child);
        free(f);
        f = next;
    }
}

static int profile(struct hpu_job *j, struct args *a)
{
    const char *flame = j->own[0];
    if (hpu_job_open(j, "profile") != 0) {
        return 1;
    }
    struct hpu_frame root = {.name = "all"};
    size_t halves = j->code.image.code.size / 2 + 1;
    struct profile p = {.job = j, .root = &root, .top = &root};
    p.by_half = calloc(halves, sizeof(*p.by_half));
    p.runs = calloc(halves, sizeof(*p.runs));
    struct row *rows = calloc(halves, sizeof(*rows));
    int rc = 1;
    if (p.by_half != NULL && p.runs != NULL && rows != NULL) {
        const struct rv32_result *r = hpu_job_run(j, "profile", run_core, &p);
        if (r != NULL && p.before != 0 && r->cycles > p.since) {
            charge(&p, r->cycles);
        }
        rc = r != NULL ? print(&p, r, rows) : 1;
        if (flame != NULL && hpu_flame_draw(&root, flame, hpu_job_name(j)) != 0) {
            rc = 1;
        }
    }
    if (p.by_half == NULL || p.runs == NULL || rows == NULL || p.full) {
        fprintf(stderr, "pinwheel hpu profile: no memory\n");
        rc = 1;
    }
    free(rows);
    free(p.by_half);
    free(p.runs);
    free_frames(root.child);
    return rc;
}

int hpu_command_profile(int argc, char **argv)
{
    struct args a = {
        .command = "hpu profile",
        .operands = "IMAGE",
        .summary =
            "Runs one handler, or function, of an image for RV32 and says where its cycles went, "
            "by function\nand, if the image has debug information, by source line.",
        ARGS_OPTIONS(profile_options)};
    return hpu_job_command(&a, argc, argv, profile);
}
