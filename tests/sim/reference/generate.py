# SPDX-License-Identifier: BSD-3-Clause
"""Random schedules and parameters.

A schedule grows in one global order: a calc on one rank, or a send and its recv at once;
dependencies point back in that order. So without wildcards, and with sends and recvs that
agree, nearly all can finish. Values are drawn from few small ones as often as not, so
that many things happen at the same time and the order of ties matters.
"""

import schedule
import topology
from schedule import ANY, CALC, RECV, SEND, Operation


def pick_style(rng, style):
    """One of the plain styles where the style is mixed."""
    return rng.choice(("ties", "plain")) if style == "mixed" else style


def pick_size(rng, style):
    style = pick_style(rng, style)
    if style == "ties":
        return rng.choice((0, 1, 1, 2, 3, 5, 11))
    if style == "extreme" and rng.random() < 0.2:
        return rng.choice((2**32, 2**40 + 1, 2**53, 2**63, 2**64 - 1))
    return rng.choice((0, 1, rng.randrange(64), rng.randrange(5000), rng.randrange(100000)))


def pick_length(rng, style):
    style = pick_style(rng, style)
    if style == "ties":
        return rng.choice((0, 1, 2, 5, 10, 40))
    if style == "extreme" and rng.random() < 0.2:
        return rng.choice((2**40, 2**53, 2**62, 2**63, 2**64 - 1))
    return rng.choice((0, rng.randrange(50), rng.randrange(5000), rng.randrange(200000)))


def pick_parameters(rng, style, whole):
    """Texts of all six; `whole` asks for whole nanoseconds without units."""
    style = pick_style(rng, style)
    if style == "ties":
        return {"L": rng.choice(("0", "1", "2", "5", "10")), "o": rng.choice("01125"),
                "g": rng.choice("01259"), "G": rng.choice("00112"), "O": rng.choice("0001"),
                "S": rng.choice(("0", "1", "2", "4", "100"))}
    size = rng.choice(("0", "1", "1000", "65535", "100000"))
    if whole:
        texts = {"L": rng.randrange(5000), "o": rng.randrange(3000), "g": rng.randrange(3000),
                 "G": rng.randrange(10), "O": rng.choice((0, rng.randrange(6)))}
        if style == "extreme" and rng.random() < 0.3:
            texts[rng.choice("GO")] = 18000000000
        return {**{name: str(value) for name, value in texts.items()}, "S": size}
    texts = {"L": rng.choice((f"{rng.randrange(5)}.{rng.randrange(10**6):06}us", "283.6",
                              f"{rng.randrange(9999999)}ps", "0")),
             "o": rng.choice((f"{rng.randrange(3000)}.{rng.randrange(1000):03}", "65ns", "0")),
             "g": rng.choice((f"{rng.randrange(100000)}ps", "6.7", "0.0")),
             "G": rng.choice((f"0.{rng.randrange(10**9):09}", "20ps", "0.5ps/B", "0.0025")),
             "O": rng.choice(("0", "0", f"{rng.randrange(3)}.{rng.randrange(10**6):06}ps", "1.5ps")),
             "S": size}
    if style == "extreme" and rng.random() < 0.3:
        texts[rng.choice("GO")] = "18.4s"
    return texts


NOISE_TRACE = "0 3\n7 2.5 # late\n\n11.001 0\n20 12345ps\n5us 10us\n"


def pick_noise(rng, style, trace):
    """Detours about as long as what goes on in a schedule of that style; `trace` is a file with
    NOISE_TRACE."""
    unit = 1 if style == "ties" else 1000
    period = rng.randrange(10, 60) * unit
    high = max(1, period * rng.randrange(1, 18) // 10 - 1)
    if rng.random() < 0.25:
        return {"noise": trace, "seed": str(rng.randrange(2**63))}
    return {"noise": rng.choice((
        f"uniform:period={period}ns,low={rng.choice((0, 1))}ns,high={high}ns",
        f"normal:period={period}ns,mean={period // 8}ns,deviation={period // rng.choice((4, 16))}ns",
        f"exponential:period={period}ns,mean={period * rng.randrange(1, 9) // 10}ns")),
        "seed": str(rng.randrange(2**63))}


def write_graph(rng, path, hosts):
    """A connected graph of switches, with cables twice now and then, and hosts."""
    switches = rng.randrange(1, 8)
    edges = [(f"s{i}", f"s{rng.randrange(i)}") for i in range(1, switches)]
    for _ in range(rng.randrange(switches) if switches > 1 else 0):
        edges.append(tuple(f"s{i}" for i in rng.sample(range(switches), 2)))
    edges += [(f"H{i}", f"s{rng.randrange(switches)}") for i in range(hosts)]
    rng.shuffle(edges)
    with open(path, "w", encoding="ascii") as file:
        file.write("graph {\n" + "".join(f"{a} -- {b};\n" for a, b in edges) + "}\n")


def pick_network(rng, style, ranks, graph):
    """A network for up to 8, or 50 ranks; links about as fast as nics, small buffers too.
    `graph` is where a file of one may be written."""
    names = (("torus:7x8", "torus:4x4x4", "torus:4x2x7", "fattree:radix=8,levels=3",
              "fattree:radix=12,levels=2", "dragonfly:a=4,h=2,p=2") if ranks > 8 else
             ("torus:8", "torus:3x4", "torus:2x2x2", "torus:2x5", "fattree:radix=8,levels=1",
              "fattree:radix=4,levels=2", "fattree:radix=4,levels=3",
              "fattree:radix=8,levels=2,oversubscription=3", "dragonfly:a=2,h=1,p=2",
              "dragonfly:a=4,h=1,p=1,groups=3", "dragonfly:a=2,h=2,p=1,groups=2"))
    names = [name for name in names if topology.build(name).hosts >= ranks]
    packet = rng.choice((1, 2, 5, 100)) if style == "ties" else rng.choice((1000, 1500, 4096))
    name, routing = rng.choice(names), rng.choice(("static", "adaptive"))
    if rng.random() < 0.25:
        write_graph(rng, graph, ranks + rng.randrange(3))
        name, routing = graph, "static"
    return {"network": name, "packet": str(packet),
            "buffer": str(packet * rng.choice((1, 1, 2, 3, 16)) + rng.choice((0, 0, 1))),
            "link-rate": rng.choice(("400Gbit/s", "100Gbit/s", "50GB/s", "1Gbit/s", "8Gbit/s")),
            "hop-latency": rng.choice(("50", "0", "7ps", "1us")),
            "cable-latency": rng.choice(("33.4", "1ps", "5", "300")),
            "switching": rng.choice(("cut-through", "store-and-forward")),
            "routing": routing, "seed": str(rng.randrange(2**63))}


class Builder:
    """Operations in their global order, put into their ranks at the end."""

    def __init__(self, rng, ranks):
        self.rng = rng
        self.ranks = [[] for _ in range(ranks)]

    def add(self, rank, op, density):
        operations = self.ranks[rank]
        operations.append(op)
        here = len(operations) - 1
        while here and self.rng.random() < density:
            back = min(int(self.rng.expovariate(0.5)) + 1, here)
            schedule.require(operations, here, here - back, self.rng.random() < 0.25)

    def renumber(self):
        """Shuffles the operation numbers of each rank; dependencies stay."""
        for r, operations in enumerate(self.ranks):
            place = list(range(len(operations)))
            self.rng.shuffle(place)
            shuffled = [None] * len(operations)
            for i, op in enumerate(operations):
                op.after_end = [place[j] for j in op.after_end]
                op.after_start = [place[j] for j in op.after_start]
                shuffled[place[i]] = op
            self.ranks[r] = shuffled


def random_schedule(rng, style, large=False):
    nranks = 50 if large else rng.choice((1, 2, 2, 3, 4, 5, 8))
    steps = 1000 if large else rng.randrange(1, rng.choice((5, 15, 36)))
    cpus, nics, tags = rng.choice((1, 2, 3)), rng.choice((1, 2, 3)), rng.choice((1, 2, 4))
    wild = rng.choice((0, 0, 0.1, 0.5))
    mismatch = rng.choice((0, 0, 0, 0.1))
    astray = rng.choice((0, 0, 0, 0, 0.03))
    density = rng.choice((0, 0.4, 0.6, 0.8))
    if large:  # with more of these nearly none could finish
        tags, wild, astray = 500, 0, 0
    build = Builder(rng, nranks)

    def place():
        return rng.randrange(cpus), rng.randrange(nics)
    for _ in range(steps):
        if rng.random() < 0.35:
            build.add(rng.randrange(nranks),
                      Operation(CALC, pick_length(rng, style), cpu=rng.randrange(cpus)), density)
            continue
        source, dest = rng.randrange(nranks), rng.randrange(nranks)
        size, tag = pick_size(rng, style), rng.randrange(tags)
        room = pick_size(rng, style) if rng.random() < mismatch else size
        send = Operation(SEND, size, dest, ANY if rng.random() < wild / 5 else tag, *place())
        recv = Operation(RECV, room, ANY if rng.random() < wild else source,
                         ANY if rng.random() < wild else tag, *place())
        parts = [(source, send), (dest, recv)]
        if source != dest and rng.random() < 0.5:
            parts.reverse()
        if rng.random() < astray:
            parts.pop()
        for rank, op in parts:
            # A send to oneself must not be waited for by its own recv, nor the reverse.
            build.add(rank, op, density if source != dest else 0)
    if rng.random() < 0.4:
        build.renumber()
    if rng.random() < 0.01:  # a cycle
        rank = rng.choice([r for r in build.ranks if r] or [[]])
        if rank:
            schedule.require(rank, 0, len(rank) - 1)
            schedule.require(rank, len(rank) - 1, 0)
    return build.ranks


def ordered_schedule(rng, style):
    """No wildcard, and all that uses a cpu, a nic or a (peer, tag) ordered by `requires`.

    Chain k of a rank uses cpu k and nic k; a tag names the chains at both ends. Further
    dependencies between chains only add order.
    """
    nranks = rng.choice((2, 3, 4, 6))
    chains = rng.choice((1, 1, 2, 3))
    ranks = [[] for _ in range(nranks)]
    last = [[None] * chains for _ in range(nranks)]

    def add(r, chain, op):
        rank = ranks[r]
        rank.append(op)
        here = len(rank) - 1
        if last[r][chain] is not None:
            schedule.require(rank, here, last[r][chain])
        last[r][chain] = here
        if here and chains > 1 and rng.random() < 0.2:
            schedule.require(rank, here, rng.randrange(here), rng.random() < 0.5)

    for _ in range(rng.randrange(2, 31)):
        r, k = rng.randrange(nranks), rng.randrange(chains)
        if rng.random() < 0.4:
            add(r, k, Operation(CALC, pick_length(rng, style), cpu=k))
            continue
        dest = rng.choice([d for d in range(nranks) if d != r])
        to, size = rng.randrange(chains), pick_size(rng, style)
        tag = 8 * k + to
        add(r, k, Operation(SEND, size, dest, tag, k, k))
        add(dest, to, Operation(RECV, size, r, tag, to, to))
    return ranks
