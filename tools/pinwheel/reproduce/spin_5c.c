/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 5c of the sPIN paper: programs of MPI on hosts that match messages and bring them in, and
 * on NICs that do. Traces are own recordings (bench/traces); those of the paper are run where they
 * are to be had. Rows have no expectations, since no two recordings compute for the same time: what
 * is held is which part of the communication is gone.
 */
#include "figures.h"

enum { LAMMPS, LAMMPS_GROWN, MEEP, GERRIS, HPCC, MILC, POP, COMD, CLOVERLEAF };
static const char *const traces[] = {"lammps", "lammps-grown", "meep", "gerris",    "hpcc",
                                     "milc",   "pop",          "comd", "cloverleaf"};

/* clang-format off */
#define ROW(nic, ranks, trace, quick) {nic, ranks, trace, quick, {FIGURE_OPEN, FIGURE_OPEN, FIGURE_OPEN}}
static const struct figure_row rows[] = {
    ROW("integrated", 27, LAMMPS, true),
    ROW("integrated", 64, LAMMPS, false),
    ROW("integrated", 125, LAMMPS_GROWN, false),
    ROW("integrated", 16, MEEP, true),
    ROW("integrated", 64, MEEP, false),
    ROW("integrated", 16, GERRIS, true),
    ROW("integrated", 64, GERRIS, false),
    ROW("integrated", 16, HPCC, true),
    ROW("discrete", 27, LAMMPS, true),
    ROW("discrete", 64, LAMMPS, false),
    ROW("discrete", 16, MEEP, true),
    ROW("discrete", 64, MEEP, false),
    ROW("discrete", 16, GERRIS, true),
    ROW("discrete", 64, GERRIS, false),
    ROW("discrete", 16, HPCC, true),
    ROW("integrated", 64, MILC, true),
    ROW("integrated", 64, POP, true),
    ROW("integrated", 72, COMD, true),
    ROW("integrated", 360, COMD, false),
    ROW("integrated", 72, CLOVERLEAF, true),
    ROW("integrated", 360, CLOVERLEAF, false),
};
/* clang-format on */

enum { TOTAL, HOST, NIC };

/* Of the table of section 5.1: 0.7 of 3.1 % (POP) to 3.6 of 5.5 % (MILC). */
#define GONE(nic, ranks, trace)                                                                    \
    {                                                                                              \
        "22 to 65 % of the overhead gone", "section 5.1; each program has its own part",           \
            ANCHOR_LESS, NIC, HOST, nic, ranks, trace, 0.435, 0, 0.22                              \
    }
static const struct figure_anchor anchors[] = {
    GONE("integrated", 27, LAMMPS),
    GONE("integrated", 64, LAMMPS),
    GONE("integrated", 125, LAMMPS_GROWN),
    GONE("integrated", 16, MEEP),
    GONE("integrated", 64, MEEP),
    GONE("integrated", 16, GERRIS),
    GONE("integrated", 64, GERRIS),
    GONE("integrated", 16, HPCC),
    GONE("discrete", 27, LAMMPS),
    GONE("discrete", 64, LAMMPS),
    GONE("discrete", 16, MEEP),
    GONE("discrete", 64, MEEP),
    GONE("discrete", 16, GERRIS),
    GONE("discrete", 64, GERRIS),
    GONE("discrete", 16, HPCC),
    {"MILC: 3.6 of 5.5 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 64, MILC, 0.65, 0,
     0},
    {"POP: 0.7 of 3.1 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 64, POP, 0.23, 0, 0},
    {"coMD: 3.7 of 6.1 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 72, COMD, 0.61, 0,
     0},
    {"coMD: 3.8 of 6.5 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 360, COMD, 0.58, 0,
     0},
    {"Cloverleaf: 2.8 of 5.2 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 72,
     CLOVERLEAF, 0.54, 0, 0},
    {"Cloverleaf: 2.4 of 5.6 %", "section 5.1", ANCHOR_LESS, NIC, HOST, "integrated", 360,
     CLOVERLEAF, 0.43, 0, 0},
};

const struct figure figure_spin_5c = {
    .name = "5c",
    .paper = "spin-sc17",
    .title = "Programs, and what communication takes of them by hosts and by NICs",
    .program = "figure_5c.sh",
    .folder = "bench/traces",
    .by_ranks = true,
    .ways = 3,
    .way = {"total", "host", "nic"},
    FIGURE_ROWS(rows),
    FIGURE_ANCHORS(anchors),
    .alone = true,
    .trace = traces,
    .why = "where messages are short it is the copy of one, 51 ns (host_latency), and that only of "
           "those whose recv is posted; hpcc's time is that of the bytes of large ones",
};
