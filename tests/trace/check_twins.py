#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Records programs that do the same through other interfaces of MPI: their recordings
must have the same lines, times aside, and become the same schedule.

Usage: check_twins.py PINWHEEL RANKS [--arguments="A B"] PROGRAM... -- LAUNCHER...
"""
import os
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)
    if done.returncode != 0:
        sys.exit("FAILED: %s: status %d\n%s%s" %
                 (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout


def lines_of(folder, ranks):
    """The calls of each rank without their times; how often one looked in vain is chance."""
    lines = []
    for rank in range(ranks):
        with open(os.path.join(folder, "rank-%d.trace" % rank)) as f:
            words = [line.split() for line in f]
        lines += [(rank, w[0], *(w[1:] if i == 0 else w[3:]))
                  for i, w in enumerate(words) if w[0] != "Poll"]
    return lines


def record(pinwheel, ranks, launcher, program, arguments):
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "recording")
        run([pinwheel, "goal", "record", "-o", folder] + launcher + ["-n", ranks, program] +
            arguments)
        return (lines_of(folder, int(ranks)),
                run([pinwheel, "goal", "trace", "--no-gaps", "--text", folder]))


def main():
    args = sys.argv[1:]
    given = [a for a in args if a.startswith("--arguments=")]
    arguments = given[0].split("=")[1].split() if given else []
    pinwheel, ranks, *rest = [a for a in args if a not in given]
    programs, launcher = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    first = record(pinwheel, ranks, launcher, programs[0], arguments)
    if len(first[0]) < 10 * int(ranks):
        sys.exit("FAILED: %s: a recording of %d lines" % (programs[0], len(first[0])))
    for program in programs[1:]:
        lines, schedule = record(pinwheel, ranks, launcher, program, arguments)
        for a, b in zip(first[0], lines):
            if a != b:
                sys.exit("FAILED: %s has %s\n%s has %s" % (programs[0], a, program, b))
        if len(lines) != len(first[0]) or schedule != first[1]:
            sys.exit("FAILED: %s: %d lines, %s: %d; %s schedule" %
                     (programs[0], len(first[0]), program, len(lines),
                      "the same" if schedule == first[1] else "another"))


main()
