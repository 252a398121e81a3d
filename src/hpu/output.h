/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that handlers print: the newest bytes of each HPU, in a ring that other threads and
 * processes read while the HPU writes.
 *
 *      begun ──► written: bytes on their way     text[i % size] holds byte i of all that was
 *                                                printed, for the newest `size` of them
 *
 * An HPU runs one handler at a time, so its ring has one writer, which notes in `begun` what it is
 * about to overwrite. A reader copies the bytes up to `written`, then reads `begun`, and keeps only
 * those that the writer cannot have overwritten meanwhile.
 */
#ifndef HPU_OUTPUT_H
#define HPU_OUTPUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "spin.h"

#define HPU_OUTPUT_SIZE ((uint64_t)PTL_SPIN_OUTPUT) /* together with the two counts, 512 bytes */

struct hpu_output {
    _Atomic uint64_t begun, written;
    char text[HPU_OUTPUT_SIZE];
};

#define HPU_LINE_MOST 256 /* the longest text that one call prints */

/* hpu_output_add() prints text of the HPU that calls it. If that is longer than the ring, its last
 * bytes stay. */
void hpu_output_add(struct hpu_output *o, const char *text, size_t length);

/* hpu_output_read() copies the newest bytes, `size` at most, and returns their number; *written
 * counts all bytes ever printed. */
size_t hpu_output_read(const struct hpu_output *o, char *text, size_t size, uint64_t *written);

/* Access to format and arguments of a handler's print, in its own memory and argument list: native
 * or device code. Both functions return 0, or -EFAULT if there is none. */
enum hpu_text_kind {
    HPU_TEXT_INT,
    HPU_TEXT_LONG, /* for z and t, too; extended to 64 bits */
    HPU_TEXT_UNSIGNED_LONG,
    HPU_TEXT_LONG_LONG, /* for j, too */
    HPU_TEXT_POINTER,
    HPU_TEXT_DOUBLE /* the bits of the double */
};

struct hpu_text {
    int (*byte)(struct hpu_text *t, uint64_t address, char *c);
    int (*argument)(struct hpu_text *t, enum hpu_text_kind kind, uint64_t *value);
};

/* hpu_format() makes a line, as snprintf() does, of the format at an address of the handler and its
 * arguments. 0; -EFAULT if some of that cannot be read; or -EINVAL for a conversion other than d i
 * u x X o c s p f e g (with flags, width, precision and length) and %%. *length is the number of
 * bytes stored, `size` at most. */
int hpu_format(char *line, size_t size, size_t *length, struct hpu_text *from, uint64_t format);

#endif
