/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of all users as one table: what the program of the interface is made of. */
#ifndef RAW_SERVE_TABLE_H
#define RAW_SERVE_TABLE_H

#include "raw/serve/policy.h"
#include "raw/source/source.h"

/* The sets of one context, the conditions of its line of the policy included. */
struct table_part {
    unsigned line; /* number of the policy's line */
    unsigned context;
    struct raw_set *set;
    unsigned sets;
};

/* table_read() reads the rules of a user and adds the conditions of a line, -EINVAL: the text is
 * wrong; -ENOSPC: it has more sets than the line allows; or as policy_and(). `room` is memory for a
 * table. table_free() frees the sets. */
int table_read(struct table_part *part, const struct policy *policy, const char *text,
               size_t length, struct raw_rules *room, char error[RAW_ERROR]);
void table_free(struct table_part *part);

/* table_join() makes one table of all parts: those of an earlier line go first, then those that
 * stand first. -ENOSPC: there are too many sets. */
int table_join(struct raw_wanted *wanted, struct raw_rules *rules, const struct table_part *parts,
               unsigned count, unsigned contexts, char error[RAW_ERROR]);

#endif
