#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The applications of examples/mpi/windows: by messages, by the MPI's own windows, by Pinwheel's.

Each round runs each of these once, in turn: what the machine does meanwhile comes to all of them
alike. A row is a program under an MPI: the median over rounds of the time that the program says a
round of its own takes, and the median of the ratio to messages of the same round. A program checks
its result; one whose result is wrong, or that ends otherwise, is a failure of this program.

Usage: applications.py --build BUILD [--ranks N] [--rounds N] [--mpi openmpi,mpich] [--json]
                       [--only NAME,NAME]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

PROGRAMS = {"hash_table": ["2000", "5"], "sparse_exchange": ["6", "50"], "fft_slabs": ["64", "5"],
            "lattice": ["8", "3"]}
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
    "mpich": ["mpiexec.hydra"],
}
# Open MPI 4.1.4's component rdma ends hash_table by a segmentation fault in its own vader.
STOCK = {"openmpi": ["--mca", "osc", "sm,pt2pt"], "mpich": []}


def subjects(options, mpi, program):
    """Name, command; the first one is what the others are compared with."""
    launcher = LAUNCHERS[mpi]
    run = [f"{options.build}/examples/mpi/{program}_{mpi}"]
    ranks = ["-n", str(options.ranks)]
    found = [("messages", launcher + ranks + run + ["--two-sided"]),
             ("stock windows", launcher + STOCK[mpi] + ranks + run)]
    if os.path.exists(f"{options.build}/lib/mpi-rma/libpinwheel-rma-{mpi}.so"):
        found.append(("our windows", [f"{options.build}/tools/pinwheel/pinwheel", "rma"] + launcher
                      + ranks + run))
    else:
        print(f"applications.py: no libpinwheel-rma-{mpi}.so in {options.build}: without it",
              file=sys.stderr)
    return [(name, command + PROGRAMS[program]) for name, command in found]


def time_of(command):
    """What the program says in its last line, in microseconds."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return float(done.stdout.split()[-1])


def measure(options, mpi, program):
    rows = subjects(options, mpi, program)
    times = {name: [] for name, _ in rows}
    for _ in range(options.rounds):
        for name, command in rows:
            times[name].append(time_of(command))
    base = times[rows[0][0]]
    return [{"program": program, "mpi": mpi, "ranks": options.ranks, "by": name,
             "us": statistics.median(times[name]),
             "ratio": statistics.median(a / b for a, b in zip(times[name], base))}
            for name, _ in rows]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--mpi", default="openmpi,mpich")
    p.add_argument("--only", default=",".join(PROGRAMS))
    p.add_argument("--json", action="store_true")
    options = p.parse_args()
    for name in options.only.split(","):
        if name not in PROGRAMS:
            p.error(f"no program {name}: {', '.join(PROGRAMS)}")
    for mpi in options.mpi.split(","):
        if mpi not in LAUNCHERS:
            p.error(f"no MPI {mpi}: {', '.join(LAUNCHERS)}")
        if shutil.which(LAUNCHERS[mpi][0]) is None:
            p.error(f"no {LAUNCHERS[mpi][0]} here")
    if not options.json:
        print(f"{'program':<16} {'MPI':<8} {'by':<14} {'us':>12} {'ratio':>7}")
    for program in options.only.split(","):
        for mpi in options.mpi.split(","):
            for row in measure(options, mpi, program):
                if options.json:
                    print(json.dumps(row))
                else:
                    print(f"{row['program']:<16} {row['mpi']:<8} {row['by']:<14} {row['us']:>12.1f} "
                          f"{row['ratio']:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
