#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The fault-tolerant broadcast survives each single death: deaths.py PINWHEEL SCALE RANKS BYTES STRIDE FOLDER.

A first run, without a fault, has a timeline. Then each rank dies at each time at which something of
its own begins or ends there, just before that has happened, and just after; of all these deaths
every STRIDE-th is run, and of the last ones, in the barrier at the end, more. All other ranks must have all bytes, which they check. The root dies only when
its last packet has left: before that nobody else has all bytes."""
import collections
import concurrent.futures
import csv
import os
import subprocess
import sys

pinwheel, program, ranks, length, stride, folder = sys.argv[1:7]
ranks, stride = int(ranks), int(stride)


def run(*options):
    return subprocess.run([pinwheel, "sim", "--timeout", "100", "-n", str(ranks), "--quiet", *options, program, "survive",
                           length], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def heard(done):
    """The ranks that say that they have all bytes."""
    return {int(line.split()[0]) for line in done.stdout.splitlines() if line.count(" from ") == 1}


def deaths():
    """(time in ps, rank), from the timeline."""
    picture = os.path.join(folder, f"deaths.{os.getpid()}.svg")
    table = picture[:-3] + "csv"
    done = run("--timeline", picture)
    if done.returncode != 0 or heard(done) != set(range(ranks)):
        sys.exit(f"without a death: status {done.returncode}: {done.stdout}{done.stderr}")
    times, left = collections.defaultdict(set), 0
    with open(table, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            rank, begin, end = int(row["rank"]), int(row["from (ps)"]), int(row["to (ps)"])
            times[rank] |= {begin, end}
            if rank == 0 and row["what"] == "packet out":
                left = max(left, end)
    os.remove(picture)
    os.remove(table)
    found = {(t + after, rank) for rank, of in times.items() for t in of for after in (0, 1)
             if rank != 0 or t >= left}
    return sorted(found)


def die(death):
    time, rank = death
    done = run("--fault", f"rank {rank} dies at {time}ps")
    missing = set(range(ranks)) - {rank} - heard(done)
    if done.returncode != 0 or missing:
        return f"rank {rank} dies at {time} ps: status {done.returncode}, without all bytes: {missing}; {done.stderr}"
    return None


everything = deaths()
chosen = sorted(set(everything[::stride]) | set(everything[-60::8]))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    wrong = [said for said in pool.map(die, chosen) if said is not None]
print(f"{len(chosen)} of {len(everything)} deaths, {len({r for _, r in chosen})} ranks, {len(wrong)} not survived")
for said in wrong[:10]:
    print(said, file=sys.stderr)
sys.exit(bool(wrong) or {r for _, r in everything} != set(range(ranks)))
