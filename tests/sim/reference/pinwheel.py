# SPDX-License-Identifier: BSD-3-Clause
"""The model `pinwheel`, from docs/loggops-model.md, rule by rule and without haste.

Events lie in one heap by (time, kind, rank, number). Claims that wait are looked
through from end to end whenever something is freed. On a packet network (network.py)
messages are its own until they arrive, and its events come before those of ranks.
"""

import heapq

import network
from parameters import PS, SimulationError, TIME_LIMIT, parse_time
from schedule import CALC, RECV, matches

COMPLETE, ARRIVE, FREE, POST, SEND_CLAIM, REPLY, DATA, TAKE, CALC_CLAIM = range(9)


def picoseconds(count, per_byte):
    """The product in ps, rounded to the nearest, a half to the even one."""
    whole, rest = divmod(count * per_byte, PS)
    return whole + (2 * rest > PS or (2 * rest == PS and whole % 2 == 1))


class Rank:
    def __init__(self, operations):
        self.ops = operations
        self.waits = [op.waits for op in operations]
        self.completed = [False] * len(operations)
        self.cpu = [0] * (1 + max((op.cpu for op in operations), default=0))
        self.nic_out = [0] * (1 + max((op.nic for op in operations), default=0))
        self.nic_in = [0] * (1 + max((op.nic for op in operations), default=0))
        self.waiting = []  # claims
        self.posted = []  # recvs, by number
        self.arrived = []  # messages
        self.sent = 0  # arrivals caused elsewhere
        self.finish = 0


class Claim:
    """Something that needs a cpu and perhaps a nic; `granted` is called with its start."""

    def __init__(self, key, cpu, cpu_time, nic, nic_time, granted):
        self.key, self.cpu, self.cpu_time = key, cpu, cpu_time
        self.nic, self.nic_time, self.granted = nic, nic_time, granted


class Message:
    """A message on its way: its send, and, once matched, its recv."""

    def __init__(self, source, number, op, size, eager):
        self.source, self.number, self.op, self.size, self.eager = source, number, op, size, eager
        self.arrival = self.dest = self.recv = None
        self.handed = None  # when its last byte is there, for all its sender can do


class Simulation:
    def __init__(self, schedule, p, noise=None, net=None):
        """`noise` is a noise.Noise; `net` are options of a packet network, by name."""
        self.p, self.noise = p, noise
        self.L, self.o, self.g = (p[name] // PS for name in "Log")
        self.net = None
        if net is not None:
            self.net = network.Network(net, max(p["G"], p["O"]), p["G"], network_time)
        self.ranks = [Rank(operations) for operations in schedule]
        self.events, self.added = [], 0

    # --- charges ---

    def gap_bytes(self, size):
        return picoseconds(size - 1, self.p["G"])

    def cpu_bytes(self, size):
        return picoseconds(size - 1, self.p["O"])

    def worked(self, r, begin, work):
        """When a cpu that works for `work` from `begin` on is done."""
        return begin + work if self.noise is None else self.noise.end(r, begin, work)

    # --- events ---

    def add(self, time, kind, rank, number, action, culprit):
        if time > TIME_LIMIT:
            raise SimulationError(f"rank {culprit[0]} operation {culprit[1]}: time overflow")
        # `added` only keeps heapq from comparing actions of two equal FREE events.
        heapq.heappush(self.events, ((time, kind, rank, number), self.added, action))
        self.added += 1

    def run(self):
        for r, rank in enumerate(self.ranks):
            for i, waits in enumerate(rank.waits):
                if waits == 0:
                    self.ready(0, r, i)
        while self.events or (self.net and self.net.events):
            time = self.net.next_time() if self.net else None
            if time is not None and (not self.events or time <= self.events[0][0][0]):
                self.net.step()
                continue
            key, _, action = heapq.heappop(self.events)
            action(key[0])

    def ready(self, now, r, i):
        op = self.ranks[r].ops[i]
        if op.kind == RECV:
            self.add(now, POST, r, i, lambda t: self.post(t, r, i), (r, i))
        elif op.kind == CALC:
            self.claim(now, CALC_CLAIM, r, i, op.size * 1000, False,
                       lambda x: self.calc_starts(x, r, i))
        else:
            self.send_ready(now, r, i)

    def released(self, now, r, successors):
        rank = self.ranks[r]
        for i in successors:
            rank.waits[i] -= 1
            if rank.waits[i] == 0:
                self.ready(now, r, i)

    def started(self, now, r, i):
        self.released(now, r, self.ranks[r].ops[i].after_start)

    def complete_at(self, time, r, i):
        self.add(time, COMPLETE, r, i, lambda t: self.completes(t, r, i), (r, i))

    def completes(self, now, r, i):
        rank = self.ranks[r]
        rank.completed[i] = True
        rank.finish = max(rank.finish, now)
        self.released(now, r, rank.ops[i].after_end)

    # --- resources ---

    def claim(self, time, kind, r, i, cpu_time, nic_time, granted):
        """Adds the event of a claim; nic_time False means that it needs no nic."""
        op = self.ranks[r].ops[i]
        nic = None if nic_time is False else op.nic
        claim = Claim((time, kind, r, i), op.cpu, cpu_time, nic, nic_time, granted)

        def wants(now):
            if self.can_start(now, r, claim):
                self.start(now, r, claim)
            else:
                self.ranks[r].waiting.append(claim)
        self.add(time, kind, r, i, wants, (r, i))

    def can_start(self, now, r, claim):
        rank = self.ranks[r]
        return rank.cpu[claim.cpu] <= now and (claim.nic is None or rank.nic_out[claim.nic] <= now)

    def start(self, now, r, claim):
        rank, culprit = self.ranks[r], (r, claim.key[3])
        rank.cpu[claim.cpu] = self.worked(r, now, claim.cpu_time)
        self.add(rank.cpu[claim.cpu], FREE, r, 0, lambda t: self.free(t, r), culprit)
        if claim.nic is not None:
            rank.nic_out[claim.nic] = now + claim.nic_time
            self.add(now + claim.nic_time, FREE, r, 0, lambda t: self.free(t, r), culprit)
        claim.granted(now)

    def free(self, now, r):
        """Starts waiting claims, the least first, while one can."""
        rank = self.ranks[r]
        while True:
            able = [c for c in rank.waiting if self.can_start(now, r, c)]
            if not able:
                return
            least = min(able, key=lambda c: c.key)
            rank.waiting.remove(least)
            self.start(now, r, least)

    # --- operations ---

    def calc_starts(self, x, r, i):
        self.started(x, r, i)
        self.complete_at(self.worked(r, x, self.ranks[r].ops[i].size * 1000), r, i)

    def send_off(self, x, sender, number, dest, size, ordered, action, left=None):
        """Something leaves `sender`, whose cpu began with it at x: `action` happens when it
        arrives, and is told when its first byte did. `left`: on a network, its last byte has
        left."""
        sequence = self.ranks[sender].sent
        self.ranks[sender].sent += 1
        time = self.worked(sender, x, self.o)
        if self.net is None:
            self.add(time + self.L, ARRIVE, sender, sequence, lambda t: action(t, t),
                     (sender, number))
            return

        def delivered(now, first):
            self.add(now, ARRIVE, sender, sequence, lambda t: action(t, first), (sender, number))
        self.net.send(network.Transfer(sender, dest, size, time, ordered, left or (lambda t: None),
                                       delivered))

    def has_come(self, now, first, message):
        """The bytes of a message: the nic counts from the first one on."""
        message.arrival = first
        message.handed = now if self.net else first + self.cpu_bytes(message.size)

    def send_ready(self, now, r, i):
        op = self.ranks[r].ops[i]
        size = max(op.size, 1)
        message = Message(r, i, op, size, size <= self.p["S"])
        cpu_time, nic_time = self.o, False
        if message.eager:
            cpu_time += self.cpu_bytes(size)
            nic_time = self.g + self.gap_bytes(size)

        def starts(x):
            self.started(x, r, i)
            self.send_off(x, r, i, op.peer, size if message.eager else 1, True,
                          lambda t, first: self.arrives(t, first, message))
            if message.eager:
                self.complete_at(self.worked(r, x, cpu_time), r, i)
        self.claim(now, SEND_CLAIM, r, i, cpu_time, nic_time, starts)

    def arrives(self, now, first, message):
        self.has_come(now, first, message)
        message.dest = message.op.peer
        dest = self.ranks[message.dest]
        for i in dest.posted:
            if matches(dest.ops[i], message.source, message.op.tag):
                dest.posted.remove(i)
                self.match(now, message, i)
                return
        dest.arrived.append(message)

    def post(self, now, r, i):
        rank = self.ranks[r]
        self.started(now, r, i)
        for message in rank.arrived:
            if matches(rank.ops[i], message.source, message.op.tag):
                rank.arrived.remove(message)
                self.match(now, message, i)
                return
        rank.posted.append(i)

    def match(self, now, message, recv):
        message.recv = recv
        if message.eager:
            self.bring_in(now, message)
        else:
            self.claim(now, REPLY, message.dest, recv, self.o, False,
                       lambda x: self.reply_starts(x, message))

    def reply_starts(self, x, message):
        self.send_off(x, message.dest, message.recv, message.source, 1, False,
                      lambda t, first: self.reply_arrives(t, message))

    def reply_arrives(self, now, message):
        size, r, i = message.size, message.source, message.number
        cpu_time = self.o + self.cpu_bytes(size)
        wire = max(self.gap_bytes(size), self.cpu_bytes(size))

        def starts(x):
            free = self.worked(r, x, cpu_time)
            self.send_off(x, r, i, message.dest, size, False, data_arrive,
                          lambda left: self.complete_at(max(free, left), r, i))
            if self.net is None:
                self.complete_at(max(free, self.worked(r, x, self.o) + wire), r, i)

        def data_arrive(now, first):
            self.has_come(now, first, message)
            self.bring_in(now, message)
        self.claim(now, DATA, r, i, cpu_time, self.g + self.gap_bytes(size), starts)

    def bring_in(self, now, message):
        """The nic of the recv takes in the bytes; the recv's cpu has them then."""
        rank, size, r, i = self.ranks[message.dest], message.size, message.dest, message.recv
        nic = rank.ops[i].nic
        begin = max(message.arrival, rank.nic_in[nic])
        rank.nic_in[nic] = begin + self.g + self.gap_bytes(size)
        last = max(begin + self.gap_bytes(size), message.handed)
        if max(last, rank.nic_in[nic]) > TIME_LIMIT:
            raise SimulationError(f"rank {r} operation {i}: time overflow")
        cpu_time = self.o + self.cpu_bytes(size)
        self.claim(max(now, last), TAKE, r, i, cpu_time, False,
                   lambda x: self.complete_at(self.worked(r, x, cpu_time), r, i))


def network_time(text):
    return parse_time("L", text) // PS


def finish_times(schedule, p, noise=None, net=None):
    """The finish time of each rank, in ps. `p` comes from parameters.parse()."""
    simulation = Simulation(schedule, p, noise, net)
    simulation.run()
    for r, rank in enumerate(simulation.ranks):
        left = rank.completed.count(False)
        if left or rank.arrived:
            raise SimulationError(f"rank {r}: {left} operations did not complete,"
                                  f" {len(rank.arrived)} messages were not received")
    return [rank.finish for rank in simulation.ranks]
