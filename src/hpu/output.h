/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that handlers print: the newest bytes of each HPU, in a ring that others, also other
 * processes, read while it is written.
 *
 *      begun ──► written: bytes on their way     text[i % size] holds byte i of all that was
 *                                                printed, for the newest `size` of them
 *
 * An HPU runs one handler at a time, so its ring has one writer, which announces in `begun`
 * what it is about to overwrite. A reader copies what is there up to `written`, then looks at
 * `begun`, and keeps only what cannot have been overwritten meanwhile.
 */
#ifndef HPU_OUTPUT_H
#define HPU_OUTPUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "spin.h"

#define HPU_OUTPUT_SIZE ((uint64_t)PTL_SPIN_OUTPUT) /* with the counts, 512 bytes */

struct hpu_output {
    _Atomic uint64_t begun, written;
    char text[HPU_OUTPUT_SIZE];
};

#define HPU_LINE_MOST 256 /* bytes that one call prints */

/* hpu_output_add() prints, on the HPU. Of more than the ring holds the last bytes stay. */
void hpu_output_add(struct hpu_output *o, const char *text, size_t length);

/* hpu_output_read() copies the newest bytes, `size` at most, and returns how many; *written
 * counts all that were printed. */
size_t hpu_output_read(const struct hpu_output *o, char *text, size_t size, uint64_t *written);

/* The arguments of a handler's print, as its processor has them: bytes at its addresses, arguments
 * one after another. Both give 0, or -EFAULT if they are not there. */
enum hpu_text_kind {
    HPU_TEXT_INT,
    HPU_TEXT_LONG, /* z and t as well; extended to 64 bits */
    HPU_TEXT_UNSIGNED_LONG,
    HPU_TEXT_LONG_LONG, /* j as well */
    HPU_TEXT_POINTER,
    HPU_TEXT_DOUBLE /* its bits */
};

struct hpu_text {
    int (*byte)(struct hpu_text *t, uint64_t address, char *c);
    int (*argument)(struct hpu_text *t, enum hpu_text_kind kind, uint64_t *value);
};

/* hpu_format() makes a line as snprintf() does, from the format at an address of the handler's
 * and what follows it: 0; -EFAULT if some of that cannot be read, or -EINVAL for a conversion
 * other than d i u x X o c s p f e g (with their flags, width, precision and length) and %%.
 * *length is what was stored, `size` at most. */
int hpu_format(char *line, size_t size, size_t *length, struct hpu_text *from, uint64_t format);

#endif
