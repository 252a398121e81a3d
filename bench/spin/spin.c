/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of the benches of the handler library, but for `overlap`; see jobs.h. */
#include "jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct spin_family *const families[] = {&spin_layout, &spin_pingpong, &spin_threads,
                                                     &spin_words,  &spin_requests, &spin_match,
                                                     &spin_graph,  &spin_scan};

enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

static int serve(void)
{
    static struct turn_duty duties[BENCH_COUNT];
    int count = 0;
    for (int i = 0; i < FAMILIES; i++) {
        const struct spin_family *f = families[i];
        if ((f->ways >> spin.way & 1) != 0) {
            memcpy(duties + count, f->duties, (size_t)f->count * sizeof(duties[0]));
            count += f->count;
        }
    }
    return turn_serve(duties, count);
}

int main(int argc, char **argv)
{
    static const char *const ways[WAYS] = {"handlers", "cpu", "plain", "hpus",
                                           "hpu",      "one", "fifo"};
    int way = 0;
    while (argc == 2 && way < WAYS && strcmp(argv[1], ways[way]) != 0) {
        way++;
    }
    if (argc != 2 || way == WAYS) {
        fprintf(stderr, "usage: %s handlers | cpu | plain | hpus | hpu | one | fifo\n",
                program_invocation_short_name);
        return 2;
    }
    if (turn_join(-1) < 0 || (way >= WAY_HPUS && spin_hpus(way == WAY_HPUS ? 2 : 1, true) != 0) ||
        spin_open((enum spin_way)way) != 0 || link_connect() != 0 || serve() != 0) {
        return 1;
    }
    PtlNIFini(self.ni);
    PtlFini();
    return 0;
}
