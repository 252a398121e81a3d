/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's environment variables, which docs/options.md lists. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So much of peers' memory is mapped whole: the page tables of it take 1/512, 128 MiB. */
#define MAP_MOST (UINT64_C(64) << 30)

static int path_read(struct pw_rma *rma)
{
    static const char *const names[] = {
        [WAY_DIRECT] = "direct", [WAY_NATIVE] = "native", [WAY_HANDLER] = "handler"};
    const char *text = getenv("PINWHEEL_RMA_PATH");
    if (text == NULL || *text == '\0') {
        return 0;
    }
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            rma->most = (enum way)i;
            return 0;
        }
    }
    fprintf(stderr, "pinwheel-rma: PINWHEEL_RMA_PATH=%s: must be direct, native or handler\n",
            text);
    return -EINVAL;
}

static int map_read(struct pw_rma *rma)
{
    const char *text = getenv("PINWHEEL_RMA_MAP");
    char *end;
    rma->map_most = MAP_MOST;
    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    rma->map_most = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || *text < '0' || *text > '9') {
        fprintf(stderr, "pinwheel-rma: PINWHEEL_RMA_MAP=%s: must be a number of bytes\n", text);
        return -EINVAL;
    }
    return 0;
}

int options_read(struct pw_rma *rma)
{
    int rc = path_read(rma);
    return rc != 0 ? rc : map_read(rma);
}
