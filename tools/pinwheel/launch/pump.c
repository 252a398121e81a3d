/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies standard input to rank 0; see pump.h. */
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void pump_start(struct pump *p, int to)
{
    p->to = to;
    p->length = 0;
    fcntl(to, F_SETFL, O_NONBLOCK);
}

void pump_stop(struct pump *p)
{
    if (p->to >= 0) {
        close(p->to);
    }
    p->to = -1;
    p->length = 0;
}

bool pump_reads(const struct pump *p)
{
    return p->to >= 0 && p->length == 0;
}

bool pump_writes(const struct pump *p)
{
    return p->to >= 0 && p->length > 0;
}

void pump_read(struct pump *p, int from)
{
    ssize_t n = read(from, p->bytes, sizeof(p->bytes));
    if (n > 0) {
        p->length = (size_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        pump_stop(p);
    }
}

void pump_write(struct pump *p)
{
    ssize_t n = write(p->to, p->bytes, p->length);
    if (n > 0) {
        p->length -= (size_t)n;
        memmove(p->bytes, p->bytes + n, p->length);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        pump_stop(p); /* rank 0 has closed its input */
    }
}
