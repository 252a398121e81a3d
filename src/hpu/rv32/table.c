/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of an image (table.h). */
#include "table.h"

#include "elfutils.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY = 12 };

/* Returns the bytes at an address of the data, and how many there are; NULL: none. */
static const uint8_t *data_at(const struct rv32_image *image, uint32_t address, uint32_t *left)
{
    for (int i = 0; i < image->data_count; i++) {
        const struct rv32_segment *s = &image->data[i];
        if (address - s->base < s->size) {
            *left = s->size - (address - s->base);
            return s->bytes + (address - s->base);
        }
    }
    return NULL;
}

static const Elf32_Shdr *find_section(Elf *elf)
{
    size_t names;
    Elf_Scn *section = NULL;
    if (elfutils.elf_getshdrstrndx(elf, &names) != 0) {
        return NULL;
    }
    while ((section = elfutils.elf_nextscn(elf, section)) != NULL) {
        const Elf32_Shdr *h = elfutils.elf32_getshdr(section);
        const char *name = h != NULL ? elfutils.elf_strptr(elf, names, h->sh_name) : NULL;
        if (name != NULL && strcmp(name, "pinwheel_handlers") == 0) {
            return h;
        }
    }
    return NULL;
}

static int add_handler(struct rv32_table *table, const struct rv32_image *image,
                       const uint8_t *entry, struct rv32_error *error)
{
    uint32_t word[2], left;
    memcpy(word, entry, sizeof(word));
    const char *name = (const char *)data_at(image, word[1], &left);
    if (name == NULL || memchr(name, '\0', left) == NULL) {
        return rv32_fail(error, "%s: handler %zu has no name at %08x", image->name, table->count,
                         word[1]);
    }
    if (word[0] - image->code.base >= image->code.size || word[0] % 2 != 0) {
        return rv32_fail(error, "%s: handler %.80s at %08x is not in the code", image->name, name,
                         word[0]);
    }
    if (rv32_table_find(table, name) != NULL) {
        return rv32_fail(error, "%s: handler %.80s is registered twice; give one another name",
                         image->name, name);
    }
    table->handlers[table->count++] = (struct rv32_symbol){word[0], 0, name};
    return 0;
}

static int read_table(struct rv32_table *table, const struct rv32_image *image, Elf *elf,
                      struct rv32_error *error)
{
    const Elf32_Shdr *h = elf != NULL ? find_section(elf) : NULL;
    uint32_t left = 0, size = h != NULL ? h->sh_size : 0;
    const uint8_t *at = size != 0 ? data_at(image, h->sh_addr, &left) : NULL;
    if (at == NULL) {
        return rv32_fail(error, "%s: registers no handler; PTL_HANDLER(name) does, after it",
                         image->name);
    }
    if (size > left) {
        return rv32_fail(error,
                         "%s: its table of handlers at %08x with %u bytes is not in its data",
                         image->name, h->sh_addr, size);
    }
    if (size % ENTRY != 0) {
        return rv32_fail(error, "%s: its table of handlers has %u bytes, not a multiple of %d",
                         image->name, size, ENTRY);
    }
    table->handlers = calloc(size / ENTRY, sizeof(*table->handlers));
    if (table->handlers == NULL) {
        return rv32_fail(error, "%s: no memory", image->name);
    }
    for (uint32_t i = 0; i < size; i += ENTRY) {
        if (add_handler(table, image, at + i, error) != 0) {
            return -1;
        }
    }
    return 0;
}

int rv32_table_open(struct rv32_table *table, const struct rv32_image *image,
                    struct rv32_error *error)
{
    *table = (struct rv32_table){0};
    Elf *elf = elfutils.elf_memory((char *)image->file, image->file_size);
    int rc = read_table(table, image, elf, error);
    if (elf != NULL) {
        elfutils.elf_end(elf);
    }
    if (rc != 0) {
        rv32_table_close(table);
    }
    return rc;
}

void rv32_table_close(struct rv32_table *table)
{
    free(table->handlers);
    *table = (struct rv32_table){0};
}

const struct rv32_symbol *rv32_table_find(const struct rv32_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): each of `count` has a name */
        if (strcmp(table->handlers[i].name, name) == 0) {
            return &table->handlers[i];
        }
    }
    return NULL;
}
