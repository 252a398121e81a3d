# SPDX-License-Identifier: BSD-3-Clause
"""The sPIN paper's experiments on spin_machine.py: what programs, counters and handlers do.

An entry is a function (host, message, bytes) that is called when a packet is ready. All costs
of handlers are parameters.
"""

import collections

from spin_machine import Machine, Message, PACKET

# A handler takes `handler` ps, and `put` ps more for each put. Its puts leave one after the
# other, each after its `put`, or all at the handler's end.
Costs = collections.namedtuple("Costs", "handler put at_end", defaults=(False,))


def deposited(then):
    """An entry without handlers: `then` when the last packet of a message is in host memory."""
    def entry(host, message, count):
        def landed():
            message.done += count
            if message.done == message.size:
                then()
        host.deposit(count, landed)
    return entry


# --- ping-pong ---

EXCHANGES = 10


class PingPong:
    """Round trips between hosts 0 and 1. `way` is rdma, triggered, stored or streamed; the
    completion handler of `stored` starts when the last packet is ready, or `after_deposit`."""

    def __init__(self, nic, size, way, costs, after_deposit=False):
        self.machine = Machine(nic, 2)
        self.client, self.server = self.machine.hosts
        self.size, self.costs, self.after_deposit = size, costs, after_deposit
        self.ping_entry = getattr(self, way)()
        self.begun = []

    def round_trip(self):
        """In ps, of the last exchange."""
        self.ping()
        self.machine.run()
        return self.begun[-1] - self.begun[-2]

    def ping(self):
        self.begun.append(self.machine.now)
        self.back = 0
        if len(self.begun) <= EXCHANGES:
            self.client.put(Message(0, 1, self.size, self.ping_entry))

    def pong(self, size):
        def answered():
            self.back += size
            if self.back == self.size:
                self.ping()
        return Message(1, 0, size, deposited(answered))

    def rdma(self):
        return deposited(lambda: self.server.put(self.pong(self.size)))

    def triggered(self):
        return deposited(lambda: self.server.triggered_put(self.pong(self.size)))

    def cost(self):
        return self.costs.handler + self.costs.put

    def streamed(self):
        def handler(count):
            yield self.server.spend(self.cost())
            self.server.put_from_device(self.pong(count))
        return lambda host, message, count: host.handle(handler(count))

    def stored(self):
        def handler():
            yield self.server.spend(self.cost())
            self.server.put_from_host(self.pong(self.size))

        def ready(host, message, count):
            message.done += count
            if message.done == message.size:
                host.handle(handler())
            host.deposit(count, lambda: None)

        if self.size <= PACKET:
            return self.streamed()
        if self.after_deposit:
            return deposited(lambda: self.server.handle(handler()))
        return ready


# --- broadcast ---

def children(place, size):
    """In the binomial tree, the largest subtree first."""
    step = 1
    while step < size and place & step == 0:
        step *= 2
    found = []
    while step > 1:
        step //= 2
        if place + step < size:
            found.append(place + step)
    return found


class Broadcast:
    """From rank 0 over all hosts; times[r] is when rank r has all of it.

    rdma        each program puts all of it to each child, when it has come
    triggered   so do counters; the root's program puts
    streamed    a payload handler puts each packet to each child and writes it to host memory;
                `root`: puts      the root's program puts packet by packet, each to every child
                        messages  it puts all of it to each child
                        handler   it puts an empty message for each packet to itself, whose
                                  header handler reads the data; packets have a head of 16 B
    """

    def __init__(self, nic, size, ranks, way, costs, root="puts"):
        self.machine = Machine(nic, ranks)
        self.hosts, self.ranks, self.size, self.costs = self.machine.hosts, ranks, size, costs
        self.times = [0] * ranks
        self.there = [0] * ranks
        self.head = 16 if way == "streamed" and root == "handler" else 0
        if way == "streamed":
            getattr(self, "root_" + root)()
        else:
            self.forward(self.hosts[0], "rdma", way)

    def last(self):
        self.machine.run()
        assert all(self.times[1:])
        return max(self.times)

    # --- whole messages ---

    def forward(self, host, way, below):
        for child in children(host.number, self.ranks):
            message = Message(host.number, child, self.size, self.all_there(child, below))
            (host.put if way == "rdma" else host.triggered_put)(message)

    def all_there(self, rank, way):
        def then():
            self.times[rank] = self.machine.now
            self.forward(self.hosts[rank], way, way)
        return deposited(then)

    # --- packets ---

    def packet_to(self, host, child, count):
        return Message(host.number, child, count, self.packet)

    def put_to_children(self, host, count):
        """The part of a handler that both kinds share; `count` includes the head."""
        below = children(host.number, self.ranks)
        if self.costs.at_end:
            yield host.spend(self.costs.put * len(below))
        for child in below:
            if not self.costs.at_end:
                yield host.spend(self.costs.put)
            host.put_from_device(self.packet_to(host, child, count))

    def packet(self, host, message, count):
        def handler():
            yield host.spend(self.costs.handler)
            yield from self.put_to_children(host, count)
            yield host.dma_write(count - self.head, landed)

        def landed():
            self.there[host.number] += count - self.head
            if self.there[host.number] == self.size:
                self.times[host.number] = self.machine.now

        host.handle(handler())

    def chunks(self):
        most = PACKET - self.head
        return [min(most, self.size - at) for at in range(0, self.size, most)]

    def root_puts(self):
        for count in self.chunks():
            for child in children(0, self.ranks):
                self.hosts[0].put(self.packet_to(self.hosts[0], child, count))

    def root_messages(self):
        for child in children(0, self.ranks):
            self.hosts[0].put(self.packet_to(self.hosts[0], child, self.size))

    def root_handler(self):
        def header(host, count):
            yield host.spend(self.costs.handler)
            yield host.dma_read(count)
            yield from self.put_to_children(host, self.head + count)

        for count in self.chunks():
            def started(host, message, empty, count=count):
                host.handle(header(host, count))
            self.hosts[0].put(Message(0, 0, 0, started))
