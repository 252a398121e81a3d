/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that outlives its parent; see keeper.h. */
#include "keeper.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) keep(int from, void (*end)(const pid_t *ids, int count))
{
    pid_t *ids = NULL, id;
    uint32_t count = 0, capacity = 0;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    /* The keeper closes all descriptors but the pipe: another process might wait for their end. */
    if (dup2(from, 0) == 0) {
        close_range(1, ~0U, 0);
    }
    while (read(0, &id, sizeof(id)) == (ssize_t)sizeof(id)) {
        if (id == 0) {
            _exit(0);
        }
        if (ARRAY_ROOM(ids, count, capacity, 64)) {
            ids[count++] = id;
        }
    }
    end(ids, (int)count);
    _exit(1);
}

int keeper_start(pid_t *keeper, void (*end)(const pid_t *ids, int count))
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -errno;
    }
    *keeper = fork();
    if (*keeper == 0) {
        keep(ends[0], end);
    }
    int error = errno;
    close(ends[0]);
    if (*keeper < 0) {
        close(ends[1]);
        return -error;
    }
    return ends[1];
}

void keeper_tell(int fd, pid_t id)
{
    if (write(fd, &id, sizeof(id)) < 0) {
        return; /* the keeper was killed; group leaders still get SIGKILL when their parent dies */
    }
}

void keeper_dismiss(int fd, pid_t keeper)
{
    keeper_tell(fd, 0);
    close(fd);
    waitpid(keeper, NULL, 0);
}
