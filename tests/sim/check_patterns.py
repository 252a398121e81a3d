# SPDX-License-Identifier: BSD-3-Clause
"""Holds generated collectives against what they promise.

    check_patterns.py PINWHEEL [--most N]

For many numbers of ranks, roots, sizes and radices each schedule is replayed
(pattern_replay.py) against the definition of its algorithm (pattern_plans.py): every message
carries what its sender must have by then, every share is reduced once, everybody ends with
what the collective promises, and every byte is accounted for. Then it is simulated, and where
LogGP has a closed form the time must be that.
"""

import argparse
import json
import os
import subprocess
import tempfile

import pattern_plans as plans
from pattern_replay import Replay, calc_time, fail
from reference.schedule import RECV, SEND, read

L, O, G_MSG, G = 1000, 100, 50, 2  # ns, ns per byte
PARAMETERS = ["-L", L, "-o", O, "-g", G_MSG, "-G", G, "-S", 10**9]


class Tool:
    """Runs the generator and the simulator in a folder."""

    def __init__(self, pinwheel, folder):
        self.pinwheel, self.path, self.count = pinwheel, os.path.join(folder, "p.bin"), 0

    def call(self, *arguments):
        return subprocess.run([self.pinwheel, "goal", *map(str, arguments)], capture_output=True,
                              text=True, timeout=60, check=False)

    def make(self, pattern, **options):
        words = [w for k, v in options.items() if v is not None
                 for w in (["--" + k.replace("_", "-")] + ([] if v is True else [v]))]
        done = self.call("gen", pattern, "-o", self.path, *words)
        name = " ".join(map(str, [pattern, *words]))
        if done.returncode != 0:
            fail(f"{name}: {done.stderr}")
        self.count += 1
        return Replay(name, read(self.path))

    def finish(self, *parameters):
        """Finish times of the schedule made last."""
        done = self.call("run", "--json", *(parameters or PARAMETERS), self.path)
        if done.returncode != 0:
            fail(f"run: {done.stderr}")
        return json.loads(done.stdout)["finish_ns"]


def want(what, found, expected, name):
    if found != expected:
        fail(f"{name}: {what} is {found}, not {expected}")


def message(size):
    """o + L + (s - 1) G + o"""
    return 2 * O + L + (max(size, 1) - 1) * G


def counts(most):
    return [*range(1, min(most, 40) + 1), *(n for n in (64, 100, 128) if n <= most)]


def log(n, radix=2):
    """The number of digits of n - 1, that is how many rounds there are."""
    rounds = 0
    while radix ** rounds < n:
        rounds += 1
    return rounds


# ---- Rooted collectives ----

BCASTS = ([("binomialtreebcast", {}), ("bcast_binary", {}), ("bcast_linear", {}),
           ("bcast_binary", {"segment": 300}), ("pipelinedring", {"segment": 300}),
           ("bcast_ring", {"segment": 300}), ("bcast_scatter_allgather", {})] +
          [("bcast_knomial", {"radix": k}) for k in (2, 3, 4, 7)] +
          [("bcast_chains", {"radix": k, "segment": 400}) for k in (1, 3)])
REDUCTIONS = ([("binomialtreereduce", {}), ("reduce_binary", {}), ("reduce_linear", {}),
               ("reduce_chains", {"segment": 300, "radix": 2})] +
              [("reduce_knomial", {"radix": k}) for k in (2, 3, 5)])


def check_rooted(tool, most):
    for n in counts(most):
        for root in sorted({0, n // 2, n - 1}):
            for pattern, options in BCASTS:
                check_bcast(tool, pattern, n, root, options)
            for pattern, options in REDUCTIONS:
                check_reduction(tool, pattern, n, root, options)
            check_gather_scatter(tool, n, root)


def check_bcast(tool, pattern, n, root, options):
    r = tool.make(pattern, ranks=n, root=root, size=1000, **options)
    for rank, known in enumerate(r.reached()):
        if root not in known:
            fail(f"{r.name}: rank {rank} is not reached")
        if pattern != "bcast_scatter_allgather":  # whose ring brings the root what it has
            want(f"bytes received by {rank}", sum(r.sizes(rank, RECV)),
                 0 if rank == root else 1000, r.name)
    tool.finish()
    if pattern == "bcast_scatter_allgather":
        sizes = plans.deal(1000, n)
        r.move(lambda rank: range(n) if rank == root else (),
               plans.bcast_scatter_allgather(n, root), lambda chunk: sizes[chunk],
               lambda rank: range(n))


def check_reduction(tool, pattern, n, root, options):
    for rate in (None, "0.25"):
        r = tool.make(pattern, ranks=n, root=root, size=1000, reduce_rate=rate, **options)
        want("what the root has", r.reached()[root], set(range(n)), r.name)
        for rank in range(n):
            want("bytes sent", sum(r.sizes(rank)), 0 if rank == root else 1000, r.name)
        want("computation", calc_time(r.ranks),
             [sum(r.sizes(rank, RECV)) // 4 if rate else 0 for rank in range(n)], r.name)
        tool.finish()


def check_gather_scatter(tool, n, root):
    everybody = set(range(n))
    for tree, radix in (("binomial", None), ("binary", None), ("linear", None), ("knomial", 3),
                        ("knomial", 4)):
        r = tool.make(f"gather_{tree}", ranks=n, root=root, size=10, radix=radix)
        r.move(lambda rank: {rank}, lambda rank, k, has, to: has, lambda block: 10,
               lambda rank, root=root: everybody if rank == root else {rank})
        tool.finish()
        r = tool.make(f"scatter_{tree}", ranks=n, root=root, size=10, radix=radix)
        receive = {s: d for d, s in r.partner.items()}
        below, sends = r.downstream(), [r.sends(rank) for rank in range(n)]
        r.move(lambda rank, root=root: everybody if rank == root else {},
               lambda rank, k, has, to: below[receive[rank, sends[rank][k]]],
               lambda block: 10, lambda rank: {rank})
        for rank in range(n):
            want("receives", len(r.sizes(rank, RECV)), int(rank != root), r.name)
        tool.finish()


# ---- Collectives of all ----

def check_reductions(tool, most):
    for n in counts(most):
        for size in (n * 64, 1000, 7):
            for plan_of in plans.ALLREDUCES:
                plan, sizes = plan_of(n, size)
                for rate in (None, "0.5"):
                    r = tool.make(plan_of.__name__, ranks=n, size=size, reduce_rate=rate)
                    r.reduce(plan, sizes, lambda rank, sizes=sizes: range(len(sizes)))
                    tool.finish()
                check_allreduce_bytes(r, plan_of.__name__, n, size)
            plan, sizes = plans.reduce_scatter_ring(n, size)
            r = tool.make("reduce_scatter_ring", ranks=n, size=size)
            r.reduce(plan, sizes, lambda rank: [rank])
            tool.finish()
    for extent in ([2, 2], [4, 4], [2, 8], [8, 2], [1, 8], [2, 4, 2], [4, 4, 4], [2, 2, 2, 2]):
        n = 1
        for e in extent:
            n *= e
        for size in (n * 8, 1000, 37):
            for plan_of in (plans.allreduce_swing_latency, plans.allreduce_swing_bandwidth):
                plan, sizes = plan_of(n, size, extent)
                r = tool.make(plan_of.__name__, ranks=n, size=size,
                              extent="x".join(map(str, extent)))
                r.reduce(plan, sizes, lambda rank, sizes=sizes: range(len(sizes)))
                check_allreduce_bytes(r, plan_of.__name__, n, size)


def check_allreduce_bytes(r, pattern, n, size):
    power = n & (n - 1) == 0
    for rank in range(n):
        sent = sum(r.sizes(rank))
        if pattern in ("allreduce_recdoub", "allreduce_swing_latency") and power:
            want("bytes sent", sent, log(n) * size, r.name)
        elif size % n == 0 and (power or pattern == "allreduce_ring"):
            want("bytes sent", sent, 2 * (n - 1) * size // n, r.name)


def check_gathers_and_exchanges(tool, most):
    for n in counts(most):
        everybody = set(range(n))
        for pattern in (plans.allgather_ring, plans.allgather_recdoub, plans.allgather_bruck):
            r = tool.make(pattern.__name__, ranks=n, size=10)
            r.move(lambda rank: {rank}, pattern(n), lambda block: 10, lambda rank: everybody)
            for rank in range(n):
                if pattern is not plans.allgather_recdoub or n & (n - 1) == 0:
                    want("bytes sent", sum(r.sizes(rank)), (n - 1) * 10, r.name)
            tool.finish()
        check_alltoall(tool, n)
        for radix in (None, 2, 3, 5, 64):
            r = tool.make("barrier_dissemination", ranks=n, radix=radix)
            want("whom each waits for", r.reached(), [everybody] * n, r.name)
            want("messages", len(r.sends(0)), len(plans.bruck_phases(n, radix or 2)), r.name)
            tool.finish()


def check_alltoall(tool, n):
    def begin(rank):
        return {(rank, t) for t in range(n)}

    def end(rank):
        return {(s, rank) for s in range(n)}

    for pattern, order in (("linear_alltoall", None), ("linear_alltoall", "shuffled"),
                           ("alltoall_pairwise", None)):
        r = tool.make(pattern, ranks=n, size=10, order=order)
        r.move(begin, lambda rank, k, has, to: {(rank, to)}, lambda block: 10, end)
        want("messages", {len(r.sends(rank)) for rank in range(n)}, {n - 1}, r.name)
        tool.finish()
    for radix in (None, 3, 4, 64):
        r = tool.make("alltoall_bruck", ranks=n, size=10, radix=radix)
        r.move(begin, plans.alltoall_bruck(n, radix or 2), lambda block: 10, end)
        if radix is None:
            want("rounds", len(r.sends(0)), log(n), r.name)
            if n & (n - 1) == 0:
                want("bytes sent", sum(r.sizes(0)), n // 2 * log(n) * 10, r.name)
        tool.finish()


# ---- Traffic ----

def check_traffic(tool):
    for extent in ([5], [3, 4], [2, 3, 4], [2, 3, 2, 2], [1, 4], [3, 3, 3, 3]):
        for is_open in (None, True):
            check_stencil(tool, extent, is_open)
    for n in (1, 2, 9, 30):
        for root in {0, n - 1}:
            r = tool.make("outcast", ranks=n, root=root, iterations=2, size=10)
            want("targets", sorted(op.peer for op in r.ranks[root]),
                 sorted(2 * [x for x in range(n) if x != root]), r.name)
            tool.finish()
            r = tool.make("incast", ranks=n, root=root, iterations=2, size=10)
            want("sources", sorted(op.peer for op in r.ranks[root] if op.kind == RECV),
                 sorted(2 * [x for x in range(n) if x != root]), r.name)
        for seed in (1, 2):
            r = tool.make("random_permutation", ranks=n, seed=seed, iterations=3)
            for i in range(3):
                targets = [op.peer for rank in r.ranks for op in rank
                           if op.kind == SEND and op.tag == i]
                senders = [rank for rank in range(n) for op in r.ranks[rank]
                           if op.kind == SEND and op.tag == i]
                want("targets", sorted(targets), sorted(senders), r.name)


def check_stencil(tool, extent, is_open):
    n, iterations = 1, 2
    for e in extent:
        n *= e
    pattern = "exchange_1d" if len(extent) == 1 else f"stencil_{len(extent)}d"
    words = None if len(extent) == 1 else "x".join(map(str, extent))
    r = tool.make(pattern, ranks=n, extent=words, open=is_open, iterations=iterations, calc=5)
    for rank in range(n):
        peers, stride = [], 1
        for e in extent:
            at = rank // stride % e
            for step in (1, -1):
                inside = 0 <= at + step < e
                if e > 1 and (inside or not is_open):
                    peers.append(rank + ((at + step) % e - at) * stride)
            stride *= e
        found = [op.peer for op in r.ranks[rank] if op.kind == SEND]
        want(f"neighbours of {rank}", sorted(found), sorted(iterations * peers), r.name)
    want("computation", calc_time(r.ranks), [5 * iterations] * n, r.name)
    tool.finish()


# ---- Times ----

def check_times(tool):
    """One message size, eager, o > g: LogGP's closed forms."""
    s = 400
    step, gap = message(s), max(O, G_MSG + (s - 1) * G)

    def time(expected, pattern, **options):
        r = tool.make(pattern, **options)
        want("the last finish", max(tool.finish()), expected, r.name)

    for n in (2, 4, 16, 32):
        time(log(n) * step, "binomialtreebcast", ranks=n, size=s)
        time(log(n) * step, "bcast_knomial", ranks=n, size=s, radix=2)
        time(log(n) * step, "binomialtreereduce", ranks=n, size=s)
        time(log(n) * (step + 100), "binomialtreereduce", ranks=n, size=s, reduce_rate="0.25")
        time(log(n) * step, "allreduce_recdoub", ranks=n, size=s)
        time(log(n) * (step + 200), "allreduce_recdoub", ranks=n, size=s, reduce_rate="0.5")
        time(log(n) * step, "allreduce_swing_latency", ranks=n, size=s)
        time(log(n) * step, "barrier_dissemination", ranks=n, size=s)
        time((n - 1) * step, "allgather_ring", ranks=n, size=s)
        time((n - 1) * step, "alltoall_pairwise", ranks=n, size=s)
        time(2 * (n - 1) * message(s), "allreduce_ring", ranks=n, size=s * n)
        time((n - 1) * (2 * message(s) + s // 4), "allreduce_ring", ranks=n, size=s * n,
             reduce_rate="0.25")
        time((n - 1) * message(s), "reduce_scatter_ring", ranks=n, size=s * n)
        halves = [message(s * n >> k) for k in range(1, log(n) + 1)]
        time(2 * sum(halves), "allreduce_rabenseifner", ranks=n, size=s * n)
        time(2 * sum(halves), "allreduce_swing_bandwidth", ranks=n, size=s * n)
        time(sum(message(s << k) for k in range(log(n))), "allgather_recdoub", ranks=n, size=s)
        time(sum(message(s << k) for k in range(log(n))), "allgather_bruck", ranks=n, size=s)
        time(log(n) * message(s * n // 2), "alltoall_bruck", ranks=n, size=s)
        time(sum(message(s << k) for k in range(log(n))), "scatter_binomial", ranks=n, size=s)
        time((n - 2) * gap + step, "scatter_linear", ranks=n, size=s)
        time((n - 2) * gap + step, "gather_linear", ranks=n, size=s)
        time((n - 2) * gap + step, "bcast_linear", ranks=n, size=s)
        pieces = 10
        time((n - 1) * step + (pieces - 1) * max(gap, (2 if n > 2 else 1) * O), "pipelinedring",
             ranks=n, size=pieces * s, segment=s)
        time((n - 1) * step + (pieces - 1) * max(gap, (2 if n > 2 else 1) * O), "bcast_chains",
             ranks=n, size=pieces * s, segment=s)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pinwheel")
    parser.add_argument("--most", type=int, default=40, help="ranks")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(arguments.pinwheel, folder)
        check_times(tool)
        check_traffic(tool)
        check_rooted(tool, arguments.most)
        check_reductions(tool, arguments.most)
        check_gathers_and_exchanges(tool, arguments.most)
    print(f"{tool.count} schedules are right")


if __name__ == "__main__":
    main()
