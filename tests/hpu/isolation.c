/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images that nobody would trust, on memory that they were not given.
 *
 *     hpu_isolation GOLDEN SEED COUNT
 *
 * COUNT images, each a function of its number alone (strays.h). Each is run from its functions and
 * from anywhere, warm and with the instruction cache counted, with random arguments, on a random
 * packet, HPU memory and stack.
 *
 *   | no access | region | no access |     each region ends, or begins, at a page of its own
 *
 * So a byte too far is a fault of this process, whatever compiled it. What has to hold besides:
 * code and constants stay as they were, so does memory of others; every run ends, within its
 * budget; how it ended can be told.
 */
#include "chance.h"
#include "hpu/rv32/core.h"
#include "strays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    RUNS = 8, /* of each image, each way */
    BUDGET = 4000,
    DEVICE = 0x1b205000,
    DEVICE_BYTES = 64,
};

enum { PACKET, STATE, STACK, MEMORIES };

static const struct {
    const char *name;
    uint32_t base, most; /* bytes */
} memories[MEMORIES] = {
    {"packet", 0x10004000, 2048}, {"state", 0x10010000, PAGE}, {"stack", 0x10000000, 1024}};

static _Noreturn void fail(uint64_t number, const char *what, const char *text)
{
    fprintf(stderr, "image %llu: %s%s\n", (unsigned long long)number, what, text);
    exit(1);
}

/* ---- Memory ---- */

struct memory {
    uint8_t *pages, *bytes;
    uint32_t size;
};

/* Two pages between two that nobody may touch. */
static bool open_memory(struct memory *m)
{
    m->pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return m->pages != MAP_FAILED &&
           mprotect(m->pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) == 0;
}

/* A new size, against the end of the pages or their beginning. */
static void place_memory(struct memory *m, uint32_t most)
{
    m->size = 4 + below(most / 4) * 4;
    m->bytes = m->pages + PAGE + (below(2) ? 2 * PAGE - m->size : 0);
    fill_random(m->pages + PAGE, (size_t)2 * PAGE);
}

static uint64_t sum_of(const void *bytes, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Of what the program must not change: the rest of the pages, code, constants. */
static uint64_t sum_of_others(const struct memory *m, const struct rv32_image *image)
{
    uint64_t sum = sum_of(image->code.bytes, image->code.size);
    for (int i = 0; i < MEMORIES; i++) {
        const uint8_t *begin = m[i].pages + PAGE, *behind = m[i].bytes + m[i].size;
        sum = sum * 31 + sum_of(begin, (size_t)(m[i].bytes - begin));
        sum = sum * 31 + sum_of(behind, (size_t)(begin + (size_t)2 * PAGE - behind));
    }
    for (int i = 0; i < image->data_count; i++) {
        if (!image->data[i].writable) {
            sum = sum * 31 + sum_of(image->data[i].bytes, image->data[i].size);
        }
    }
    return sum;
}

/* ---- Running ---- */

/* A handler call: it fills memory that a0 and a1 name, if the program may write there. */
static int serve(struct rv32_core *core, void *context)
{
    uint8_t *at = rv32_core_reach(core, core->x[10], core->x[11], RV32_WRITE);
    if (at == NULL) {
        return 1 + (int)below(10);
    }
    fill_random(at, core->x[11]);
    core->x[10] = next_random();
    rv32_core_charge(core, below(100));
    return 0;
}

static int64_t access_device(void *context, enum rv32_access access, uint32_t offset,
                             uint64_t cycle, uint32_t *word)
{
    if (offset >= DEVICE_BYTES || offset % 4 != 0 || cycle > 2 * BUDGET) {
        exit(1);
    }
    *word = access == RV32_READ ? next_random() : *word;
    return below(8) != 0 ? (int64_t)below(20) : -1;
}

static uint32_t random_argument(const struct memory *m)
{
    int i = (int)below(MEMORIES);
    switch (below(6)) {
    case 0:
        return next_random();
    case 1:
        return below(4096);
    case 2:
        return DEVICE + 4 * below(DEVICE_BYTES / 4);
    case 3:
        return memories[i].base + m[i].size - below(12);
    default:
        return memories[i].base + below(m[i].size);
    }
}

/* Maps what does not collide with the image's own segments. */
static void map_all(struct rv32_core *core, const struct rv32_image *image, struct memory *m,
                    const struct rv32_device *device)
{
    struct rv32_error error;
    if (rv32_core_map_image(core, image, &error) != 0) {
        rv32_core_init(core, core->program); /* without any: code runs all the same */
    }
    for (int i = 0; i < MEMORIES; i++) {
        unsigned rights = below(8) ? RV32_READ | RV32_WRITE : RV32_READ;
        (void)rv32_core_map(core, memories[i].name, memories[i].base, m[i].size, m[i].bytes, rights,
                            below(8) ? RV32_AREA_L1 : RV32_AREA_HANDLER, &error);
    }
    (void)rv32_core_map_device(core, "device", DEVICE, DEVICE_BYTES, device, &error);
    core->ecall = below(3) ? serve : NULL;
}

static void run(uint64_t number, struct rv32_core *core, const struct rv32_image *image,
                const struct memory *m, unsigned ends[])
{
    struct rv32_error text;
    struct rv32_call call = {.stack = memories[STACK].base + m[STACK].size - 4 * below(4),
                             .budget = BUDGET};
    bool function = below(2) == 0;
    call.pc = function ? image->functions[below((uint32_t)image->function_count)].address
                       : image->code.base + below(image->code.size + 8);
    for (int i = 0; i < RV32_ARGUMENTS; i++) {
        call.arguments[i] = random_argument(m);
    }
    uint64_t before = sum_of_others(m, image);
    const struct rv32_result *r = rv32_core_call(core, &call);
    rv32_result_text(r, image, NULL, &text);
    if (sum_of_others(m, image) != before) {
        fail(number, "memory of others has changed: ", text.text);
    }
    /* A budget is looked at when control jumps: what is behind may come on top. */
    if (r->end > RV32_FAULT_EBREAK || r->cycles > BUDGET + 4 * STRAY_CODE_MAX * 40 ||
        text.text[0] == 0) {
        fail(number, "ended as nothing should: ", text.text);
    }
    ends[r->end]++;
}

static void try_image(uint64_t number, const struct rv32_segment *kernels, struct memory *m,
                      unsigned ends[])
{
    static struct stray_file file;
    static struct rv32_core core;
    struct rv32_device device = {.access = access_device};
    struct rv32_error error;
    struct rv32_image image;
    struct rv32_program program;
    random_state = number * 0x2545f4914f6cdd1du;
    stray_make(&file, number, kernels);
    if (rv32_image_parse(&image, "image", &file, sizeof(file), &error) != 0) {
        fail(number, "", error.text);
    }
    for (int kind = RV32_WARM; kind <= RV32_CACHE; kind++) {
        if (rv32_program_make(&program, &image, &rv32_timings[below((uint32_t)rv32_timing_count)],
                              kind, &error) != 0) {
            fail(number, "", error.text);
        }
        for (int i = 0; i < MEMORIES; i++) {
            place_memory(&m[i], memories[i].most);
        }
        rv32_core_init(&core, &program);
        map_all(&core, &image, m, &device);
        for (int n = 0; n < RUNS; n++) {
            run(number, &core, &image, m, ends);
        }
        rv32_program_free(&program);
    }
    rv32_image_close(&image);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"returned", "stopped",        "timeout", "load",
                                        "store",    "atomic",         "stack",   "illegal",
                                        "jump",     "ecall unserved", "ebreak"};
    enum { ENDS = sizeof(names) / sizeof(names[0]) };
    struct rv32_error error = {""};
    struct rv32_image kernels;
    struct memory m[MEMORIES];
    unsigned ends[ENDS] = {0};
    char path[512];
    if (argc != 4) {
        fprintf(stderr, "usage: hpu_isolation GOLDEN SEED COUNT\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/kernels.elf", argv[1]);
    if (rv32_image_open(&kernels, path, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (int i = 0; i < MEMORIES; i++) {
        if (!open_memory(&m[i])) {
            perror("hpu_isolation");
            return 1;
        }
    }
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    for (uint64_t n = first; n < first + count; n++) {
        try_image(n, &kernels.code, m, ends);
    }
    rv32_image_close(&kernels);
    for (int i = 0; i < ENDS; i++) {
        printf("%8u %s\n", ends[i], names[i]);
        /* A corpus that does not reach each of them tries nothing. */
        if (ends[i] == 0 && count >= 1000) {
            fail(count, "no run ended like this: ", names[i]);
        }
    }
    return 0;
}
