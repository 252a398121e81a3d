/* SPDX-License-Identifier: BSD-3-Clause */
/* A core before it runs (core.h): it is made, and given its memory and devices; its cache is
 * emptied. */
#include "core.h"

#include <string.h>

void rv32_core_init(struct rv32_core *core, const struct rv32_program *program)
{
    core->program = program;
    core->ecall = NULL;
    core->late = NULL;
    core->exact = false;
    core->region_count = 0;
    memset(core->region, 0, sizeof(core->region));
    core->region[0].name = "";
    for (int i = 0; i <= RV32_SINK; i++) {
        core->hint[i] = &core->region[0];
    }
    rv32_core_cool(core);
}

void rv32_core_cool(struct rv32_core *core)
{
    rv32_fetch_cool(&core->fetch);
}

void rv32_core_share(struct rv32_core *core, uint32_t address)
{
    rv32_fetch_line(&core->fetch, core->program->timing, address);
}

int rv32_core_map(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                  void *host, unsigned rights, enum rv32_area area, struct rv32_error *error)
{
    if (core->region_count == RV32_REGIONS) {
        return rv32_fail(error, "region %s: a core has at most %d", name, RV32_REGIONS);
    }
    if (base % 4 != 0 || (uintptr_t)host % 4 != 0 || (uint64_t)base + size > RV32_RETURN) {
        return rv32_fail(error,
                         "region %s: %08x with %u bytes must be a multiple of 4 and end below %08x",
                         name, base, size, RV32_RETURN);
    }
    for (int i = 1; i <= core->region_count; i++) {
        const struct rv32_region *r = &core->region[i];
        if (base < (uint64_t)r->base + r->size && r->base < (uint64_t)base + size) {
            return rv32_fail(error, "region %s: %08x with %u bytes lies over region %s at %08x",
                             name, base, size, r->name, r->base);
        }
    }
    core->region[++core->region_count].name = name;
    rv32_core_move(core, core->region_count, base, size, host, rights, area);
    return 0;
}

void rv32_core_move(struct rv32_core *core, int index, uint32_t base, uint32_t size, void *host,
                    unsigned rights, enum rv32_area area)
{
    struct rv32_region *r = &core->region[index];
    r->host = host;
    /* Usually only the address in this process changes from one call of a handler to the next. */
    if (r->base == base && r->size == size && r->rights == rights && r->area == area) {
        return;
    }
    uint32_t read = area == RV32_AREA_L1 && (rights & RV32_READ) != 0 ? size : 0;
    uint32_t write = area == RV32_AREA_L1 && (rights & RV32_WRITE) != 0 ? size : 0;
    r->base = base;
    r->size = size;
    r->rights = rights;
    r->area = area;
    for (int log2 = 0; log2 < 4; log2++) {
        r->read[log2] = read >> log2;
        r->write[log2] = write >> log2;
    }
}

int rv32_core_map_image(struct rv32_core *core, const struct rv32_image *image,
                        struct rv32_error *error)
{
    int rc = rv32_core_map(core, "code", image->code.base, image->code.size, image->code.bytes,
                           RV32_READ, RV32_AREA_PROGRAM, error);
    for (int i = 0; rc == 0 && i < image->data_count; i++) {
        const struct rv32_segment *s = &image->data[i];
        rc = rv32_core_map(core, "data", s->base, s->size, s->bytes,
                           s->writable ? RV32_READ | RV32_WRITE : RV32_READ,
                           rv32_pspin_area(s->base), error);
    }
    return rc;
}

int rv32_core_map_device(struct rv32_core *core, const char *name, uint32_t base, uint32_t size,
                         const struct rv32_device *device, struct rv32_error *error)
{
    /* RV32_AREA_PROGRAM, since that area has no plain accesses. */
    if (rv32_core_map(core, name, base, size, NULL, RV32_READ | RV32_WRITE, RV32_AREA_PROGRAM,
                      error) != 0) {
        return -1;
    }
    core->region[core->region_count].device = device;
    return 0;
}
