/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key of a job: all processes that hold it trust each other. It is read from a file that only
 * its owner may read, with bytes that cannot be guessed, and that no other job has: (umask 077;
 * head -c 32 /dev/urandom >FILE).
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

/* slmp_key_read() reads a whole file as the key. 0, or -1 with a line in `why` about the file's
 * owner, mode or length. */
int slmp_key_read(struct slmp_key *, const char *path, struct reason *why);

/* slmp_key_take() makes a key of `length` bytes of the caller, such as text that a launcher has put
 * into the environment; -1 if these are too few or too many. */
int slmp_key_take(struct slmp_key *, const void *bytes, size_t length);

#endif
