#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
`goal run --nic --rendezvous`: one message takes what the calculator of figure 5b says, to the
picosecond (of the paper's protocol; a short one that meets its recv at the NIC takes no handler
there), and schedules with short and long messages of one tag end, whatever computes meanwhile.

Usage: rendezvous.py PINWHEEL
"""
import json
import os
import random
import subprocess
import sys
import tempfile

pinwheel = sys.argv[1]
reference = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../sim/reference/spin_figures.py")
SIZES = (64, 4096, 4097, 16384, 65536, 262144)
HANDLER = 10
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def expected(nic, busy):
    run = subprocess.run([sys.executable, reference, "5b", "--nic", nic, "--memory", "6.667", "--put", "0", "--busy",
                          str(busy), "--sizes", ",".join(map(str, SIZES)), "--json"], check=True, capture_output=True,
                         text=True)
    return {(row["posted"], row["bytes"]): row for row in json.loads(run.stdout)["rows"]}


def finish(text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".goal") as file:
        file.write(text)
        file.flush()
        run = subprocess.run([pinwheel, "goal", "run", "--rendezvous", "--json", *options, file.name],
                             capture_output=True, text=True)
    if run.returncode != 0:
        return run.stderr
    return json.loads(run.stdout)["finish_ns"]


def one_message(size, computes):
    calc = "l0: calc 10000\n" if computes else ""
    wait = "l1 requires l0\n" if computes else ""
    return (f"num_ranks 2\nrank 0 {{\nl1: send {size}b to 1 tag 1\n}}\n"
            f"rank 1 {{\n{calc}l1: recv {size}b from 0 tag 1\n{wait}}}\n")


def ordered(rng):
    """Messages from 0 to 1, of one tag, short and long; recvs are posted in order, some before the
    one before is over, some behind computation."""
    sizes = [rng.choice((8, 4096, 5000, 30000)) for _ in range(12)]
    first, second = [], []
    for i, size in enumerate(sizes):
        first.append(f"s{i}: send {size}b to 1 tag 3")
        second.append(f"r{i}: recv {size}b from 0 tag 3")
        second.append(f"c{i}: calc {rng.choice((0, 0, 3000, 20000))}")
        if i > 0:
            second.append(f"r{i} {rng.choice(('requires', 'irequires'))} {rng.choice(('r', 'c'))}{i - 1}")
    return "num_ranks 2\nrank 0 {\n" + "\n".join(first) + "\n}\nrank 1 {\n" + "\n".join(second) + "\n}\n"


for nic in ("integrated", "discrete"):
    at_once, later = expected(nic, 0), expected(nic, 10000)
    for size in SIZES:
        for matching, way in (("host", "rdma"), ("nic", "spin")):
            options = ("--nic", nic, "--matching", matching)
            wanted = at_once["early", size][way] - (HANDLER if way == "spin" and size <= 4096 else 0)
            same(f"{nic} {matching} {size} early", round(1000 * wanted),
                 round(1000 * finish(one_message(size, False), *options)[1]))
            same(f"{nic} {matching} {size} late", round(1000 * later["late", size][way]),
                 round(1000 * finish(one_message(size, True), *options)[1]))
    # Where a program computes behind a recv that is posted, a NIC brings long data in meanwhile.
    text = ("num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 65536b to 1 tag 1\nl2 requires l1\n}\nrank 1 {\n"
            "l1: recv 65536b from 0 tag 1\nl2: calc 20000\nl2 irequires l1\nl3: calc 0\nl3 requires l1\nl3 requires l2\n}\n")
    times = {m: finish(text, "--nic", nic, "--matching", m)[1] for m in ("host", "nic")}
    same(f"{nic} meanwhile {times}", (True, 20000), (times["host"] > 21000, times["nic"]))
    for seed in range(40):
        text = ordered(random.Random(seed))
        for matching in ("host", "nic"):
            found = finish(text, "--nic", nic, "--matching", matching, "--eager", "4096")
            same(f"seed {seed} {matching}: {found}", list, type(found))
# Two that send long messages to each other before they receive wait for ever, as MPI says; short ones do not.
both = "num_ranks 2\n" + "".join(
    f"rank {r} {{\nl1: send SIZEb to {1 - r} tag 1\nl2: recv SIZEb from {1 - r} tag 1\nl2 requires l1\n}}\n" for r in (0, 1))
for matching in ("host", "nic"):
    for size, ends in (("4096", True), ("4097", False)):
        found = finish(both.replace("SIZE", size), "--nic", "discrete", "--matching", matching)
        same(f"both {matching} {size}: {found}", ends, isinstance(found, list))
run = subprocess.run([pinwheel, "goal", "run", "--rendezvous", "x.goal"], capture_output=True, text=True)
same(f"without --nic: {run.stderr}", (2, True), (run.returncode, "--nic is missing" in run.stderr))
sys.exit(wrong != 0)
