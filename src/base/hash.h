/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hash tables: uthash, for tables that no message meets. An element that memory is short for is
 * not added, and the process goes on: who adds one asks hash_added(). An element must not move
 * while it is in a table.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* hash_added() says, right after HASH_ADD, whether the element is in the table. */
#define hash_added(element) ((element)->hh.tbl != NULL)

#endif
