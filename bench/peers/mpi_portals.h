/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether Open MPI really sends by its components for Portals 4. What MPI was asked for
 * by parameters is not what it does: so the program looks where the functions and
 * components lie that libmpi has chosen.
 */
#ifndef BENCH_PEERS_MPI_PORTALS_H
#define BENCH_PEERS_MPI_PORTALS_H

/* portals_carries() gives 0 if the components cm and mtl/portals4 carry messages and
 * osc/portals4 was loaded; else -1 after turn_fail(). */
int portals_carries(void);

#endif
