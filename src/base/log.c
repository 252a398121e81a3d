/* SPDX-License-Identifier: BSD-3-Clause */
/* The log; see log.h. Each line is one write(), so that the lines of several threads do not mix. */
#include "base/log.h"

#include "base/cancel.h"
#include "base/sys.h"

#include <errno.h>
#include <inttypes.h>
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
    (void)written; /* if standard error cannot be written there is no place to report it */
    cancel_back(cancel);
}

/* ---- Lines that come again and again ---- */

enum { CAUSES = 64, AT_ONCE = 10 };
#define APART_NS INT64_C(1000000000)

/* The causes have no lock, since a forked child could inherit it taken. Free places are filled from
 * the first on. */
static struct cause {
    _Atomic uint64_t key; /* 0: free */
    _Atomic unsigned lines;
    _Atomic uint64_t unsaid;
    _Atomic int64_t last; /* when the last line of this cause was written */
} causes[CAUSES];

static struct cause *cause_of(uint64_t key)
{
    struct cause *oldest = &causes[0];
    for (struct cause *c = causes; c < causes + CAUSES; c++) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&c->key, &found, key) || found == key) {
            return c;
        }
        oldest = atomic_load(&c->last) < atomic_load(&oldest->last) ? c : oldest;
    }
    atomic_store(&oldest->lines, 0);
    atomic_store(&oldest->unsaid, 0);
    atomic_store(&oldest->key, key);
    return oldest;
}

bool log_again(uint64_t key, int64_t now, char note[LOG_NOTE])
{
    struct cause *c = cause_of(key != 0 ? key : 1);
    int64_t last = atomic_load(&c->last);
    note[0] = '\0';
    if (atomic_load(&c->lines) < AT_ONCE) {
        atomic_store(&c->last, now);
        if (atomic_fetch_add(&c->lines, 1) == AT_ONCE - 1) {
            snprintf(note, LOG_NOTE, "; from here on one line a second");
        }
        return true;
    }
    if (now - last < APART_NS || !atomic_compare_exchange_strong(&c->last, &last, now)) {
        atomic_fetch_add(&c->unsaid, 1);
        return false;
    }
    snprintf(note, LOG_NOTE, "; %" PRIu64 " more since the line before",
             atomic_exchange(&c->unsaid, 0));
    return true;
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
