/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for pmix.c in a library that was built without the headers of PMIx: joining fails. */
#include "boot/pmix.h"

#include <errno.h>
#include <stdlib.h>

int pmix_join(struct launcher *l)
{
    bool named = getenv("PMIX_NAMESPACE") != NULL;
    return launcher_fail(
        l, -EOPNOTSUPP,
        "%s is set, so a PMIx launcher started this process, but this library was built without "
        "PMIx: build it with pmix.h at hand (Debian: libpmix-dev), or start with `pinwheel run`",
        named ? "PMIX_NAMESPACE" : "PMIX_RANK");
}
