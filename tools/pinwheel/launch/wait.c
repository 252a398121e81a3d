/* SPDX-License-Identifier: BSD-3-Clause */
/* poll() for many entries, most of which may have no descriptor; see wait.h. */
#include "wait.h"

#include <errno.h>
#include <unistd.h>

enum { NAP_US = 10000 };

int wait_some(struct pollfd *entries, struct pollfd *scratch, nfds_t count, int timeout_ms)
{
    nfds_t present = 0;
    for (nfds_t i = 0; i < count; i++) {
        entries[i].revents = 0;
        if (entries[i].fd >= 0) {
            scratch[present++] = entries[i];
        }
    }
    if (poll(scratch, present, timeout_ms) < 0) {
        int error = errno;
        if (error == EINTR) {
            return 0;
        }
        usleep(NAP_US);
        return -error;
    }
    for (nfds_t i = 0, at = 0; i < count; i++) {
        if (entries[i].fd >= 0) {
            entries[i].revents = scratch[at++].revents;
        }
    }
    return 0;
}
