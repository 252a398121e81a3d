/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one line a message on standard error, "pinwheel[pid] level: text".
 * The level is a property of the process (PINWHEEL_LOG); nothing that a user
 * must know is said only here, but for the remedy of an error.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* log_set_level() is called at PtlInit with the value of PINWHEEL_LOG. */
void log_set_level(enum log_level level);

/* log_line() writes one line if the level asks for it. Any thread may call it. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* log_again() says whether a line may be written now (clock_ns()) that may come again and again:
 * ten of a cause, `key`, then one a second. `note` is for its end: "", or that lines were left
 * out, and how many. Any thread may call it. Of 64 causes it knows; of more, those that came last.
 * Two threads at once may be let through both. */
enum { LOG_NOTE = 64 };
bool log_again(uint64_t key, int64_t now, char note[LOG_NOTE]);

/* log_remedy() gives what helps against an error of the system wherever it comes from, to be put
 * behind its text; "" where that depends. */
const char *log_remedy(int error);

#endif
