#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that nobody pins, beside pinned ones and beside other libraries, on a machine with other work.

Each round starts a pair of each subject once, in turn: so what the machine does meanwhile comes to
all of them alike. A pair exchanges eight bytes for 100 ms, and is measured for the next 100
(pair.h). A row is a subject: median over its starts of half a round trip (the mean of a
start, and the median of a start), the ratio to the pinned pair of the same round, and how many
starts were within 1.5 of it.

Usage: unpinned.py --build BUILD [--rounds N] [--busy N] [--seconds S] [--only "NAME;NAME"]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

BUSY = "while True: pass"


def subjects(build):
    """Name, command, environment; the first one is what others are compared with."""
    run = [f"{build}/tools/pinwheel/pinwheel", "run", "-n", "2"]
    ours = [f"{build}/bench/pair_ours"]
    found = [
        ("pinned", run + ["--bind", "core"] + ours, {}),
        ("home", run + ours, {}),
        ("unpinned", run + ["--bind", "none"] + ours, {}),
        ("udp, pinned", run + ["--bind", "core"] + ours,
         {"PINWHEEL_FABRIC": "udp", "PINWHEEL_IFACES": "lo"}),
        ("udp, unpinned", run + ["--bind", "none"] + ours,
         {"PINWHEEL_FABRIC": "udp", "PINWHEEL_IFACES": "lo"}),
    ]
    mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    shared = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
    found.append(("mpirun", mpirun + ["--bind-to", "none"] + ours, {}))
    for name, bind, idle in (("openmpi, pinned", "core", "0"), ("openmpi, unpinned", "none", "0"),
                             ("openmpi, yields", "none", "1")):
        found.append((name, mpirun + ["--bind-to", bind, "--mca", "mpi_yield_when_idle", idle]
                      + shared + [f"{build}/bench/pair_openmpi"], {}))
    for name, bind in (("mpich/ucx, pinned", "core"), ("mpich/ucx, unpinned", "none")):
        found.append((name, ["mpiexec.hydra", "-bind-to", bind, "-n", "2",
                             f"{build}/bench/pair_mpich"], {"UCX_TLS": "sm,self"}))
    return [s for s in found if shutil.which(s[1][0]) and os.path.exists(s[1][-1])]


def start(command, environment):
    """Mean and median of half a round trip, in microseconds."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return tuple(float(word) for word in done.stdout.split()[-2:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("--rounds", type=int, default=100)
    p.add_argument("--busy", type=int, default=1, help="processes that compute meanwhile")
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--only", default="", help="subjects, by name; the first is the yardstick")
    a = p.parse_args()
    chosen = [s for s in subjects(a.build) if not a.only or s[0] in a.only.split(";")]
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(a.busy)]
    results = {name: [] for name, _, _ in chosen}
    end = time.monotonic() + a.seconds
    try:
        for _ in range(a.rounds):
            if time.monotonic() > end:
                break
            for name, command, environment in chosen:
                results[name].append(start(command, environment))
    finally:
        for b in busy:
            b.kill()
            b.wait()
    first = results[chosen[0][0]]
    print(f"{len(first)} starts each, {a.busy} busy processes, {os.cpu_count()} processors")
    print(f"{'':22}{'mean us':>10}{'median us':>11}{'x pinned':>10}{'within 1.5':>12}")
    for name, _, _ in chosen:
        n = min(len(first), len(results[name]))
        ratio = [results[name][i][0] / first[i][0] for i in range(n)]
        yardstick = statistics.median(f[0] for f in first)
        within = sum(r[0] <= 1.5 * yardstick for r in results[name][:n])
        print(f"{name:22}{statistics.median(r[0] for r in results[name]):10.2f}"
              f"{statistics.median(r[1] for r in results[name]):11.2f}"
              f"{statistics.median(ratio):10.2f}{within:7} of {n}")


if __name__ == "__main__":
    main()
