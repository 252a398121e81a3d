/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of the sPIN paper's figures begin and end with. Each is called as
 *
 *      pinwheel sim -n RANKS PROGRAM BYTES WAY
 *
 * and rank 0 or 1 prints one line that ends with a time in ps, for `pinwheel reproduce`. All ranks
 * leave a fence at one virtual time, so that one may tell when another one began.
 */
#ifndef BENCH_FIGURES_FIGURE_H
#define BENCH_FIGURES_FIGURE_H

#include "start.h" /* of examples/ */

#include "pinwheel_sim.h"

enum { FIGURE_LONGEST = 1 << 26 };

/* figure_start() joins the job of `ranks` ranks and reads the command line: returns which of the
 * ways, of which the last is followed by NULL, is asked for. */
static inline int figure_start(struct start *s, uint32_t ranks, int argc, char **argv,
                               const char *const *ways, unsigned long *bytes)
{
    char says[160] = "BYTES ";
    int way = 0;
    start(s, ranks, ranks);
    for (int i = 0; ways[i] != NULL; i++) {
        strncat(says, i == 0 ? "" : "|", sizeof(says) - strlen(says) - 1);
        strncat(says, ways[i], sizeof(says) - strlen(says) - 1);
    }
    while (ways[way] != NULL && argc > 2 && strcmp(argv[2], ways[way]) != 0) {
        way++;
    }
    if (argc != 3 || ways[way] == NULL || !number(argv[1], 1, FIGURE_LONGEST, bytes)) {
        usage(s, says);
    }
    return way;
}

/* figure_says() prints the value. */
static inline void figure_says(unsigned long bytes, const char *way, uint64_t ps)
{
    printf("%lu bytes, %s: %llu ps\n", bytes, way, (unsigned long long)ps);
}

/* figure_receive() appends an entry, with handlers if there are any. */
static inline void figure_receive(const struct start *s, const ptl_me_t *me,
                                  const ptl_handlers_t *handlers)
{
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, INDEX, me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static inline void figure_expose(const struct start *s, const ptl_me_t *me)
{
    ptl_handle_me_t handle;
    check(PtlMEAppend(s->ni, INDEX, me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
}

static inline void figure_put(ptl_handle_md_t md, size_t length, uint32_t to, ptl_match_bits_t bits)
{
    check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id(to), INDEX, bits, 0, NULL, 0), "PtlPut");
}

#endif
