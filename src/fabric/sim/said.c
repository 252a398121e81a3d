/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the program has written to its rank's output; see said.h. */
#include "fabric/sim/said.h"

#include "base/sys.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The words of its rank, which its children share. */
static struct sim_rank *rank_of(const struct sim_clock *c)
{
    return sim_place(c->segment, sim_host(c->segment, c->rank));
}

void sim_said_join(struct sim_clock *c)
{
    for (int i = 0; i < 2; i++) {
        c->pipes[i] = rank_of(c)->pipes[i];
    }
}

bool sim_said_by(const struct sim_clock *c, int fd)
{
    struct stat s;
    return c->pipes[0] != 0 && SYS_CALL(SYS_fstat, fd, &s) == 0 && S_ISFIFO(s.st_mode) &&
           (s.st_ino == c->pipes[0] || s.st_ino == c->pipes[1]);
}

/* Whether there is something in a pipe; another file that the program has put there has no say. */
static bool holds(const struct sim_clock *c, int fd)
{
    int bytes = 0;
    return SYS_CALL(SYS_ioctl, fd, FIONREAD, &bytes) == 0 && bytes != 0 && sim_said_by(c, fd);
}

bool sim_said(const struct sim_clock *c)
{
    return c->pipes[0] != 0 && (holds(c, STDOUT_FILENO) || holds(c, STDERR_FILENO) ||
                                atomic_load(&rank_of(c)->heard) != 0);
}

void sim_said_all(const struct sim_clock *c)
{
    /* A thread that has ended in the midst of a print has the lock for ever. */
    if (c->pipes[0] != 0 && ftrylockfile(stdout) == 0) {
        fflush_unlocked(stdout);
        funlockfile(stdout);
    }
}
