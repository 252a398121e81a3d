/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the instruction set that an image declares: the ISA string among its RISC-V attributes
 * (RISC-V ELF psABI), which are
 *
 *   'A', for each vendor: length, name, for each scope: tag, length, (tag, value)...
 *
 * A length counts its own bytes, and those before it in its block.
 */
#include "image.h"

#include <string.h>

enum { TAG_FILE = 1, TAG_ARCH = 5 };

int rv32_image_isa(const char *name, const char *isa, bool *reals, struct rv32_error *error)
{
    /* zifencei is accepted although fence.i is an illegal instruction: images declare it because
     * libgcc does. */
    static const char *const known[] = {"i",      "m",        "a",     "f",     "d",
                                        "c",      "zicsr",    "zmmul", "zaamo", "zalrsc",
                                        "zicntr", "zifencei", "zca",   "zcf",   "zcd"};
    if (strncmp(isa, "rv32", 4) != 0) {
        return rv32_fail(error, "%s: is for %.40s; the HPU cores are rv32imafdc_zicsr", name, isa);
    }
    for (const char *p = isa + 4; *p != '\0';) {
        size_t length = 1;
        if (*p == 'z' || *p == 's' || *p == 'x') {
            length = strcspn(p, "_0123456789");
        }
        bool found = *p == '_';
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            found |= strlen(known[i]) == length && strncmp(p, known[i], length) == 0;
        }
        if (!found) {
            return rv32_fail(error,
                             "%s: uses the extension %.*s; the HPU cores are rv32imafdc_zicsr",
                             name, (int)(length < 40 ? length : 40), p);
        }
        *reals |= *p == 'f' || *p == 'd';
        p += length;
        p += strspn(p, "0123456789");
        if (p[0] == 'p' && p[1] >= '0' && p[1] <= '9') {
            p++;
            p += strspn(p, "0123456789");
        }
    }
    return 0;
}

struct reader {
    const uint8_t *at, *end;
};

static bool read_uleb(struct reader *r, uint32_t *value)
{
    *value = 0;
    for (unsigned shift = 0; r->at < r->end && shift < 32; shift += 7) {
        uint8_t byte = *r->at++;
        *value |= (uint32_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_text(struct reader *r, const char **text)
{
    const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
    *text = (const char *)r->at;
    r->at = end != NULL ? end + 1 : r->end;
    return end != NULL;
}

/* Reads a length of four bytes, which counts its own and the `before` bytes in front of it; makes a
 * reader of the bytes behind it. */
static bool read_block(struct reader *r, size_t before, struct reader *block)
{
    uint32_t length;
    if (r->end - r->at < 4) {
        return false;
    }
    memcpy(&length, r->at, 4);
    if (length < before + 4 || length - before > (size_t)(r->end - r->at)) {
        return false;
    }
    *block = (struct reader){r->at + 4, r->at + (length - before)};
    r->at = block->end;
    return true;
}

/* Checks the attributes of the whole file. Those with even tags are numbers, those with odd tags
 * texts. */
static int check_tags(const char *name, struct reader r, bool *reals, struct rv32_error *error)
{
    uint32_t tag, number;
    const char *text = "";
    while (r.at < r.end) {
        if (!read_uleb(&r, &tag) ||
            !(tag % 2 == 0 ? read_uleb(&r, &number) : read_text(&r, &text))) {
            return rv32_fail(error, "%s: its RISC-V attributes are damaged", name);
        }
        if (tag == TAG_ARCH && rv32_image_isa(name, text, reals, error) != 0) {
            return -1;
        }
    }
    return 0;
}

int rv32_image_attributes(const char *name, const uint8_t *bytes, size_t size, bool *reals,
                          struct rv32_error *error)
{
    struct reader all = {bytes + 1, bytes + size}, vendor, block;
    const char *text;
    uint32_t tag;
    if (size < 1 || bytes[0] != 'A') {
        return rv32_fail(error, "%s: its RISC-V attributes are damaged", name);
    }
    while (all.at < all.end) {
        if (!read_block(&all, 0, &vendor) || !read_text(&vendor, &text)) {
            return rv32_fail(error, "%s: its RISC-V attributes are damaged", name);
        }
        while (strcmp(text, "riscv") == 0 && vendor.at < vendor.end) {
            const uint8_t *start = vendor.at;
            if (!read_uleb(&vendor, &tag) ||
                !read_block(&vendor, (size_t)(vendor.at - start), &block)) {
                return rv32_fail(error, "%s: its RISC-V attributes are damaged", name);
            }
            if (tag == TAG_FILE && check_tags(name, block, reals, error) != 0) {
                return -1;
            }
        }
    }
    return 0;
}
