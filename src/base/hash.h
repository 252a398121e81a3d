/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hash tables: uthash, for tables that are off the path of messages. If memory is short HASH_ADD
 * does not add the element, and the process goes on: code that adds one asks hash_added()
 * afterwards. An element must not move while it is in a table.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* hash_added() is true if the HASH_ADD just before has put the element into the table. */
#define hash_added(element) ((element)->hh.tbl != NULL)

#endif
