#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Records tests/trace/clock.c by both clocks: what a rank waits between calls is in a recording of
real time only, what it computes is in both, and no call is before the end of MPI_Init.

Usage: check_clock.py PINWHEEL PROGRAM LAUNCHER...
"""
import subprocess
import sys
import tempfile

pinwheel, program, *launcher = sys.argv[1:]


def gaps(folder, rank):
    """Times between barriers in ms, by thread."""
    lines = [line.split() for line in open(f"{folder}/rank-{rank}.trace").read().splitlines()[1:]]
    begun = int(lines[0][1]) + int(lines[0][2])
    found = {}
    for name, start, took, *_ in lines:
        if name.startswith("Barrier"):
            assert int(start) >= begun, (name, start, begun)
            found.setdefault(name, []).append((int(start), int(start) + int(took)))
    return {name: [(b[0] - a[1]) / 1e6 for a, b in zip(calls, calls[1:])]
            for name, calls in found.items()}


for clock in ("real", "cpu"):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([pinwheel, "goal", "record", "--clock", clock, "-o", folder, *launcher, "-n", "2", program],
                       check=True, timeout=200)
        for rank in range(2):
            found = gaps(folder, rank)
            assert "Barrier" in found, found
            for name, (waited, computed) in found.items():
                assert (waited >= 200) if clock == "real" else (waited < 100), (clock, name, waited)
                assert computed >= 49, (clock, name, computed)
        made = subprocess.run([pinwheel, "goal", "trace", folder, "-o", folder + "/x.bin"])
        assert made.returncode == 0
bad = subprocess.run([pinwheel, "goal", "record", "--clock", "sun", "-o", "x", "true"], capture_output=True, text=True)
assert bad.returncode == 2 and "must be real or cpu" in bad.stderr, bad
