/* SPDX-License-Identifier: BSD-3-Clause */
/* The module of a theme for TWIN; see ../twin/twin.h. */
#include "runner.h"

#include "../twin/twin.h"

#include <stdio.h>
#include <unistd.h>

int twin_main(int argc, char **argv)
{
    twin_load(argv[0], CREW);
    return suite_run(argc, argv, twin_spread);
}

void twin_life(int rank, void *life)
{
    suite_life(life, rank);
}

void twin_refuse(const char *function)
{
    snprintf(suite_page->process[suite_rank].message, MESSAGE,
             "rank %d calls %s(), which acts on its whole process: its row must say .own_process",
             suite_rank, function);
    _exit(ANSWER_REFUSED);
}
