#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Records a real MPI program and holds the recording against what the program says
it did:

  - messages, bytes and collectives are as many as it printed after "expected";
  - wildcards and MPI_Waitany are resolved in the order it printed ("wild", "any");
  - the schedule ends in both models, whatever the algorithms of the collectives, and
    when it is extrapolated;
  - with --zero: on a network that costs nothing, every rank finishes when an
    independent replay of the recording, written here, says so.

Usage: check_recording.py PINWHEEL RANKS [--zero] [--abort] [--arguments="A B"] PROGRAM LAUNCHER...
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ALGORITHMS = ["", "linear", "ring", "allreduce=tree,scan=chain,exscan=chain,alltoall=bruck",
              "allgather=ring,allgatherv=linear,reduce=linear,gather=linear,bcast=ring",
              "k-nomial,swing-bandwidth,alltoall=bruck", "binary,swing-latency",
              "pipelined-binary,rabenseifner,allgather=recursive-doubling"]
FREE = ["-L", "0", "-o", "0", "-g", "0", "-G", "0", "-O", "0", "-S", "1000000000"]


def fail(text):
    sys.exit("FAILED: " + text)


def run(command, want=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, **options)
    if want is not None and done.returncode != want:
        fail("%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done


def check_expected(said, found):
    lines = [line.split()[1:] for line in said.splitlines() if line.startswith("expected")]
    if len(lines) != 1:
        fail("the program said nothing that is expected:\n" + said)
    want = {name: int(n) for name, n in zip(lines[0][::2], lines[0][1::2])}
    got = {name.lower(): n for name, n in found["collectives"].items()}
    got["messages"], got["bytes"] = found["messages"], found["bytes"]
    for name in sorted(set(want) | set(got)):
        if want.get(name, 0) != got.get(name, 0):
            fail("%s: the program says %d, the recording %d" %
                 (name, want.get(name, 0), got.get(name, 0)))


# ---- The order of wildcards ----

def rank_of_text(text, rank):
    """The operations and the dependencies of a rank of GOAL text."""
    body = re.search(r"^rank %d \{\n(.*?)^\}" % rank, text, re.S | re.M).group(1)
    ops, requires = {}, {}
    for line in body.splitlines():
        words = line.split()
        if words and words[0].endswith(":"):
            ops[words[0][:-1]] = words[1:]
        elif len(words) == 3:
            requires.setdefault(words[0], []).append((words[1], words[2]))
    return ops, requires


def messages(ops, kind):
    """(label, peer, tag, bytes) in the order of the schedule."""
    for label, w in ops.items():
        if w[0] == kind:
            tag = int(w[w.index("tag") + 1]) if "tag" in w else 0
            yield label, int(w[3]), tag, int(w[1][:-1])


def direct(requires, label, ops):
    """What an operation waits for, seen through calcs."""
    for how, on in requires.get(label, []):
        if ops[on][0] == "calc" and how == "requires":
            yield from direct(requires, on, ops)
            yield on
        elif how == "requires":
            yield on


def check_order(said, text):
    wild = [tuple(map(int, w.split()[1:])) for w in said.splitlines() if w.startswith("wild")]
    anys = [tuple(map(int, w.split()[1:])) for w in said.splitlines() if w.startswith("any")]
    ops, requires = rank_of_text(text, 0)
    if not wild and not anys:
        return
    found = [m[1:] for m in messages(ops, "recv")][:len(wild)]
    if found != wild:
        fail("wildcards: the program received %s, the schedule has %s" % (wild, found))
    answers = {tag - 100: label for label, _, tag, _ in messages(ops, "send") if tag >= 100}
    sources = {label: peer for label, peer, tag, _ in messages(ops, "recv") if tag == 20}
    for k, source in anys:
        before = {sources[on] for on in direct(requires, answers[k], ops) if on in sources}
        if source not in before:
            fail("answer %d waits for messages of %s, not of %d" % (k, before, source))
    if len(anys) != len(sources):
        fail("%d messages of MPI_Waitany, %d in the schedule" % (len(anys), len(sources)))


# ---- A network without cost ----

class Replay:
    """When each rank finishes if messages take no time: only programs of the calls below."""

    WAITS = {"Wait", "Waitall", "Waitany", "Waitsome"}
    ALL = {"Barrier", "Allreduce", "Alltoall", "Allgather"}

    def __init__(self, folder, ranks):
        self.ranks = ranks
        self.lines = []
        for rank in range(ranks):
            with open(os.path.join(folder, "rank-%d.trace" % rank)) as file:
                self.lines.append([line.split() for line in file][1:])
        self.at = [0] * ranks
        self.clock = [None] * ranks   # replayed time of the end of the last call
        self.ended = [0] * ranks      # recorded
        self.comms = [{0: list(range(ranks)), 1: [r]} for r in range(ranks)]
        self.sent, self.posted = {}, {}
        self.requests = [{} for _ in range(ranks)]
        self.steps = [{} for _ in range(ranks)]
        self.arrived = {}

    def send(self, rank, peer, tag, comm, when):
        if peer != -2:
            to = self.comms[rank][comm][peer]
            self.sent.setdefault((rank, to, comm, tag), []).append(when)

    def post(self, rank, peer, tag, comm):
        if peer == -2:
            return None
        key = (self.comms[rank][comm][peer], rank, comm, tag)
        self.posted[key] = self.posted.get(key, 0) + 1
        return key, self.posted[key] - 1

    def came(self, slot):
        """When, or None: not yet."""
        if slot is None:
            return 0
        key, index = slot
        times = self.sent.get(key, [])
        return times[index] if index < len(times) else None

    def collective(self, rank, name, n, when):
        members = self.comms[rank][n[0]]
        step = self.steps[rank].get(n[0], 0)
        here = self.arrived.setdefault((tuple(members), n[0], step), {})
        here[rank] = max(here.get(rank, 0), when)
        if name == "Reduce":
            root, own = n[1], members.index(rank)

            def swap(i):
                return root if i == 0 else 0 if i == root else i
            tree, todo = [], [swap(own)]
            while todo:
                node = todo.pop()
                tree.append(members[swap(node)])
                half = 1
                while half < len(members):
                    if half > node and node + half < len(members):
                        todo.append(node + half)
                    half *= 2
            needed = tree
        else:
            needed = members
        if any(m not in here for m in needed):
            return None
        self.steps[rank][n[0]] = step + 1
        return max(here[m] for m in needed)

    def step(self, rank):
        """Does the next call of a rank; False if it must wait for others."""
        words = self.lines[rank][self.at[rank]]
        name, start, took, n = words[0], int(words[1]), int(words[2]), list(map(int, words[3:]))
        if name == "Init":
            self.clock[rank] = 0
        elif name == "Comm":
            self.comms[rank][n[0]] = n[1:]
            self.ended[rank] += took  # not the program's time
            self.at[rank] += 1
            return True
        else:
            now = self.clock[rank] + start - self.ended[rank]
            end = self.call(rank, name, n, now)
            if end is None:
                return False
            self.clock[rank] = end
        self.ended[rank] = start + took
        self.at[rank] += 1
        return True

    def call(self, rank, name, n, now):
        if name in ("Send", "Isend"):
            request = [n.pop(0)] if name == "Isend" else []
            self.send(rank, n[0], n[1], n[3], now)
            for r in request:
                self.requests[rank][r] = None
        elif name == "Irecv":
            self.requests[rank][n[0]] = self.post(rank, n[1], n[2], n[4])
        elif name in self.WAITS:
            times = [self.came(self.requests[rank][r]) for r in n[::4]]
            return None if None in times else max([now] + times)
        elif name in ("Recv", "Sendrecv"):
            key = ("slot", rank)
            if key not in self.requests[rank]:
                if name == "Sendrecv":
                    self.send(rank, n[0], n[1], n[6], now)
                    n = n[3:]
                self.requests[rank][key] = self.post(rank, n[0], n[1], n[3])
            when = self.came(self.requests[rank][key])
            if when is not None:
                del self.requests[rank][key]
                return max(now, when)
            return None
        elif name in self.ALL or name == "Reduce":
            return self.collective(rank, name, n, now)
        elif name != "Finalize":
            fail("the replay does not know %s" % name)
        return now

    def finishes(self):
        moved = True
        while moved:
            moved = False
            for rank in range(self.ranks):
                while self.at[rank] < len(self.lines[rank]) and self.step(rank):
                    moved = True
        if any(self.at[r] < len(self.lines[r]) for r in range(self.ranks)):
            fail("the replay is stuck")
        return self.clock


def check_free(pinwheel, folder, ranks, schedule):
    want = Replay(folder, ranks).finishes()
    out = run([pinwheel, "goal", "run", "--json", "--ranks"] + FREE + [schedule]).stdout
    got = json.loads(out)["finish_ns"]
    if got != want:
        fail("without cost of the network ranks finish at %s, not %s" % (got, want))


# ---- All of it ----

def check_models(pinwheel, schedule):
    for model in "pinwheel", "loggopsim":
        run([pinwheel, "goal", "run", "--model", model, schedule])
    run([pinwheel, "goal", "show", "--stats", schedule])


def check_abort(pinwheel, folder, work):
    """A run that aborted: refused as it is, and taken as far as it went."""
    bin = os.path.join(work, "partial.bin")
    done = run([pinwheel, "goal", "trace", folder, "-o", bin], 1)
    if "ends before MPI_Finalize" not in done.stderr or os.path.exists(bin):
        fail("a recording that ends early: " + done.stderr)
    run([pinwheel, "goal", "trace", "--partial", folder, "-o", bin])
    check_models(pinwheel, bin)


def main():
    args = sys.argv[1:]
    flags = {a for a in args if a in ("--zero", "--abort")}
    given = [a for a in args if a.startswith("--arguments=")]
    arguments = given[0].split("=")[1].split() if given else []
    arguments += ["abort"] if "--abort" in flags else []
    rest = [a for a in args if a not in flags and a not in given]
    pinwheel, ranks, program, *launcher = rest
    with tempfile.TemporaryDirectory() as work:
        folder, bin = os.path.join(work, "recording"), os.path.join(work, "x.bin")
        command = launcher + ["-n", ranks, program] + arguments
        done = run([pinwheel, "goal", "record", "-o", folder] + command,
                   None if "--abort" in flags else 0)
        if "--abort" in flags:
            if done.returncode == 0:
                fail("the program did not abort")
            check_abort(pinwheel, folder, work)
            return
        for algorithm in ALGORITHMS:
            option = ["--collectives", algorithm] if algorithm else []
            out = run([pinwheel, "goal", "trace", "--json", "-o", bin, folder] + option).stdout
            check_expected(done.stdout, json.loads(out))
            check_models(pinwheel, bin)
        run([pinwheel, "goal", "trace", "-o", bin, "--ranks", str(3 * int(ranks)), folder])
        check_models(pinwheel, bin)
        run([pinwheel, "goal", "trace", "-o", bin, "--no-gaps", folder])
        check_models(pinwheel, bin)
        text = run([pinwheel, "goal", "trace", "--text", folder]).stdout
        check_order(done.stdout, text)
        run([pinwheel, "goal", "trace", "-o", bin, folder])
        if "--zero" in flags:
            check_free(pinwheel, folder, int(ranks), bin)


main()
