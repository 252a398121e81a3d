/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes in words how a call ended (core.h). */
#include "core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* bytes: an access at most so far below the stack counts as one beside it */
    NEAR_STACK = 64 << 10,
    NEAR = 4 << 10,       /* ... and so far from other memory */
    FAR_STACK = 16 << 20, /* an sp farther below the stack was overwritten: no frame is so large */
};

/* ---- Near which memory an access failed ---- */

static bool is_stack(const char *name)
{
    return strcmp(name, "stack") == 0;
}

/* Returns by how many bytes an address is beside a region; 0: it is in there. */
static uint32_t distance(const struct rv32_region *r, uint32_t address)
{
    uint32_t below = r->base - address, behind = address - (r->base + r->size);
    return address - r->base < r->size ? 0 : address < r->base ? below : behind + 1;
}

static bool is_access(enum rv32_end end)
{
    return end == RV32_FAULT_LOAD || end == RV32_FAULT_STORE || end == RV32_FAULT_ATOMIC ||
           end == RV32_FAULT_STACK;
}

void rv32_result_near(struct rv32_core *core)
{
    struct rv32_result *result = &core->result;
    const struct rv32_region *nearest = NULL;
    uint32_t least = UINT32_MAX;
    result->near = (struct rv32_near){.name = NULL};
    for (int i = 1; is_access(result->end) && i <= core->region_count; i++) {
        const struct rv32_region *r = &core->region[i];
        bool stack = is_stack(r->name) && result->address < r->base;
        bool overflow = stack && (result->sp < r->base || result->end == RV32_FAULT_STACK);
        uint32_t away = overflow ? 0 : distance(r, result->address);
        if (r->size > 0 && away <= (stack ? NEAR_STACK : NEAR) && away < least) {
            nearest = r;
            least = away;
        }
    }
    if (nearest != NULL) {
        result->near = (struct rv32_near){nearest->name, nearest->base, nearest->size,
                                          nearest->device != NULL};
    }
}

static bool sp_is_astray(const struct rv32_result *r)
{
    return r->sp < r->near.base && r->near.base - r->sp > FAR_STACK;
}

enum { BYTES_TEXT = 24 };

static const char *bytes_text(uint32_t count, char text[BYTES_TEXT])
{
    snprintf(text, BYTES_TEXT, "%u byte%s", count, count == 1 ? "" : "s");
    return text;
}

void rv32_result_place(const struct rv32_result *r, char text[RV32_PLACE])
{
    enum { size = RV32_PLACE };
    const struct rv32_near *n = &r->near;
    uint32_t end = n->base + n->size;
    char bytes[BYTES_TEXT];
    text[0] = '\0';
    if (!is_access(r->end) || n->name == NULL) {
        return; /* `near` is set for accesses only */
    }
    bool overflow = is_stack(n->name) && r->address < n->base;
    uint32_t by = overflow && r->sp < r->address ? n->base - r->sp : n->base - r->address;
    if (overflow && sp_is_astray(r)) {
        snprintf(text, size,
                 ", the stack pointer is 0x%08x, outside the stack of %u bytes at 0x%08x", r->sp,
                 n->size, n->base);
    } else if (overflow) {
        snprintf(text, size, ", a stack overflow by %u: the stack has %u bytes at 0x%08x", by,
                 n->size, n->base);
    } else if (r->address < n->base) {
        snprintf(text, size, ", %s below the %s, %u bytes at 0x%08x",
                 bytes_text(n->base - r->address, bytes), n->name, n->size, n->base);
    } else if (r->address >= end) {
        snprintf(text, size, ", %s behind the %s, %u bytes at 0x%08x",
                 bytes_text(r->address - end, bytes), n->name, n->size, n->base);
    } else if (r->bytes > end - r->address) {
        snprintf(text, size, ", beyond the end of the %s, %u bytes at 0x%08x", n->name, n->size,
                 n->base);
    } else if (n->device) {
        snprintf(text, size, " in the %s, which has no such register", n->name);
    } else if (r->end != RV32_FAULT_ATOMIC || r->address % 4 == 0) {
        snprintf(text, size, " in the %s, %u bytes at 0x%08x, which is only read", n->name, n->size,
                 n->base);
    }
}

/* ---- In words ---- */

static void describe(const struct rv32_result *r, const struct rv32_image *image, char *text,
                     size_t size)
{
    static const char overflow[] = ", a stack overflow";
    char place[RV32_PLACE], bytes[BYTES_TEXT];
    rv32_result_place(r, place);
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
        snprintf(text, size, "SEGV: may not load %s at 0x%08x%s", bytes_text(r->bytes, bytes),
                 r->address, place);
        break;
    case RV32_FAULT_STORE:
        snprintf(text, size, "SEGV: may not store %s at 0x%08x%s", bytes_text(r->bytes, bytes),
                 r->address, place);
        break;
    case RV32_FAULT_ATOMIC:
        if (r->address % 4 != 0) {
            snprintf(text, size,
                     "SEGV: no atomic at 0x%08x: misaligned by %u, must be a multiple of 4%s",
                     r->address, r->address % 4, place);
        } else {
            snprintf(text, size, "SEGV: no atomic at 0x%08x: not its memory%s", r->address, place);
        }
        break;
    case RV32_FAULT_STACK: /* `place` describes it, where there is one */
        if (strncmp(place, overflow, strlen(overflow)) == 0) {
            snprintf(text, size, "SEGV: %s", place + strlen(", a "));
        } else if (sp_is_astray(r) && place[0] == ',') {
            snprintf(text, size, "SEGV: %s", place + strlen(", "));
        } else {
            snprintf(text, size, "SEGV: %s: %s at 0x%08x by sp%s",
                     r->near.name == NULL ? "stack overflow" : "sp is not in the stack",
                     bytes_text(r->bytes, bytes), r->address, place);
        }
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

/* Writes " in f+0x4, file.c:12", or less if less is known. */
static void describe_pc(uint32_t pc, const struct rv32_image *image, const struct rv32_lines *lines,
                        char *text, size_t size)
{
    const struct rv32_symbol *s = image != NULL ? rv32_image_function(image, pc) : NULL;
    const struct rv32_line *l = lines != NULL ? rv32_lines_at(lines, pc) : NULL;
    int n = 0;
    text[0] = '\0';
    if (s != NULL) {
        n = snprintf(text, size, " in %.60s+0x%x", s->name, pc - s->address);
    }
    if (l != NULL && n >= 0 && (size_t)n < size) {
        snprintf(text + n, size - (size_t)n, ", %.70s:%d", l->file, l->line);
    }
}

/* Writes where a jump out of the code came from, and which call had entered the function that
 * jumped. Register ra has the latter until the function calls another one, and then points behind
 * that call; it is written in both cases. */
static void describe_jump(const struct rv32_result *r, const struct rv32_image *image,
                          const struct rv32_lines *lines, char *text, size_t size)
{
    char where[160];
    describe_pc(r->from, image, lines, where, sizeof(where));
    int n = snprintf(text, size, ", from 0x%08x%s", r->from, where);
    bool caller = image != NULL && r->ra - image->code.base < image->code.size &&
                  r->ra - r->from > 4 && r->ra != r->pc;
    if (caller && n >= 0 && (size_t)n < size) {
        describe_pc(r->ra - 2, image, lines, where, sizeof(where));
        snprintf(text + n, size - (size_t)n, ", called from 0x%08x%s", r->ra - 2, where);
    }
}

/* Whether an address is in a function that compilers call by themselves (runtime/, libgcc): these
 * have reserved names, and no source of the user's. */
static bool is_run_time(const struct rv32_image *image, uint32_t pc)
{
    static const char *const copies[] = {"memcpy", "memmove", "memset", "memcmp"};
    const struct rv32_symbol *s = image != NULL ? rv32_image_function(image, pc) : NULL;
    bool is = s != NULL && strncmp(s->name, "__", 2) == 0;
    for (size_t i = 0; s != NULL && i < sizeof(copies) / sizeof(copies[0]); i++) {
        is |= strcmp(s->name, copies[i]) == 0;
    }
    return is;
}

static bool is_call_of_program(const struct rv32_image *image, uint32_t call)
{
    return call - image->code.base < image->code.size && !is_run_time(image, call);
}

static void describe_caller(const struct rv32_result *r, const struct rv32_image *image,
                            const struct rv32_lines *lines, char *text, size_t size)
{
    char where[160];
    uint32_t call = r->ra - 2;
    if (is_run_time(image, r->pc) && is_call_of_program(image, call)) {
        describe_pc(call, image, lines, where, sizeof(where));
        snprintf(text, size, ", called from 0x%08x%s", call, where);
    }
}

/* Whether the instruction before an address of the code is a call, which returns to that
 * address. */
static bool is_behind_call(const struct rv32_segment *code, uint32_t address)
{
    enum { RA = 1 };
    const uint32_t long_call = address - 4, short_call = address - 2;
    if (address % 2 != 0 || address - code->base > code->size || address - code->base < 4) {
        return false;
    }
    uint32_t word = rv32_program_insn(code, long_call).bits;
    uint32_t half = rv32_program_insn(code, short_call).bits & 0xffff;
    bool jal = (word & 0x7f) == 0x6f || (word & 0x707f) == 0x67; /* jal or jalr */
    bool c_jal = (half & 0xe003) == 0x2001;
    bool c_jalr = (half & 0xf07f) == 0x9002 && (half & 0xf80) != 0;
    return (jal && (word >> 7 & 31) == RA) || c_jal || c_jalr;
}

uint32_t rv32_result_run_time_caller(struct rv32_core *core, const struct rv32_image *image,
                                     uint32_t pc)
{
    enum { SP = 2, WORDS = 64 }; /* words; frames of run-time functions are smaller */
    uint32_t word, sp = core->x[SP];
    for (uint32_t i = 0; i < WORDS && sp % 4 == 0 && is_run_time(image, pc); i++) {
        const void *at = rv32_core_reach(core, sp + 4 * i, sizeof(word), RV32_READ);
        if (at == NULL) {
            return 0;
        }
        memcpy(&word, at, sizeof(word));
        if (is_behind_call(&image->code, word) && is_call_of_program(image, word - 2)) {
            return word - 2;
        }
    }
    return 0;
}

void rv32_result_text(const struct rv32_result *r, const struct rv32_image *image,
                      const struct rv32_lines *lines, struct rv32_error *text)
{
    char what[224], where[160], jump[400] = "";
    describe(r, image, what, sizeof(what));
    if (r->end == RV32_RETURNED) {
        snprintf(text->text, sizeof(text->text), "%s", what);
        return;
    }
    describe_pc(r->pc, image, lines, where, sizeof(where));
    if (r->end == RV32_FAULT_JUMP && r->from != r->pc) {
        describe_jump(r, image, lines, jump, sizeof(jump));
    } else if (r->end != RV32_FAULT_JUMP) {
        describe_caller(r, image, lines, jump, sizeof(jump));
    }
    int n = snprintf(text->text, sizeof(text->text), "%s; pc 0x%08x%s", what, r->pc, where);
    if (n >= 0 && (size_t)n < sizeof(text->text)) {
        snprintf(text->text + n, sizeof(text->text) - (size_t)n, "%s", jump);
    }
}
