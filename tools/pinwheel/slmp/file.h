/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that `pinwheel slmp recv` writes: a temporary one beside the one that is wanted, whose
 * bytes are gathered while they follow each other.
 */
#ifndef PINWHEEL_SLMP_FILE_H
#define PINWHEEL_SLMP_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { GATHER = 1 << 20 };

struct slmp_file {
    const char *path; /* the name that it gets at the end */
    char temporary[PATH_MAX];
    int fd;
    int error;       /* errno of a write or read that failed; 0: none */
    uint64_t got;    /* bytes that were handed over */
    uint8_t *gather; /* GATHER bytes, of which `gathered`, not yet written, belong at `gather_at` */
    uint64_t gather_at;
    size_t gathered;
};

/* slmp_file_complain() says what is wrong with the file, and gives -1. */
int slmp_file_complain(const struct slmp_file *f, const char *what);

/* slmp_file_create() makes the temporary file: 0, or -1 after it has said why not. */
int slmp_file_create(struct slmp_file *f);

void slmp_file_write(struct slmp_file *f, uint64_t at, const uint8_t *bytes, size_t length);

/* slmp_file_read_back() gives the checksum of the `size` bytes that are in the file now: 0, or -1
 * after it has said what failed. */
int slmp_file_read_back(struct slmp_file *f, uint64_t size, uint32_t *checksum);

#endif
