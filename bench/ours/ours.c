/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of Pinwheel's own subject: brings the library up and takes turns. */
#include "link.h"

#include <string.h>

static const struct family *const families[] = {
    &family_latency,    &family_stream, &family_calls,  &family_match,
    &family_handler,    &family_rest,   &family_atomic, &family_chain,
    &family_unexpected, &family_mtl,    &family_depth};

enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

int main(void)
{
    static struct turn_duty duties[BENCH_COUNT];
    int count = 0;
    if (turn_join(-1) < 0 || link_open() != 0) {
        return 1;
    }
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = families[i];
        if (f->open != NULL && f->open() != 0) {
            return 1;
        }
        memcpy(duties + count, f->duties, (size_t)f->count * sizeof(duties[0]));
        count += f->count;
    }
    if (link_connect() != 0 || turn_serve(duties, count) != 0) {
        return 1;
    }
    PtlNIFini(self.ni);
    PtlFini();
    return 0;
}
