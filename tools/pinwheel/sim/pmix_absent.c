/* SPDX-License-Identifier: BSD-3-Clause */
/* In the place of the PMIx server where Pinwheel was built without PMIx's headers. */
#include "pmix.h"

#include <stdio.h>

struct sim_pmix *sim_pmix_start(int ranks)
{
    fprintf(stderr, "pinwheel sim: the program needs a PMIx server, and this pinwheel was built "
                    "without PMIx: build it where pmix_server.h is (Debian: libpmix-dev)\n");
    return NULL;
}

char ***sim_pmix_environment(struct sim_pmix *p)
{
    return NULL;
}

void sim_pmix_exited(struct sim_pmix *p, int rank, bool well, bool excused)
{
}

int sim_pmix_verdict(struct sim_pmix *p, char *why, size_t size)
{
    return -1;
}

bool sim_pmix_used(const struct sim_pmix *p)
{
    return false;
}

void sim_pmix_end(struct sim_pmix *p)
{
}
