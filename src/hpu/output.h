/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers print: the newest bytes of each HPU, in a ring that others, also other
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

#include <stdarg.h>
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

/* hpu_format() makes a line as snprintf() does, from a format and strings that the handler
 * names: 0; -EFAULT if one of them cannot be read, or -EINVAL for a conversion other than
 * d i u x X o c s p f e g (with their flags, width, precision and length) and %%. *length is
 * what was stored, `size` at most. */
int hpu_format(char *line, size_t size, size_t *length, const char *format, va_list args);

#endif
