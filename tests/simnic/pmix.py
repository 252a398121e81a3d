#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of PMIx that die, and its server: pmix.py PINWHEEL PROGRAM RUNS [RANKS [FIRST-SEED]].

All runs end, by themselves, with the status and the line of what was done to them, and leave nothing:
no process, no file."""
import os
import random
import re
import signal
import subprocess
import sys

pinwheel, program, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
RANKS = int(sys.argv[4]) if len(sys.argv) > 4 else 8
first = int(sys.argv[5]) if len(sys.argv) > 5 else 1
ROUNDS = 1000000  # more than it gets to
wrong = 0


def say(what):
    global wrong
    wrong += 1
    print(what, file=sys.stderr, flush=True)


def those_of(mark):
    """The processes that have a mark in their environment: the server, and ranks by number."""
    server, ranks, others = [], {}, []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
            if mark not in words:
                continue
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    continue
            rank = [w[9:] for w in words if w.startswith("PMI_RANK=")]
            if rank:
                ranks[int(rank[0])] = int(pid)
            else:
                with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
                    (server if "libpmix.so" in f.read() else others).append(int(pid))
        except OSError:
            pass
    return server, ranks, others


def files():
    return sorted(n for n in os.listdir("/tmp") if re.match(r"pmix|pinwheel-sim", n))


def start(mark, *arguments):
    name, value = mark.split("=")
    return subprocess.Popen([pinwheel, "sim", "--timeout", "100", "--quiet", "-n", str(RANKS), program, *arguments],
                            env=dict(os.environ, **{name: value}), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def check(what, job, mark, statuses, pattern):
    _, said = job.communicate()
    if job.returncode not in statuses or not re.search(pattern, said):
        say(f"{what}: status {job.returncode}, wanted {statuses}, \"{pattern}\"; it said\n{said[-600:]}")
    # the processes of a command that was killed end by themselves
    for _ in range(1000):
        server, ranks, others = those_of(mark)
        if not server and not ranks and not others:
            return
        signal.sigtimedwait([], 0.02)
    say(f"{what}: left are {those_of(mark)}")
    for pid in server + list(ranks.values()) + others:
        os.kill(pid, signal.SIGKILL)


def well():
    times = []
    for _ in range(2):
        done = subprocess.run([pinwheel, "sim", "--json", "-n", str(RANKS), program, "6"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode != 0 or lines[:6] != list("012345"):
            say(f"6 rounds: status {done.returncode}: {done.stdout} {done.stderr}")
        times.append(done.stdout)
    if times[0] != times[1]:
        say(f"6 rounds, twice: {times}")


def from_inside(seed, mark):
    """A rank ends in a round. Who has failed for it may be seen before one that exits."""
    dice = random.Random(seed)
    victim, how = dice.randrange(RANKS), ("killed", "exits", "aborts", "returns")[seed // 2 % 4]
    statuses, pattern = {"killed": ([137], f"rank {victim} was ended by signal 9"),
                         "exits": ([5, 8], "exited with status"),
                         "aborts": ([7], f"rank {victim} aborted the job with code 7"),
                         "returns": ([1, 8], "ended without MPI_Finalize|exited with status 8")}[how]
    job = start(mark, str(ROUNDS), str(victim), str(dice.randrange(20)), how)
    check(f"seed {seed}, rank {victim} {how}", job, mark, statuses, pattern)


def from_outside(seed, mark):
    """A rank, the server or the command is killed, some time after a round."""
    dice = random.Random(seed)
    who = ("a rank", "a rank", "the server", "the command")[seed // 2 % 4]
    job = start(mark, str(ROUNDS))
    for _ in range(dice.randrange(1, 30)):
        job.stdout.readline()
    server, ranks, _ = those_of(mark)
    if len(server) != 1 or len(ranks) != RANKS:
        say(f"seed {seed}: {len(server)} servers, {len(ranks)} ranks")
    victim = dice.choice(sorted(ranks))
    pid = {"a rank": ranks[victim], "the server": server[0], "the command": job.pid}[who]
    statuses, pattern = {"a rank": ([137], f"rank {victim} was ended by signal 9"),
                         "the server": ([1, 8], "PMIx server .* has ended|exited with status 8"),
                         "the command": ([-9], "")}[who]
    signal.sigtimedwait([], dice.random() / 100)
    os.kill(pid, signal.SIGKILL)
    check(f"seed {seed}, {who} is killed", job, mark, statuses, pattern)


before = files()
well()
for s in range(first, first + runs):
    (from_inside, from_outside)[s % 2](s, f"PINWHEEL_TEST_MARK={os.getpid()}.{s}")
if files() != before:
    say(f"files: {files()}, before: {before}")
sys.exit(wrong != 0)
