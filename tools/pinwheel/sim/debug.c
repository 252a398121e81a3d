/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is debugged; see debug.h. */
#include "debug.h"

#include "shared.h"

#include "base/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_NS = 20000000 };

/* Whether a process is traced, as its file in /proc says. */
static bool is_traced(uint32_t pid)
{
    char path[40], text[2048];
    snprintf(path, sizeof(path), "/proc/%u/status", pid);
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd >= 0 ? sys_read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0) {
        sys_close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *tracer = strstr(text, "\nTracerPid:");
    return tracer != NULL && atoi(tracer + strlen("\nTracerPid:")) != 0;
}

bool debug_holds(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t pid = c->players[c->out.rank[i]].process;
        if (pid != 0 && is_traced(pid)) {
            return true;
        }
    }
    return false;
}

void debug_await(struct coordinator *c)
{
    uint32_t rank = c->setup.debug, pid = shared_process(c, rank);
    fprintf(stderr,
            "pinwheel sim: rank %u waits for a debugger before its main(), at 0 us: gdb -p %u -ex "
            "'handle SIGSYS nostop noprint pass' -ex 'break main' -ex continue\n",
            rank, pid);
    while (!is_traced(pid) && !atomic_load(&c->stop) && !atomic_load(&c->players[rank].exited)) {
        sys_nap(LOOK_NS);
    }
}
