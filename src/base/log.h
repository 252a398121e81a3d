/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one line a message on standard error, "pinwheel[pid] level: text". The level is one for
 * the process (PINWHEEL_LOG). Errors also reach the program as return codes; only their remedy is
 * told by the log alone.
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

/* log_again() is asked before a line that may repeat without end. It returns true if the caller may
 * write the line now (clock_ns()): the first ten of a cause, which is named by `key`, then one a
 * second. `note` is text to put at the line's end: "", or how many lines were left out. Any thread
 * may call it; two threads at once may both get true. It remembers 64 causes; a new one takes the
 * place of the cause whose line is the oldest. */
enum { LOG_NOTE = 64 };
bool log_again(uint64_t key, int64_t now, char note[LOG_NOTE]);

/* log_remedy() returns the remedy of a system error, as text to put behind the error's, where the
 * remedy does not depend on what the caller did; else "". */
const char *log_remedy(int error);

#endif
