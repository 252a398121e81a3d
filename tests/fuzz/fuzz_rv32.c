/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: images for the RV32 core, and code.
 *
 * An input is taken for an image; what is accepted must keep what image.h promises, and
 * each of its functions runs. The same bytes are then taken for code, run from every even
 * address of its first hundred, warm and with the instruction cache counted. Whatever
 * runs ends within its budget, touches nothing but its memory (guarded by canaries), and
 * ends alike both ways. Seeds are made of instructions that exist.
 */
#include "fuzz.h"

#include "hpu/rv32/core.h"
#include "hpu/rv32/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 4096, GUARD = 64, BUDGET = 3000, BASE = 0x10000000, CODE = 0x1d000000 };

static struct {
    _Alignas(4) uint8_t before[GUARD], memory[MEMORY], after[GUARD];
} place;

static void check_image(const struct rv32_image *image)
{
    MUST(image->code.size > 0 && image->code.size <= RV32_CODE_MAX && !image->code.writable);
    MUST(image->function_count > 0 && image->data_count <= RV32_DATA_SEGMENTS);
    for (size_t i = 0; i < image->function_count; i++) {
        const struct rv32_symbol *s = &image->functions[i];
        MUST(s->address - image->code.base < image->code.size && s->address % 2 == 0);
        MUST(strlen(s->name) < RV32_FILE_MAX);
    }
}

static void guard(uint8_t value)
{
    memset(place.before, value, GUARD);
    memset(place.after, value, GUARD);
}

static void check_guard(uint8_t value)
{
    for (int i = 0; i < GUARD; i++) {
        MUST(place.before[i] == value && place.after[i] == value);
    }
}

/* Runs from `pc` and gives how it ended. */
static struct rv32_result run(struct rv32_core *core, uint32_t pc)
{
    struct rv32_call call = {.pc = pc,
                             .arguments = {BASE, 64, BASE + 1024, BASE + MEMORY - 2},
                             .stack = BASE + MEMORY,
                             .budget = BUDGET};
    for (int i = 0; i < MEMORY; i++) {
        place.memory[i] = (uint8_t)(i * 31);
    }
    guard(0xa5);
    struct rv32_result r = *rv32_core_call(core, &call);
    check_guard(0xa5);
    MUST(r.instructions <= r.cycles || r.cycles == 0);
    return r;
}

static bool reads_counters(const struct rv32_program *p)
{
    bool found = false;
    for (uint32_t c = 0; c < p->count; c++) {
        found |= p->cells[c].op == RV32_CELL_CSR;
    }
    return found;
}

static void run_all(const struct rv32_image *image, bool functions)
{
    static struct rv32_core warm, cached;
    struct rv32_program programs[2];
    struct rv32_core *cores[2] = {&warm, &cached};
    struct rv32_error error = {""};
    for (int k = 0; k < 2; k++) {
        MUST(rv32_program_make(&programs[k], image, &rv32_timings[0],
                               k == 0 ? RV32_WARM : RV32_CACHE, &error) == 0);
        rv32_core_init(cores[k], &programs[k]);
        /* Its data may lie where ours does: then it runs without. */
        if (rv32_core_map(cores[k], "memory", BASE, MEMORY, place.memory, RV32_READ | RV32_WRITE,
                          RV32_AREA_L1, &error) == 0) {
            (void)rv32_core_map_image(cores[k], image, &error);
        }
    }
    uint32_t count = functions ? (uint32_t)image->function_count : 50;
    for (uint32_t i = 0; i < count && i < 100; i++) {
        uint32_t pc = functions ? image->functions[i].address : image->code.base + 2 * i;
        struct rv32_result a = run(&warm, pc), b = run(&cached, pc);
        /* Misses cost cycles, nothing else, as long as there are cycles left and nobody asks. */
        if (a.end != RV32_TIMEOUT && b.end != RV32_TIMEOUT && !reads_counters(&programs[0])) {
            MUST(a.end == b.end && a.instructions == b.instructions && a.cycles <= b.cycles);
            MUST(a.value == b.value && a.pc == b.pc && a.address == b.address);
        }
        rv32_result_text(&a, image, NULL, &error);
        MUST(error.text[0] != '\0');
    }
    rv32_program_free(&programs[0]);
    rv32_program_free(&programs[1]);
}

static void try_code(const uint8_t *data, size_t size)
{
    static uint32_t code[RV32_CODE_MAX / 4];
    struct rv32_image image = {.name = (char *)"code"};
    memcpy(code, data, size);
    image.code = (struct rv32_segment){CODE, (uint32_t)size, false, (uint8_t *)code};
    run_all(&image, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv32_error error = {""};
    struct rv32_image image;
    if (rv32_image_parse(&image, "input", data, size, &error) == 0) {
        struct rv32_lines lines;
        struct rv32_table table;
        check_image(&image);
        run_all(&image, true);
        if (rv32_table_open(&table, &image, &error) == 0) {
            for (size_t i = 0; i < table.count; i++) {
                MUST(rv32_table_find(&table, table.handlers[i].name) == &table.handlers[i]);
                MUST(table.handlers[i].address - image.code.base < image.code.size);
            }
            rv32_table_close(&table);
        }
        if (rv32_lines_open(&lines, &image, &error) == 0) {
            (void)rv32_lines_at(&lines, image.code.base);
            rv32_lines_close(&lines);
        }
        rv32_image_close(&image);
    } else {
        MUST(strncmp(error.text, "input: ", 7) == 0);
    }
    if (size > 0 && size <= 4096) {
        try_code(data, size);
    }
    return 0;
}

/* Code: rows of the table of encodings, with random bits where they leave them open. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    uint64_t r = number * 0x9e3779b97f4a7c15u + 1;
    size_t size = 0, want = 16 + number % 1024;
    while (size < want && size + 4 <= max) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        const struct rv32_spec *s = &rv32_specs[(r >> 33) % rv32_spec_count];
        r = r * 6364136223846793005u + 1442695040888963407u;
        uint32_t word = ((uint32_t)(r >> 32) & ~s->mask) | s->match;
        size_t length = rv32_length((uint16_t)word);
        memcpy(data + size, &word, length);
        size += length;
    }
    return size;
}
