/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel cc`: handlers compiled for two targets.
 *
 *   FILE.c... ─► riscv64-unknown-elf-gcc ─► image (ELF) ──────────┐
 *        ├────► both compilers, -O0 -g ─► state structs compared  │ .incbin, by spin_handler.h
 *        └────► native compiler ────────────────────────► FILE.o ◄┘
 *
 * cc.c has the options, build.c runs the compilers, layout.c compares the structs, statics.c looks
 * for static data that handlers may not have. FILE is in C, or in C++ if its name says so.
 */
#ifndef PINWHEEL_CC_H
#define PINWHEEL_CC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Words of a command line. It keeps pointers to the words, not copies. A zeroed struct is an empty
 * list. */
struct cc_words {
    const char **word; /* words; a NULL follows the last one */
    size_t count;
};

struct cc_job {
    struct cc_words sources;
    struct cc_words common; /* options for both compilers, in any language */
    struct cc_words c, cxx; /* options for both compilers, for sources in C, and in C++ */
    struct cc_words native; /* options for the native compiler only */
    const char *compiler, *cxx_compiler, *rv32_compiler;
    const char *output;
    const char *depfile; /* where to write dependencies; NULL: nowhere */
    bool image_only;
    bool reals;                  /* the cores have the extensions F and D */
    char runtime[PATH_MAX];      /* the folder with calls.S, bytes.c, image.ld */
    char include[PATH_MAX];      /* the folder with spin_handler.h; "" if it was not found */
    char scratch[PATH_MAX - 64]; /* a temporary folder for intermediate files */
};

/* cc_add() appends a word; false: memory is short, and it has printed that. */
bool cc_add(struct cc_words *words, const char *word);
/* cc_say() writes "pinwheel cc: text" on stderr and returns -1. */
int cc_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cc_is_cxx() is true if a source is in C++, by its name. */
bool cc_is_cxx(const char *source);

/* cc_build() does the whole job. It returns 0, or -1 after it has printed what is wrong. */
int cc_build(struct cc_job *job);

/* cc_compare() compares the state structs of two objects with debug information, which were made
 * from the same source for the two targets. It prints each difference on stderr, and returns how
 * many there were, or -1 if it cannot tell. It adds the number of registered handlers to
 * *handlers. */
int cc_compare(const char *source, const char *native, const char *rv32, int *handlers);

/* cc_check_variables() reports static data of an image (ELF) that handlers could write;
 * cc_check_constructors() reports an RV32 object that has static constructors. They return 0, or -1
 * if they have reported something. */
int cc_check_variables(const char *output, const void *file, size_t size);
int cc_check_constructors(const char *source, const char *object);

#endif
