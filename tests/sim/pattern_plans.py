# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of an algorithm send to each other, from its definition.

A plan has for each rank the list of its sends: target, chunks, "add" or "copy". These are
slow and plain on purpose: sets are listed, recursion is recursion.
"""


def deal(size, parts):
    """`size` bytes in `parts` chunks, the first ones a byte larger where it does not divide."""
    return [size // parts + (i < size % parts) for i in range(parts)]


def folded(n):
    """Those who take part in the rounds of a power of two, and their pairs: (out, in)."""
    power = 1 << (n.bit_length() - 1)
    pairs = [(2 * i, 2 * i + 1) for i in range(n - power)]
    out = {a for a, _ in pairs}
    return [r for r in range(n) if r not in out], pairs


def fold(n, chunks, rounds):
    """Puts `rounds` (a plan of those who take part) between the two steps of the fold."""
    members, pairs = folded(n)
    plan = [[] for _ in range(n)]
    for out, into in pairs:
        plan[out].append((into, chunks, "add"))
    for number, sends in enumerate(rounds):
        plan[members[number]] += [(members[to], c, use) for to, c, use in sends]
    for out, into in pairs:
        plan[into].append((out, chunks, "copy"))
    return plan


def allreduce_ring(n, size, **_):
    sizes = deal(size, n)
    plan = [[((r + 1) % n, [(r - s) % n], "add" if s < n - 1 else "copy")
             for s in range(2 * (n - 1))] for r in range(n)]
    return plan, sizes


def reduce_scatter_ring(n, size, **_):
    plan = [[((r + 1) % n, [(r - 1 - s) % n], "add") for s in range(n - 1)] for r in range(n)]
    return plan, deal(size, n)


def allreduce_recdoub(n, size, **_):
    members, _pairs = folded(n)
    bits = len(members).bit_length() - 1
    rounds = [[(x ^ 1 << k, [0], "add") for k in range(bits)] for x in range(len(members))]
    return fold(n, [0], rounds), [size]


def allreduce_rabenseifner(n, size, **_):
    members, _pairs = folded(n)
    p = len(members)
    bits = p.bit_length() - 1

    def owned(x, k):
        """The chunks that are still x's before step k: those whose high bits are x's low ones."""
        chunks = list(range(p))
        for i in range(k):
            half = len(chunks) // 2
            chunks = chunks[half:] if x >> i & 1 else chunks[:half]
        return chunks

    rounds = [[(x ^ 1 << k, owned(x ^ 1 << k, k + 1), "add") for k in range(bits)] +
              [(x ^ 1 << k, owned(x, k + 1), "copy") for k in reversed(range(bits))]
              for x in range(p)]
    return fold(n, list(range(p)), rounds), deal(size, p)


def swing_steps(extent):
    """The steps on a torus: each dimension in turn, as long as it has some."""
    left = [e.bit_length() - 1 for e in extent]
    steps, s = [], 0
    while any(s < k for k in left):
        steps += [(d, s) for d, k in enumerate(left) if s < k]
        s += 1
    return steps


def swing_peer(x, step, extent):
    """pi(r, s) of the paper, in one dimension of the torus."""
    d, s = step
    rho = sum((-2) ** i for i in range(s + 1))
    stride = 1
    for e in extent[:d]:
        stride *= e
    at = x // stride % extent[d]
    to = (at + rho if at % 2 == 0 else at - rho) % extent[d]
    return x + (to - at) * stride


def swing_rounds(extent, bandwidth):
    steps = swing_steps(extent)
    p = 1
    for e in extent:
        p *= e

    def reaches(x, t):
        """The places that x can reach with the steps from number t on."""
        if t == len(steps):
            return {x}
        return reaches(x, t + 1) | reaches(swing_peer(x, steps[t], extent), t + 1)

    rounds = []
    for x in range(p):
        peers = [swing_peer(x, step, extent) for step in steps]
        if bandwidth:
            rounds.append([(q, reaches(q, t + 1), "add") for t, q in enumerate(peers)] +
                          [(q, reaches(x, t + 1), "copy") for t, q in reversed([*enumerate(peers)])])
        else:
            rounds.append([(q, [0], "add") for q in peers])
    return rounds


def swing(n, size, extent, bandwidth):
    members, _pairs = folded(n)
    rounds = swing_rounds(extent or [len(members)], bandwidth)
    chunks = len(members) if bandwidth else 1
    return fold(n, list(range(chunks)), rounds), deal(size, chunks)


def allreduce_swing_latency(n, size, extent=None):
    return swing(n, size, extent, False)


def allreduce_swing_bandwidth(n, size, extent=None):
    return swing(n, size, extent, True)


ALLREDUCES = [allreduce_ring, allreduce_recdoub, allreduce_rabenseifner, allreduce_swing_latency,
              allreduce_swing_bandwidth]


# ---- Blocks: what the k-th send of a rank carries ----

def bruck_phases(n, radix):
    """(weight, digit) of the messages of Bruck's all-to-all and of the barrier."""
    phases, weight = [], 1
    while weight < n:
        phases += [(weight, j) for j in range(1, radix) if j * weight < n]
        weight *= radix
    return phases


def alltoall_bruck(n, radix):
    phases = bruck_phases(n, radix)

    def carried(rank, k, has, _target):
        """Blocks are (source, target); one goes on in a phase if the digit of its distance says so.
        What has been on its way through lower digits has gone these."""
        weight, digit = phases[k]
        return [(s, t) for s, t in has
                if (t - s) % n // weight % radix == digit and (rank - s) % n == (t - s) % n % weight]
    return carried


def allgather_bruck(n):
    return lambda rank, k, has, target: [(rank + i) % n for i in range(min(1 << k, n - (1 << k)))]


def allgather_ring(n):
    return lambda rank, k, has, target: [(rank - k) % n]


def allgather_recdoub(n):
    """In the rounds all that one has; one that handed over its block gets all others."""
    _members, pairs = folded(n)
    out = {a for a, _ in pairs}
    return lambda rank, k, has, target: has - {target} if target in out else has


def bcast_scatter_allgather(n, root):
    """Chunk v is for place v, v ranks after the root. Down the tree goes what the subtree is to
    have, from the larger distance to the smaller; then the chunk that came last goes on."""
    def carried(rank, k, _has, target):
        v, to = (rank - root) % n, (target - root) % n
        low = v & -v if v else 1 << n.bit_length()
        tree = [v + (1 << i) for i in reversed(range(n.bit_length()))
                if 1 << i < low and v + (1 << i) < n]
        if k < len(tree):
            return range(to, min(n, to + (to & -to)))
        return [(v - (k - len(tree))) % n]
    return carried
