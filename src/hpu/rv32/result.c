/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call ended, in words (core.h). */
#include "core.h"

#include <inttypes.h>
#include <stdio.h>

static void describe(const struct rv32_result *r, const struct rv32_image *image, char *text,
                     size_t size)
{
    switch (r->end) {
    case RV32_RETURNED:
        snprintf(text, size, "returned 0x%08x", r->value);
        break;
    case RV32_STOPPED:
        snprintf(text, size, "stopped by a handler call with %u", r->value);
        break;
    case RV32_TIMEOUT:
        snprintf(text, size, "TIMEOUT: used %" PRIu64 " cycles, more than its budget", r->cycles);
        break;
    case RV32_FAULT_LOAD:
        snprintf(text, size, "SEGV: may not load %u bytes at 0x%08x", r->bytes, r->address);
        break;
    case RV32_FAULT_STORE:
        snprintf(text, size, "SEGV: may not store %u bytes at 0x%08x", r->bytes, r->address);
        break;
    case RV32_FAULT_ATOMIC:
        snprintf(text, size, "SEGV: no atomic at 0x%08x: %s", r->address,
                 r->address % 4 != 0 ? "misaligned" : "not its memory");
        break;
    case RV32_FAULT_STACK:
        snprintf(text, size, "SEGV: stack overflow: %u bytes at 0x%08x by sp", r->bytes,
                 r->address);
        break;
    case RV32_FAULT_ILLEGAL:
        snprintf(text, size, "SEGV: illegal instruction");
        if (image != NULL && r->pc - image->code.base + 1 < image->code.size) {
            struct rv32_insn i = rv32_program_insn(&image->code, r->pc);
            snprintf(text, size, "SEGV: illegal instruction 0x%0*x", 2 * i.length, i.bits);
        }
        break;
    case RV32_FAULT_JUMP:
        snprintf(text, size, "SEGV: control left the code");
        break;
    case RV32_FAULT_ECALL:
        snprintf(text, size, "SEGV: ecall, which nobody serves here");
        break;
    case RV32_FAULT_EBREAK:
        snprintf(text, size, "SEGV: ebreak");
        break;
    case RV32_FAULT_DIVIDE:
        snprintf(text, size, "SEGV: division by 0, or of the smallest number by -1");
        break;
    }
}

void rv32_result_text(const struct rv32_result *r, const struct rv32_image *image,
                      const struct rv32_lines *lines, struct rv32_error *text)
{
    char what[96], function[80] = "", source[96] = "";
    describe(r, image, what, sizeof(what));
    if (r->end == RV32_RETURNED) {
        snprintf(text->text, sizeof(text->text), "%s", what);
        return;
    }
    const struct rv32_symbol *s = image != NULL ? rv32_image_function(image, r->pc) : NULL;
    const struct rv32_line *l = lines != NULL ? rv32_lines_at(lines, r->pc) : NULL;
    if (s != NULL) {
        snprintf(function, sizeof(function), " in %.60s+0x%x", s->name, r->pc - s->address);
    }
    if (l != NULL) {
        snprintf(source, sizeof(source), ", %.70s:%d", l->file, l->line);
    }
    snprintf(text->text, sizeof(text->text), "%s; pc 0x%08x%s%s", what, r->pc, function, source);
}
