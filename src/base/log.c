/* SPDX-License-Identifier: BSD-3-Clause */
/* The log; see log.h. One write() a line, so that lines of threads do not mix. */
#include "base/log.h"

#include "base/cancel.h"
#include "base/sys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic int log_level = LOG_WARN;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"none", "error", "warning", "info", "debug"};
    if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed)) {
        return;
    }
    char line[1024];
    int n = snprintf(line, sizeof(line), "pinwheel[%d] %s: ", (int)getpid(), names[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (m < 0) {
        return;
    }
    size_t length = (size_t)n + (size_t)m;
    if (length > sizeof(line) - 2) {
        length = sizeof(line) - 2;
    }
    line[length++] = '\n';
    ERRNO_KEPT;
    int cancel = cancel_off();
    ssize_t written = sys_write(STDERR_FILENO, line, length);
    (void)written; /* nowhere to complain to */
    cancel_back(cancel);
}

const char *log_remedy(int error)
{
    switch (error) {
    case EMFILE:
        return " (see ulimit -n)";
    case ENFILE:
        return " (see sysctl fs.file-max)";
    default:
        return "";
    }
}
