/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that `pinwheel slmp recv` writes: a temporary file beside the one that the user wants.
 * Consecutive bytes are gathered and written together.
 */
#ifndef PINWHEEL_SLMP_FILE_H
#define PINWHEEL_SLMP_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { GATHER = 1 << 20 };

struct slmp_file {
    const char *path; /* the final name */
    char temporary[PATH_MAX];
    int fd;
    int error;    /* errno of a write or read that failed; 0: none */
    uint64_t got; /* bytes that the receiver has given to slmp_file_write() */
    /* GATHER bytes; the first `gathered` wait to be written at offset `gather_at` */
    uint8_t *gather;
    uint64_t gather_at;
    size_t gathered;
};

/* slmp_file_complain() prints what is wrong with the file, and returns -1. */
int slmp_file_complain(const struct slmp_file *f, const char *what);

/* slmp_file_create() creates the temporary file: 0, or -1 after it has printed why it cannot. */
int slmp_file_create(struct slmp_file *f);

void slmp_file_write(struct slmp_file *f, uint64_t at, const uint8_t *bytes, size_t length);

/* slmp_file_read_back() computes the checksum of the `size` bytes that the file has now: 0, or -1
 * after it has printed what failed. */
int slmp_file_read_back(struct slmp_file *f, uint64_t size, uint32_t *checksum);

#endif
