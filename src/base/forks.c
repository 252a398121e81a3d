/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections that a fork() does not cut; see forks.h. */
#include "base/forks.h"

#include "base/mutex.h"

static struct mutex gate; /* who forks has it until the child is made */
static struct condition left;
static unsigned inside; /* sections under way, nested ones as well */

void forks_hold(void)
{
    mutex_take(&gate);
    inside++;
    mutex_give(&gate);
}

void forks_release(void)
{
    mutex_take(&gate);
    if (--inside == 0) {
        condition_signal(&left);
    }
    mutex_give(&gate);
}

void forks_gate(enum fork_phase phase)
{
    if (phase == FORK_PREPARE) {
        mutex_take(&gate);
        while (inside != 0) {
            condition_wait(&left, &gate);
        }
        condition_signal(&left); /* another thread that forks may have waited as well */
        return;
    }
    mutex_give(&gate);
}
