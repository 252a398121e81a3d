/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that the owner of an interface hands on: a source for who has no privilege. */
#ifndef RAW_SERVE_SERVED_H
#define RAW_SERVE_SERVED_H

#include "raw/source/source.h"

struct raw_served_options {
    const char *path;             /* the owner's socket */
    unsigned ring;                /* slots of each ring; 0: as many as the policy allows */
    unsigned share[RAW_CONTEXTS]; /* frames of the owner's turn; 0: what the policy allows */
    unsigned priority[RAW_CONTEXTS];
    bool spin;
};

/* raw_served_open() asks the owner for a context for each of `wanted` that has rules. 0, or, with
 * the error set, -errno: -EACCES: the policy does not allow it; -ENOSPC: not so much, or there is
 * none left; -ECONNREFUSED, -ENOENT: there is no owner; -ETIMEDOUT: it does not answer. */
int raw_served_open(struct raw_source **source, const struct raw_served_options *options,
                    const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR]);

/* raw_served_why() returns why receive() or wait() has failed, a line that names the owner's
 * socket. */
const char *raw_served_why(const struct raw_source *source);

#endif
