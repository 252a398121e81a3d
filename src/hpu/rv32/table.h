/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers that an image registers: the entries that PTL_HANDLER() of spin_handler.h puts into
 * its section "pinwheel_handlers".
 *
 *      | address | name | image |   three words each; `name` points into the constants
 *
 * Handlers are found by this table, never by their symbols: two files of an image may have static
 * functions of the same name. Registered names are unique.
 */
#ifndef HPU_RV32_TABLE_H
#define HPU_RV32_TABLE_H

#include "hpu/rv32/image.h"

struct rv32_table {
    struct rv32_symbol *handlers; /* their `size` is 0 */
    size_t count;
};

/* rv32_table_open() reads the table of an image; the names point into the image's bytes. It fails
 * if there is no table, or if that is not as above. */
int rv32_table_open(struct rv32_table *table, const struct rv32_image *image,
                    struct rv32_error *error);
void rv32_table_close(struct rv32_table *table);

/* rv32_table_find() returns the handler of that name, NULL if there is none. */
const struct rv32_symbol *rv32_table_find(const struct rv32_table *table, const char *name);

#endif
