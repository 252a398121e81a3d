/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognises UTF-8 sequences among any bytes, for output that must be UTF-8. */
#ifndef PINWHEEL_UTF8_H
#define PINWHEEL_UTF8_H

#include <stddef.h>

/* utf8_length() returns the length of the UTF-8 sequence at s, or 0 if there is none (RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF). A NUL byte has length 1, and ends a
 * truncated sequence. */
size_t utf8_length(const unsigned char *s);

#endif
