/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers that an image registers: what PTL_HANDLER() of spin_handler.h leaves in its
 * section "pinwheel_handlers".
 *
 *      | address | name | image |   three words each; `name` points into the constants
 *
 * Functions are found by this table, never by their symbols: two files of an image may have
 * static functions of one name. Registered names are unique.
 */
#ifndef HPU_RV32_TABLE_H
#define HPU_RV32_TABLE_H

#include "hpu/rv32/image.h"

struct rv32_table {
    struct rv32_symbol *handlers; /* size 0 */
    size_t count;
};

/* rv32_table_open() reads the table of an image, whose bytes its names point to. It fails if
 * there is none, or if it is not as above. */
int rv32_table_open(struct rv32_table *table, const struct rv32_image *image,
                    struct rv32_error *error);
void rv32_table_close(struct rv32_table *table);

/* rv32_table_find() gives the handler of that name, NULL if there is none. */
const struct rv32_symbol *rv32_table_find(const struct rv32_table *table, const char *name);

#endif
