/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel hpu disas`: prints the instructions of an image, function by function. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const struct args_option disas_options[] = {
    {"--function", "NAME", "only this one", ARGS_TEXT, HPU_AT(own[0])},
};

static void print_function(const struct hpu_job *j, const struct rv32_symbol *s, uint32_t end)
{
    const struct rv32_line *before = NULL;
    printf("\n%08x <%s>:\n", s->address, s->name);
    for (uint32_t pc = s->address; pc + 1 < end;) {
        char text[RV32_TEXT];
        struct rv32_insn i = rv32_program_insn(&j->code.image.code, pc);
        const struct rv32_line *l = rv32_lines_at(&j->code.lines, pc);
        if (l != NULL && (before == NULL || l->line != before->line || l->file != before->file)) {
            printf("%s:%d\n", l->file, l->line);
        }
        before = l;
        rv32_disassemble(&i, pc, text);
        printf("%08x:\t%0*x%*s\t%s\n", pc, 2 * i.length, i.bits, 8 - 2 * i.length, "", text);
        pc += i.length;
    }
}

static int disassemble(struct hpu_job *j, struct args *a)
{
    const char *only = j->own[0];
    if (hpu_image_open(j, "disas") != 0) {
        return 1;
    }
    const struct rv32_image *image = &j->code.image;
    bool found = false;
    for (size_t n = 0; n < image->function_count; n++) {
        const struct rv32_symbol *s = &image->functions[n];
        uint32_t end = image->code.base + image->code.size;
        if (s->size > 0) {
            end = s->address + s->size;
        } else if (n + 1 < image->function_count) {
            end = s[1].address;
        }
        if (only == NULL || strcmp(only, s->name) == 0) {
            print_function(j, s, end);
            found = true;
        }
    }
    if (!found) {
        fprintf(stderr, "pinwheel hpu disas: %s: has no function %s\n", j->path, only);
    }
    return found ? 0 : 1;
}

int hpu_command_disas(int argc, char **argv)
{
    struct args a = {
        .command = "hpu disas",
        .operands = "IMAGE",
        .summary = "Prints the instructions of an image for RV32, as objdump -d -M no-aliases "
                   "does.",
        ARGS_OPTIONS(disas_options)};
    return hpu_job_command(&a, argc, argv, disassemble);
}
