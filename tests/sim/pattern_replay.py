# SPDX-License-Identifier: BSD-3-Clause
"""Replays schedules without a clock: what data a message can carry, by what its send waits for.

A send knows what its rank began with and what came in the receives that must have ended
before it, directly or through other operations of the rank; nothing else, whatever the times
are. A plan says which blocks each send of a rank carries, in the order of definition.
"""

import sys

from reference.schedule import CALC, RECV, SEND


def fail(text):
    sys.exit(f"check_patterns: {text}")


class Replay:
    """A schedule whose operations were all carried out, in `order`: (rank, operation)."""

    def __init__(self, name, ranks):
        self.name, self.ranks = name, ranks
        self.order = []
        self.partner = {}  # of a receive: the send
        self.before = [[0] * len(rank) for rank in ranks]  # bit i: operation i has ended
        self.waits_for = [[[] for _ in rank] for rank in ranks]  # directly, at the rank itself
        self._run()

    def _match(self):
        """Messages of one source, target and tag meet their receives in order."""
        sent, posted = {}, {}
        for r, rank in enumerate(self.ranks):
            for i, op in enumerate(rank):
                if op.kind == SEND:
                    sent.setdefault((r, op.peer, op.tag), []).append((r, i))
                elif op.kind == RECV:
                    posted.setdefault((op.peer, r, op.tag), []).append((r, i))
        if {k: len(v) for k, v in sent.items()} != {k: len(v) for k, v in posted.items()}:
            fail(f"{self.name}: sends without receives, or receives without sends")
        for key, sends in sent.items():
            for (s, i), (d, j) in zip(sends, posted[key]):
                if self.ranks[s][i].size != self.ranks[d][j].size:
                    fail(f"{self.name}: rank {s} sends {self.ranks[s][i].size} bytes to {d}, which"
                         f" expects {self.ranks[d][j].size}")
                self.partner[d, j] = (s, i)

    def _run(self):
        self._match()
        receive = {send: recv for recv, send in self.partner.items()}
        waits = [[op.waits + (op.kind == RECV) for op in rank] for rank in self.ranks]
        ready = [(r, i) for r, rank in enumerate(waits) for i, n in enumerate(rank) if n == 0]
        while ready:
            r, i = ready.pop()
            self.order.append((r, i))
            op = self.ranks[r][i]
            if op.after_start:
                fail(f"{self.name}: irequires is not replayed")
            follows = [(r, j) for j in op.after_end]
            for _, j in follows:
                self.before[r][j] |= self.before[r][i] | 1 << i
                self.waits_for[r][j].append(i)
            for s, j in follows + ([receive[r, i]] if op.kind == SEND else []):
                waits[s][j] -= 1
                if waits[s][j] == 0:
                    ready.append((s, j))
        if len(self.order) != sum(map(len, self.ranks)):
            fail(f"{self.name}: does not end")

    def sends(self, rank):
        return [i for i, op in enumerate(self.ranks[rank]) if op.kind == SEND]

    def sizes(self, rank, kind=SEND):
        return [op.size for op in self.ranks[rank] if op.kind == kind]

    def received_before(self, rank, i):
        """The receives that have ended before operation i."""
        done = self.before[rank][i]
        return [j for j, op in enumerate(self.ranks[rank][:done.bit_length()])
                if op.kind == RECV and done >> j & 1]

    def reached(self):
        """For each rank the set of ranks on which its end depends."""
        known, final = {}, [1 << r for r in range(len(self.ranks))]
        for r, i in self.order:
            mine = 1 << r
            for j in self.waits_for[r][i]:
                mine |= known[r, j]
            if self.ranks[r][i].kind == RECV:
                mine |= known[self.partner[r, i]]
            known[r, i] = mine
            final[r] |= mine
        return [{x for x in range(len(self.ranks)) if mask >> x & 1} for mask in final]

    def downstream(self):
        """For each receive the set of ranks that depend on it, in a tree: its own and below."""
        below = {}
        for r, i in reversed(self.order):
            if self.ranks[r][i].kind != RECV:
                continue
            below[r, i] = {r}
        for d, j in reversed([key for key in self.order if key in below]):
            s, i = self.partner[d, j]
            for k in self.received_before(s, i):
                below[s, k] |= below[d, j]
        return below

    # ---- Blocks that move ----

    def move(self, begin, carried, size_of, end):
        """Blocks are handed on: `begin` and `end` say what a rank has, `carried`(rank, number of
        its send, what it has, target) which blocks go, `size_of`(block) how large they are."""
        content, has = {}, [set(begin(r)) for r in range(len(self.ranks))]
        number = [{i: k for k, i in enumerate(self.sends(r))} for r in range(len(self.ranks))]
        for r, i in self.order:
            op = self.ranks[r][i]
            if op.kind == SEND:
                mine = set(begin(r)).union(*(content[r, j] for j in self.received_before(r, i)))
                blocks = set(carried(r, number[r][i], mine, op.peer))
                if not blocks <= mine:
                    fail(f"{self.name}: rank {r} sends to {op.peer} what may not have come yet")
                if sum(map(size_of, blocks)) != op.size:
                    fail(f"{self.name}: rank {r} sends {op.size} bytes to {op.peer} and not"
                         f" {sum(map(size_of, blocks))}, of {sorted(blocks)}")
                content[r, i] = blocks
            elif op.kind == RECV:
                content[r, i] = content[self.partner[r, i]]
                has[r] |= content[r, i]
        for r, blocks in enumerate(has):
            if not set(end(r)) <= blocks:
                fail(f"{self.name}: rank {r} lacks {sorted(set(end(r)) - blocks)}")

    # ---- Chunks that are reduced ----

    def reduce(self, plan, sizes, end):
        """Every rank begins with a share of every chunk; `plan`[rank] has for each send its
        target, chunks, and whether they are added to the target's ("add") or are complete
        ("copy"). No share may be added twice. `end`(rank): chunks that are complete there."""
        everything = (1 << len(self.ranks)) - 1
        content, added = {}, [{} for _ in self.ranks]
        number = [{i: k for k, i in enumerate(self.sends(r))} for r in range(len(self.ranks))]
        for r, sends in enumerate(number):
            if len(sends) != len(plan[r]):
                fail(f"{self.name}: rank {r} sends {len(sends)} messages, not {len(plan[r])}")
        for r, i in self.order:
            op = self.ranks[r][i]
            if op.kind == SEND:
                target, chunks, use = plan[r][number[r][i]]
                if op.peer != target or op.size != sum(sizes[c] for c in chunks):
                    fail(f"{self.name}: rank {r} sends {op.size} bytes to {op.peer} and not chunks"
                         f" {sorted(chunks)} to {target}")
                shares = dict.fromkeys(chunks, 1 << r)
                for j in self.received_before(r, i):
                    for c, mask in content[r, j][0].items():
                        if c in shares:
                            shares[c] |= mask
                if use == "copy" and any(mask != everything for mask in shares.values()):
                    fail(f"{self.name}: rank {r} passes on what is not complete")
                content[r, i] = shares, use
            elif op.kind == RECV:
                content[r, i] = shares, use = content[self.partner[r, i]]
                for c, mask in shares.items():
                    so_far = added[r].get(c, 1 << r)
                    if use == "add" and so_far & mask:
                        fail(f"{self.name}: rank {r} adds a share of chunk {c} twice")
                    added[r][c] = so_far | mask
        for r, chunks in enumerate(added):
            for c in end(r):
                if chunks.get(c, 1 << r) != everything:
                    fail(f"{self.name}: chunk {c} is not complete at rank {r}")


def calc_time(ranks):
    """What each rank computes."""
    return [sum(op.size for op in rank if op.kind == CALC) for rank in ranks]
