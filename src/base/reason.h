/* SPDX-License-Identifier: BSD-3-Clause */
/* The line that tells the user why something cannot be done: it names the thing, the value and the
 * remedy. */
#ifndef BASE_REASON_H
#define BASE_REASON_H

struct reason {
    char text[640];
};

/* reason_say() writes the line and returns `rc`; reason_add() appends to the line, and returns
 * `rc`. */
int reason_say(struct reason *, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int reason_add(struct reason *, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
