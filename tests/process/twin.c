/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes a program of ptest.h a module for TWIN; see ../twin/twin.h. */
#include "ptest.h"

#include "../twin/twin.h"

int twin_main(int argc, char **argv)
{
    twin_load(argv[0], PTEST_RANKS);
    return ptest_run(argc, argv, twin_spread);
}

void twin_life(int rank, void *life)
{
    ptest_life(life, rank);
}

void twin_refuse(const char *function)
{
    ptest_refuse(function);
}
