# SPDX-License-Identifier: BSD-3-Clause
"""Topologies and routes, from "Topologies and routes" in docs/network-model.md.

Hosts are numbers, switches are tuples. A topology says by which channel a packet leaves a
switch: (next node, which of several cables, lane). With adaptive routing it asks `load`,
which is None if routes are static, for that of (next node, cable). `order` gives channels
between switches their order.
"""

import noise


def options_of(text):
    return {key: int(value) for key, value in (item.split("=") for item in text.split(","))}


class FatTree:
    """A switch is (level, subtree, place in it): subtree has all hosts below it."""

    lanes = 1

    def __init__(self, text):
        o = {"oversubscription": 1, **options_of(text)}
        self.levels = o["levels"]
        up = o["radix"] // (1 + o["oversubscription"])
        half = o["radix"] // 2
        self.down = [0] + [o["radix"] - up] + [half] * (self.levels - 2) + [o["radix"]]
        self.up = [1] + [up] + [half] * (self.levels - 2) + [0]
        if self.levels == 1:
            self.down, self.up = [0, o["radix"]], [1, 0]
        self.below, self.parents = [1], [1]  # hosts of a subtree; switches that reach all of it
        for level in range(1, self.levels + 1):
            self.below.append(self.below[-1] * self.down[level])
            self.parents.append(self.parents[-1] * self.up[level - 1])
        self.hosts = self.below[-1]

    def switch_of(self, host):
        return 1, host // self.down[1], 0

    def order(self, here, there, cable):
        level, subtree, place = here
        up = there[0] > level
        number = there[2] // self.parents[level] if up else there[1] % self.down[level]
        return (level, place + self.parents[level] * subtree, up, number)

    def above(self, here, choice):
        level, subtree, place = here
        return (level + 1, subtree // self.down[level + 1], place + self.parents[level] * choice)

    def route(self, packet, here, load):
        level, subtree, place = here
        to = packet.to
        if to // self.below[level] == subtree:
            if level == 1:
                return (to, 0, 0)
            return ((level - 1, to // self.below[level - 1], place % self.parents[level - 1]), 0, 0)
        choice = to // self.parents[level] % self.up[level]
        ways = [self.above(here, (choice + i) % self.up[level]) for i in range(self.up[level])]
        return (min(ways, key=lambda way: load(way, 0)) if load else ways[0], 0, 0)


class Torus:
    lanes = 2

    def __init__(self, text):
        self.sizes = [int(size) for size in text.split("x")]
        self.hosts = 1
        for size in self.sizes:
            self.hosts *= size

    def switch_of(self, host):
        place = []
        for size in self.sizes:
            place.append(host % size)
            host //= size
        return tuple(place)

    def step(self, here, d, upwards):
        there = list(here)
        there[d] = (here[d] + (1 if upwards else -1)) % self.sizes[d]
        return tuple(there)

    def order(self, here, there, cable):
        d = next(d for d, (x, y) in enumerate(zip(here, there)) if x != y)
        return (here[::-1], d, self.sizes[d] > 2 and there != self.step(here, d, True))

    def route(self, packet, here, load):
        to = self.switch_of(packet.to)
        for d, size in enumerate(self.sizes):
            if here[d] == to[d]:
                continue
            if packet.way is None or packet.way[0] != d:
                ahead = (to[d] - here[d]) % size
                upwards = ahead < size - ahead
                if 2 * ahead == size:
                    source = self.switch_of(packet.source)
                    others = [x for i, x in enumerate(to) if i != d]
                    upwards = size == 2 or (sum(source) + sum(others)) % 2 == 0
                if load and size > 2:
                    up = load(self.step(here, d, True), 0) * ahead
                    down = load(self.step(here, d, False), 0) * (size - ahead)
                    upwards = up < down if up != down else upwards
                packet.way, packet.lane = (d, upwards), 0
            upwards = packet.way[1]
            if here[d] == (size - 1 if upwards else 0):
                packet.lane = 1
            return (self.step(here, d, upwards), 0, packet.lane)
        return (packet.to, 0, 0)


class Dragonfly:
    """A switch is (group, router). A packet's way: groups passed, and one to pass first."""

    lanes = 3

    def __init__(self, text):
        o = options_of(text)
        self.a, self.h, self.p = o["a"], o["h"], o["p"]
        self.groups = o.get("groups", self.a * self.h + 1)
        self.hosts = self.groups * self.a * self.p
        self.cables = self.a * self.h // (self.groups - 1) if self.groups > 1 else 0

    def switch_of(self, host):
        return divmod(host // self.p, self.a)

    def port(self, group, other, number):
        """The port of a group that leads to another one, of several the number's."""
        return number % self.cables * (self.groups - 1) + (other - group) % self.groups - 1

    def order(self, here, there, cable):
        return (here, 0, there[1]) if here[0] == there[0] else (here, 1, cable[0])

    def towards(self, here, other, number):
        """From a switch to another group: next switch and cable."""
        group, router = here
        out, back = self.port(group, other, number), self.port(other, group, number)
        if out // self.h != router:
            return (group, out // self.h), 0
        return (other, back // self.h), (out, back)

    def length(self, here, other, number):
        """Channels to another group, and the router where one comes in."""
        out, back = self.port(here[0], other, number), self.port(other, here[0], number)
        return 1 + (out // self.h != here[1]), (other, back // self.h)

    def detour(self, packet, here, last, load):
        """A group that is drawn by lot, if the way by it is the lesser one."""
        low, high = sorted((here[0], last[0]))
        via = noise.below(noise.draw(packet.seed, packet.serial), self.groups - 3)
        via += via >= low
        via += via >= high
        direct, where = self.length(here, last[0], packet.to)
        direct += where != last
        first, where = self.length(here, via, packet.to)
        second, where = self.length(where, last[0], packet.to)
        around = first + second + (where != last)
        straight = load(*self.towards(here, last[0], packet.to)) * direct
        return via if straight > load(*self.towards(here, via, packet.to)) * around else None

    def route(self, packet, here, load):
        last = self.switch_of(packet.to)
        if here == last:
            return (packet.to, 0, 0)
        if packet.way is None:
            packet.way = (0, None)
            if load and here[0] != last[0] and self.groups > 2:
                packet.way = (0, self.detour(packet, here, last, load))
        passed, via = packet.way
        via = None if via == here[0] else via
        if here[0] == last[0] and via is None:
            return (last, 0, passed)
        there, cable = self.towards(here, last[0] if via is None else via, packet.to)
        packet.way = (passed + (there[0] != here[0]), via)
        return (there, cable, passed)


class Graph:
    """A Graphviz file with a line `A -- B;` for each cable; a switch is (number,). Static."""

    def __init__(self, path):
        with open(path, encoding="ascii") as file:
            edges = [line.strip(" ;\n").split(" -- ") for line in file if " -- " in line]
        names = list(dict.fromkeys(name for edge in edges for name in edge))
        hosts = [name for name in names if name.startswith("H")]
        switches = [name for name in names if not name.startswith("H")]
        self.hosts = len(hosts)
        self.home, self.ports = {}, {(i,): [] for i in range(len(switches))}
        for number, (a, b) in enumerate(edges):
            for x, y in ((a, b), (b, a)):
                if x in hosts:
                    self.home[hosts.index(x)] = (switches.index(y),)
                elif y in switches:
                    self.ports[switches.index(x),].append(((switches.index(y),), number))
        self.distances = {switch: self.distances_to(switch) for switch in self.ports}
        self.lanes = max(1, *(max(d.values()) for d in self.distances.values()))

    def distances_to(self, switch):
        distance, line = {switch: 0}, [switch]
        for here in line:
            for there, _ in self.ports[here]:
                if there not in distance:
                    distance[there] = distance[here] + 1
                    line.append(there)
        return distance

    def switch_of(self, host):
        return self.home[host]

    def order(self, here, there, cable):
        return (here, cable, there)

    def route(self, packet, here, load):
        assert load is None, "static only"
        distance = self.distances[self.home[packet.to]]
        if distance[here] == 0:
            return (packet.to, 0, 0)
        nearer = [port for port in self.ports[here] if distance[port[0]] < distance[here]]
        packet.way = 0 if packet.way is None else packet.way + 1  # channels between switches
        there, cable = nearer[packet.to % len(nearer)]
        return (there, cable, packet.way)


KINDS = {"fattree": FatTree, "torus": Torus, "dragonfly": Dragonfly}


def build(text):
    if text.endswith(".dot"):
        return Graph(text)
    kind, _, rest = text.partition(":")
    return KINDS[kind](rest)
