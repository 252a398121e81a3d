/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that live and die together; see children.h. */
#include "children.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t child_begin(int number, void (*run)(int number))
{
    fflush(NULL); /* or both would write what is not written yet */
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        run(number);
        exit(0);
    }
    return child;
}

int children_wait(pid_t *child, unsigned count)
{
    int status, failed = 0;
    pid_t ended;
    while ((ended = wait(&status)) > 0) {
        failed = failed != 0 ? failed : status;
        for (unsigned i = 0; i < count; i++) {
            child[i] = child[i] == ended ? 0 : child[i];
            if (failed != 0 && child[i] > 0) {
                kill(child[i], SIGKILL);
            }
        }
    }
    return failed;
}
