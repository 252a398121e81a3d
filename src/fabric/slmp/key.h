/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key of a job: who holds it is one principal. It comes from a file that its owner
 * alone may read, with bytes that nobody can guess and no two jobs share:
 *
 *     (umask 077; head -c 32 /dev/urandom >FILE)
 */
#ifndef FABRIC_SLMP_KEY_H
#define FABRIC_SLMP_KEY_H

#include "base/reason.h"

#include <stddef.h>
#include <stdint.h>

enum { SLMP_KEY_MIN = 32, SLMP_KEY_MAX = 1024 };

struct slmp_key {
    size_t length; /* SLMP_KEY_MIN to SLMP_KEY_MAX */
    uint8_t bytes[SLMP_KEY_MAX];
};

/* slmp_key_read() takes all bytes of a file for the key. 0, or -1 with a line in `why`
 * that says what is wrong with the file: its owner, its mode, its length. */
int slmp_key_read(struct slmp_key *, const char *path, struct reason *why);

/* slmp_key_take() takes `length` bytes that the caller has, such as the text that a
 * launcher put into the environment; -1 if there are too few or too many. */
int slmp_key_take(struct slmp_key *, const void *bytes, size_t length);

#endif
