/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet's names for the calls, in a program that is linked with a library that has such functions
 * of its own (names_other.c): neither gets the other one's. */
#define PW_FIREHOSE_GASNET_NAMES
#include "firehose.h"

#include <stdio.h>

static struct pw_firehose *firehose_table;

int firehose_init(int);
int other_pins(void);

static int move(void *client, const struct pw_firehose_region *unpins, size_t u,
                struct pw_firehose_region *pins, size_t n)
{
    *(size_t *)client += n;
    return 0;
}

int main(void)
{
    static const struct pw_firehose_ops ops = {.move = move};
    size_t pins = 0;
    struct pw_firehose_config c = {.nodes = 1,
                                   .max_pinnable = 1 << 26,
                                   .flags = PW_FIREHOSE_LOCAL_ONLY | PW_FIREHOSE_NO_ENV,
                                   .ops = &ops,
                                   .client = &pins};
    firehose_request_t r = {0}, *one = &r;
    if (firehose_init(7) != 42 || pw_firehose_init(&c, &firehose_table, NULL) != 0 ||
        firehose_try_local_pin(65536, 1, one) != NULL || firehose_local_pin(65536, 1, one) != one) {
        return 1;
    }
    firehose_poll();
    firehose_release(&one, 1);
    if (firehose_partial_local_pin(65536, 1, one) != one || pins != 1 || other_pins() != 1) {
        return 1;
    }
    firehose_release(&one, 1);
    firehose_fini();
    return 0;
}
