/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BOOT_JSON_CHECK_H
#define TESTS_BOOT_JSON_CHECK_H

/* json_check() returns NULL if `text` is exactly one JSON value (RFC 8259) and
 * blanks, or the place where it stops being one. Escapes and structure are
 * checked; that strings are UTF-8 is not. */
const char *json_check(const char *text);

#endif
