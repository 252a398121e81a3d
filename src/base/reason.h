/* SPDX-License-Identifier: BSD-3-Clause */
/* Why something cannot be done: a line for the user that names the thing, the value and the remedy.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

struct reason {
    char text[640];
};

/* reason_say() writes the line and returns `rc`; reason_add() writes on where the line ends. */
int reason_say(struct reason *, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int reason_add(struct reason *, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
