/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's environment variables, which docs/options.md lists. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So much of peers' memory is mapped whole: its page tables take 1/512, 128 MiB. Beyond that
 * buckets of 2 MiB, each with a page of page tables, which goes with it. Below LAZY_PERCENT hits
 * mapping one costs more than it saves; shorter than that it always pays (docs/rma.md). */
#define MAP_MOST (UINT64_C(64) << 30)
#define LAZY_MOST (UINT64_C(1) << 30)
#define BUCKET (UINT64_C(2) << 20)
enum { ALWAYS_PAYS = 16384, LAZY_PERCENT = 94 };

static int path_read(struct pw_rma *rma)
{
    static const char *const names[] = {[WAY_DIRECT] = "direct",
                                        [WAY_NATIVE] = "native",
                                        [WAY_HANDLER] = "handler",
                                        [WAY_TWO_SIDED] = "two-sided"};
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
    fprintf(stderr,
            "pinwheel-rma: PINWHEEL_RMA_PATH=%s: must be direct, native, handler or two-sided\n",
            text);
    return -EINVAL;
}

static int number_read(const char *name, uint64_t fallback, uint64_t most, uint64_t *value)
{
    const char *text = getenv(name);
    char *end;
    *value = fallback;
    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || *text < '0' || *text > '9' || *value > most) {
        fprintf(stderr, "pinwheel-rma: %s=%s: must be a number up to %llu\n", name, text,
                (unsigned long long)most);
        return -EINVAL;
    }
    return 0;
}

static int bucket_read(struct pw_rma *rma)
{
    uint64_t percent;
    int rc = number_read("PINWHEEL_RMA_BUCKET", BUCKET, UINT64_C(1) << 40, &rma->bucket);
    if (rc == 0 && (rma->bucket < SHARE_PAGE || (rma->bucket & (rma->bucket - 1)) != 0)) {
        fprintf(stderr,
                "pinwheel-rma: PINWHEEL_RMA_BUCKET=%llu: must be a power of two from %d on\n",
                (unsigned long long)rma->bucket, SHARE_PAGE);
        rc = -EINVAL;
    }
    if (rc == 0) {
        rc = number_read("PINWHEEL_RMA_LAZY_HITS", rma->bucket > ALWAYS_PAYS ? LAZY_PERCENT : 0,
                         100, &percent);
        rma->lazy_hits = (uint32_t)(percent * 65536 / 100);
    }
    return rc;
}

int options_read(struct pw_rma *rma)
{
    int rc = path_read(rma);
    if (rc == 0) {
        rc = number_read("PINWHEEL_RMA_MAP", MAP_MOST, UINT64_MAX, &rma->map_most);
    }
    if (rc == 0) {
        rc = number_read("PINWHEEL_RMA_LAZY", LAZY_MOST, UINT64_C(1) << 46, &rma->lazy_most);
    }
    return rc != 0 ? rc : bucket_read(rma);
}
