/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel cc`: handlers compiled for two targets.
 *
 *   FILE.c... ─► riscv64-unknown-elf-gcc ─► image (ELF) ──────────┐
 *        ├────► both compilers, -O0 -g ─► state structs compared  │ .incbin, by spin_handler.h
 *        └────► native compiler ────────────────────────► FILE.o ◄┘
 *
 * cc.c has the options, build.c runs the compilers, layout.c compares, statics.c looks for
 * static data that handlers may not have. FILE is in C, or by its name in C++.
 */
#ifndef PINWHEEL_CC_H
#define PINWHEEL_CC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Words of a command line; text is not copied. Zeros are an empty list. */
struct cc_words {
    const char **word; /* with a NULL behind the last one */
    size_t count;
};

struct cc_job {
    struct cc_words sources;
    struct cc_words common; /* options for both compilers */
    struct cc_words c, cxx; /* for both, of sources in C, or in C++ */
    struct cc_words native; /* options for the native one only */
    const char *compiler, *cxx_compiler, *rv32_compiler;
    const char *output;
    const char *depfile; /* NULL: none */
    bool image_only;
    char runtime[PATH_MAX];      /* the folder with calls.S, bytes.c, image.ld */
    char include[PATH_MAX];      /* the folder with spin_handler.h; "" if it is not known */
    char scratch[PATH_MAX - 64]; /* a folder of its own, for what is made on the way */
};

/* cc_add() appends a word; false: no memory, which it has said. */
bool cc_add(struct cc_words *words, const char *word);
/* cc_say() writes "pinwheel cc: text" on stderr and gives -1. */
int cc_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cc_is_cxx() tells by its name whether a source is in C++. */
bool cc_is_cxx(const char *source);

/* cc_build() does the job. It gives 0, or -1 after it has said what is wrong. */
int cc_build(struct cc_job *job);

/* cc_compare() compares the state structs of two objects with debug information, made from
 * the same source for the two targets. It says each difference on stderr, and gives how many
 * there were, or -1 when it cannot tell; *handlers grows by those that are registered. */
int cc_compare(const char *source, const char *native, const char *rv32, int *handlers);

/* cc_check_variables() names static data of an image (ELF) that handlers could write, and
 * cc_check_constructors() an object for RV32 that has static constructors; -1: there is some. */
int cc_check_variables(const char *output, const void *file, size_t size);
int cc_check_constructors(const char *source, const char *object);

#endif
