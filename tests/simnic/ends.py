#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whoever is killed, and whenever, nothing is left of a job: ends.py PINWHEEL PROGRAM RUNS [FIRST-SEED].

Each rank has a child in a session of its own (ends.c). `pinwheel sim`, a rank or a child gets SIGKILL
at a random moment; then all processes of the job have to be gone, in their own time.
"""
import os
import random
import signal
import subprocess
import sys
import time

pinwheel, program, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
MOST_S = 60
wrong = 0


def those_of(mark):
    """The processes that have a mark in their environment, with their names."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    continue
            found[int(pid)] = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            pass
    return found


def begin(mark, *arguments):
    name, value = mark.split("=")
    return subprocess.Popen([pinwheel, "sim", "--timeout", str(MOST_S), "--quiet", *arguments],
                            env=dict(os.environ, **{name: value}), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def check_gone(what, mark, job):
    global wrong
    end = time.monotonic() + MOST_S
    status = job.wait(2 * MOST_S)
    while those_of(mark) and time.monotonic() < end:
        time.sleep(0.05)
    left = those_of(mark)
    if left or status == 124:
        wrong += 1
        print(f"{what}: status {status}, left are {left}", file=sys.stderr)
    for pid in left:
        os.kill(pid, signal.SIGKILL)


MARK = f"PINWHEEL_TEST_MARK={os.getpid()}.0"
check_gone("a child that waits", MARK, begin(MARK, program, "waits"))
for seed in range(first, first + runs):
    dice = random.Random(seed)
    mark = f"PINWHEEL_TEST_MARK={os.getpid()}.{seed}"
    job = begin(mark, "-n", "3", program, "20000")
    time.sleep(dice.random() ** 2 / 2)
    who = ("pinwheel", "a rank", "a child")[seed % 3]
    running = those_of(mark)
    ranks = sorted(pid for pid, name in running.items() if name != "pinwheel")
    alone = [pid for pid in ranks if os.path.exists(f"/proc/{pid}") and os.getsid(pid) == pid]
    of = {"pinwheel": [job.pid], "a rank": [p for p in ranks if p not in alone], "a child": alone}[who]
    if of:
        try:
            os.kill(dice.choice(of), signal.SIGKILL)
        except ProcessLookupError:
            pass
    check_gone(f"seed {seed}, {who} is killed", mark, job)
sys.exit(wrong != 0)
