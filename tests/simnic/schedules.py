#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Schedules take as long in `pinwheel goal run --nic` as the program that runs them does in
`pinwheel sim`, rank by rank, to the picosecond: schedules.py PINWHEEL PROGRAM FIRST SEEDS.

Each seed gives a random schedule of sends, recvs and calcs, of which some cannot finish; then both
say so; and one of Portals' operations (portals.py), all of which finish. Some have adaptive routes,
by which packets come in any order. Patterns of `pinwheel goal gen` follow, if FIRST is 0.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../sim/reference"))

import generate  # noqa: E402
import portals  # noqa: E402
import schedule  # noqa: E402

pinwheel, program = sys.argv[1:3]
first, seeds = int(sys.argv[3]), int(sys.argv[4])
PATTERNS = (("binomialtreebcast", 13, 8), ("binomialtreebcast", 8, 65536), ("dissemination", 9, 8),
            ("linear_alltoall", 6, 5000), ("allreduce_ring", 5, 20000), ("incast", 9, 4097))
MATCHING = ("free", "host", "nic")
NICS = ("discrete", "integrated", "zero", "pspin")
FAT_TREE = ("--network", "fattree:radix=4,levels=2")
NETWORKS = ((), (*FAT_TREE, "--routing", "adaptive"), FAT_TREE,
            ("--network", "torus:3x3", "--routing", "adaptive", "--buffer", "4096"),
            ("--network", "torus:9", "--routing", "adaptive", "--switching", "store-and-forward"),
            ("--network", "dragonfly:a=2,h=1,p=2", "--routing", "adaptive", "--seed", "5"))
wrong = stuck = 0


def by_model(file, nic, matching, network):
    """Finish times in ps by rank; None: it cannot finish."""
    run = subprocess.run([pinwheel, "goal", "run", "--nic", nic, "--matching", matching, "--json", *network, file],
                         capture_output=True, text=True)
    if run.returncode != 0:
        assert "never" in run.stderr or "wait" in run.stderr or "finish" in run.stderr, run.stderr
        return None
    return [round(1000 * ns) for ns in json.loads(run.stdout)["finish_ns"]]


def by_program(file, nic, matching, network, ranks):
    run = subprocess.run([pinwheel, "sim", "--quiet", "--timeout", "100", "-n", str(ranks), "--nic", nic, *network,
                          "--handler", portals.TIME,
                          program, file, matching], capture_output=True, text=True)
    ends = dict(map(int, found) for found in re.findall(r"rank (\d+) ends (\d+) ps", run.stdout))
    if run.returncode == 3:
        return None
    assert run.returncode == 0, (run.returncode, run.stderr)
    return [ends[rank] for rank in range(ranks)]


def compare(what, file, nic, ranks, matching="free", network=()):
    global wrong, stuck
    model, ours = by_model(file, nic, matching, network), by_program(file, nic, matching, network, ranks)
    stuck += model is None
    if model is None and ours is not None:
        ours = None  # a message that nobody takes keeps no program waiting
    if model != ours:
        print(f"{what}, {nic}, {' '.join(network)}: goal run {model}, sim {ours}", file=sys.stderr)
        wrong += 1


def compare_portals(seed, path):
    """A schedule of Portals' operations, which must finish."""
    global wrong
    text, size = portals.make(random.Random(seed))
    subprocess.run([pinwheel, "goal", "compile", "-", "-o", path], input=text, text=True, check=True)
    before = stuck
    network = NETWORKS[seed // 2 % len(NETWORKS)]
    if NICS[seed % len(NICS)] == "zero" and "adaptive" in network:
        network = ()  # some differ: docs/goal.md
    compare(f"Portals, seed {seed}", path, NICS[seed % len(NICS)], size, MATCHING[seed % len(MATCHING)], network)
    if stuck != before:
        print(f"Portals, seed {seed}: it must finish", file=sys.stderr)
        wrong += 1


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/schedule.bin"
    for seed in range(first, first + seeds):
        compare_portals(seed, path)
    for seed in range(first, first + seeds):
        rng = random.Random(seed)
        ranks = generate.random_schedule(rng, rng.choice(("ties", "plain", "mixed")))
        for operations in ranks:
            for op in operations:
                op.cpu = op.nic = 0
                if op.kind != schedule.CALC:
                    op.size = min(op.size, 100000)
        with open(path, "wb") as file:
            file.write(schedule.write_binary(ranks))
        network = NETWORKS[seed % len(NETWORKS)] if len(ranks) <= 8 else ()
        compare(f"seed {seed}", path, NICS[seed % len(NICS)], len(ranks), MATCHING[seed % len(MATCHING)], network)
    for make in (portals.broadcast, portals.triggered_broadcast) if first == 0 else ():
        for size, count in ((13, 8), (8, 20000), (16, 4096)):
            subprocess.run([pinwheel, "goal", "compile", "-", "-o", path], input=make(size, count), text=True, check=True)
            for nic in NICS[:3]:
                compare(make.__name__, path, nic, size)
    for number, (name, size, count) in enumerate(PATTERNS if first == 0 else ()):
        made = subprocess.run([pinwheel, "goal", "gen", name, "--ranks", str(size), "--size", str(count), "-o",
                               path], capture_output=True, text=True)
        if made.returncode != 0:
            print(made.stderr, file=sys.stderr)
            wrong += 1
            continue
        for nic in NICS[:3]:
            compare(name, path, nic, size)
        if size <= 9:
            compare(name, path, "discrete", size, network=NETWORKS[3])
if 2 * stuck > seeds:
    print(f"{stuck} of {seeds} schedules cannot finish: too many", file=sys.stderr)
    wrong += 1
sys.exit(wrong != 0)
