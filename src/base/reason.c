/* SPDX-License-Identifier: BSD-3-Clause */
/* The line that says why something cannot be done; see reason.h. */
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int reason_say(struct reason *r, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->text, sizeof(r->text), format, args);
    va_end(args);
    return rc;
}

int reason_add(struct reason *r, int rc, const char *format, ...)
{
    size_t used = strlen(r->text);
    va_list args;
    va_start(args, format);
    vsnprintf(r->text + used, sizeof(r->text) - used, format, args);
    va_end(args);
    return rc;
}
