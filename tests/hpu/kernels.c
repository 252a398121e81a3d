/* SPDX-License-Identifier: BSD-3-Clause */
/* The measured kernels (kernels.h). */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN = 0x10000000, OTHER = 0x10400000, HANDLER = 0x1c300000, PACKET = 0x1c400000 };
enum { PACKET_IN_L1 = OWN + 0x4800, SCRATCHPAD = 0x14400, STACK_TOP = OWN + 0x400 };

/* "l1+512 of the other cluster", "pkt", "64": a number. */
static bool read_argument(const char *text, uint32_t *value)
{
    static const struct {
        const char *name;
        uint32_t address;
    } places[] = {{"pkt", PACKET_IN_L1},
                  {"l1", OWN + SCRATCHPAD},
                  {"handler memory", HANDLER},
                  {"l2 packet", PACKET}};
    char *end;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        size_t n = strlen(places[i].name);
        if (strncmp(text, places[i].name, n) != 0) {
            continue;
        }
        *value =
            places[i].address + (text[n] == '+' ? (uint32_t)strtoul(text + n + 1, &end, 10) : 0);
        if (strstr(text, "of the other cluster") != NULL) {
            *value += OTHER - OWN;
        }
        return true;
    }
    *value = (uint32_t)strtoul(text, &end, 0);
    return end != text && *end == '\0';
}

static bool read_call(struct kernels_call *c, char *line)
{
    char *rest = line, *save, *function = strsep(&rest, ","), *number = strsep(&rest, ",");
    char *arguments = strsep(&rest, ",");
    if (arguments == NULL || rest == NULL || strlen(function) >= sizeof(c->function)) {
        return false;
    }
    strcpy(c->function, function);
    c->number = atoi(number);
    c->runs = strstr(rest, "replay") == NULL;
    int n = 0;
    for (char *a = strtok_r(arguments, ";", &save); a != NULL; a = strtok_r(NULL, ";", &save)) {
        if (n == RV32_ARGUMENTS || !read_argument(a, &c->arguments[n++])) {
            return false;
        }
    }
    return true;
}

static bool read_cycles(struct kernels *k, const char *line)
{
    char name[32];
    int number;
    unsigned instructions, cold, warm;
    if (sscanf(line, "%31[^,],%d,%u,%*u,%*u,%*u,%*u,%*u,%*u,%u,%u", name, &number, &instructions,
               &cold, &warm) != 5) {
        return false;
    }
    for (int i = 0; i < k->call_count; i++) {
        if (strcmp(k->calls[i].function, name) == 0 && k->calls[i].number == number) {
            k->calls[i].instructions = instructions;
            k->calls[i].cold = cold;
            k->calls[i].warm = warm;
            return true;
        }
    }
    return false;
}

static bool read_table(struct kernels *k, const char *folder, const char *table)
{
    char path[512], line[512];
    snprintf(path, sizeof(path), "%s/%s", folder, table);
    FILE *f = fopen(path, "r");
    bool good = f != NULL && fgets(line, sizeof(line), f) != NULL, calls = table[1] == 'a';
    while (good && fgets(line, sizeof(line), f) != NULL) {
        good = calls ? k->call_count < KERNELS_CALLS && read_call(&k->calls[k->call_count++], line)
                     : read_cycles(k, line);
    }
    if (!good) {
        fprintf(stderr, "%s: cannot be read\n", path);
    }
    if (f != NULL) {
        fclose(f);
    }
    return good;
}

static int map(struct kernels *k, struct rv32_error *error)
{
    struct rv32_core *c = &k->core;
    unsigned both = RV32_READ | RV32_WRITE;
    if (rv32_core_map_image(c, &k->image, error) != 0 ||
        rv32_core_map(c, "own L1", OWN, sizeof(k->own), k->own, both, RV32_AREA_L1, error) != 0 ||
        rv32_core_map(c, "other L1", OTHER, sizeof(k->other), k->other, both, RV32_AREA_REMOTE,
                      error) != 0 ||
        rv32_core_map(c, "handler memory", HANDLER, sizeof(k->handler), k->handler, both,
                      RV32_AREA_HANDLER, error) != 0) {
        return -1;
    }
    return rv32_core_map(c, "packet buffer", PACKET, sizeof(k->packet), k->packet, RV32_READ,
                         RV32_AREA_PACKET, error);
}

struct kernels *kernels_open(const char *folder, enum rv32_program_kind kind)
{
    struct rv32_error error = {""};
    char path[512];
    struct kernels *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return NULL;
    }
    snprintf(path, sizeof(path), "%s/kernels.elf", folder);
    int rc = rv32_image_open(&k->image, path, &error);
    rc = rc != 0 ? rc : rv32_program_make(&k->program, &k->image, &rv32_timings[0], kind, &error);
    if (rc == 0) {
        rv32_core_init(&k->core, &k->program);
        rc = map(k, &error);
    }
    if (rc != 0) {
        fprintf(stderr, "%s\n", error.text);
    }
    if (rc != 0 || !read_table(k, folder, "calls.csv") || !read_table(k, folder, "cycles.csv")) {
        kernels_close(k);
        return NULL;
    }
    return k;
}

void kernels_close(struct kernels *k)
{
    rv32_program_free(&k->program);
    rv32_image_close(&k->image);
    free(k);
}

const struct rv32_result *kernels_run(struct kernels *k, const struct kernels_call *call)
{
    static const struct rv32_result absent = {.end = RV32_FAULT_JUMP};
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t word = (i + 1) & 15;
        memcpy(&k->own[SCRATCHPAD + 4 * i], &word, 4);
    }
    const struct rv32_symbol *s = rv32_image_find(&k->image, call->function);
    if (s == NULL) {
        return &absent;
    }
    struct rv32_call c = {.pc = s->address, .stack = STACK_TOP, .budget = 1 << 30};
    memcpy(c.arguments, call->arguments, sizeof(c.arguments));
    return rv32_core_call(&k->core, &c);
}
