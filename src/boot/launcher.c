/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the launcher that started this process, if any; see launcher.h. */
#include "boot/launcher.h"

#include "base/number.h"
#include "boot/pmi_client.h"
#include "boot/pmix.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTION_UNUSED, CONNECTION_IN_USE, CONNECTION_ENDED };
static _Atomic int connection = CONNECTION_UNUSED;

int launcher_fail(struct launcher *l, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->error, sizeof(l->error), format, args);
    va_end(args);
    return rc;
}

int launcher_number(const char *text, int min, int *number)
{
    int64_t v = 0;
    int rc = number_read(text, min, INT_MAX, &v) ? 0 : -1;
    *number = rc == 0 ? (int)v : *number;
    return rc;
}

int launcher_claim(struct launcher *l)
{
    int state = CONNECTION_UNUSED;
    if (atomic_compare_exchange_strong(&connection, &state, CONNECTION_IN_USE)) {
        return 0;
    }
    if (state == CONNECTION_IN_USE) {
        return launcher_fail(l, -EBUSY, "this process is in a job already; use that one");
    }
    return launcher_fail(l, -EALREADY,
                         "this process left its job with pinwheel_job_finalize(), and a launcher "
                         "lets a process join once; so it is without a launcher, too");
}

void launcher_release(bool used)
{
    atomic_store(&connection, used ? CONNECTION_ENDED : CONNECTION_UNUSED);
}

/* The first launcher whose variables are set is taken. PMI_FD comes first because `pinwheel run`
 * and mpiexec may themselves have been started by a PMIx launcher, whose variables their ranks
 * inherit. */
int launcher_join(struct launcher *l)
{
    if (getenv("PMI_FD") != NULL) {
        return pmi_client_join(l);
    }
    if (getenv("PMIX_NAMESPACE") != NULL || getenv("PMIX_RANK") != NULL) {
        return pmix_join(l);
    }
    if (getenv("PMI_PORT") != NULL) {
        return launcher_fail(
            l, -EOPNOTSUPP,
            "PMI_PORT=%s: PMI-1 through a port is not supported, only through PMI_FD; "
            "start with `pinwheel run`, or mpiexec without -pmi-port",
            getenv("PMI_PORT"));
    }
    const char *size = getenv("PMI_SIZE");
    if (size != NULL || getenv("PMI_RANK") != NULL) {
        return launcher_fail(
            l, -EINVAL,
            "%s is set but PMI_FD is not: a launcher of PMI-1 sets PMI_FD, PMI_RANK and "
            "PMI_SIZE; to run alone, unset them all",
            size != NULL ? "PMI_SIZE" : "PMI_RANK");
    }
    return pmi_client_alone(l);
}
