# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with simulated NICs, from the tables of docs/sim-nic.md and of the sPIN paper (SC'17).

A packet's way, each line an event of its own:

    program, counter or handler ── o, L_dma, 2 L_dma or nothing ──► egress port, in order
    egress port ── max(g, n·max(G, G_dma)) ──► network.py ──► its last byte has come
    last byte ── match, or CAM ──► ready ──► DMA engine ── L_dma ──► host memory
                                         └─► HPU: puts, DMA, ...

Times are whole picoseconds; a product of bytes and time is rounded once, as in the network.
What the program, counters and handlers do is spin_programs.py's.
"""

import collections
import heapq

import network

NS = 1000  # ps
PACKET = 4096

# o, g, match, cam, latency in ps; byte (G) and dma_byte (G_dma) in 1e-6 ps a byte; `threads`: an
# HPU runs others while a handler waits for what it reads from host memory; `host_byte`: of a byte
# of host memory, which what the NIC and the program move takes one after the other.
Nic = collections.namedtuple("Nic", "o g byte match cam latency dma_byte hpus threads host_byte",
                             defaults=(False, 6_667_000))
NICS = {
    "discrete": Nic(65000, 6700, 20 * 10**6, 30000, 2000, 250000, 15_600_000, 4),
    "integrated": Nic(65000, 6700, 20 * 10**6, 30000, 2000, 50000, 6_700_000, 4),
}


Away = collections.namedtuple("Away", "time")


def fat_tree(hosts):
    levels = next(n for n, most in ((1, 36), (2, 648), (3, 11664)) if hosts <= most)
    return f"fattree:radix=36,levels={levels}"


def packets_of(size):
    """The bytes of each packet; an empty message has one of 1 byte, as the network counts."""
    size = max(size, 1)
    return [PACKET] * (size // PACKET) + ([size % PACKET] if size % PACKET else [])


class Message:
    """`entry` is what it matches there; `done` the bytes of it that have been dealt with."""

    def __init__(self, source, to, size, entry):
        self.source, self.to, self.size, self.entry = source, to, size, entry
        self.done = 0
        self.payload_bytes = packets_of(size) if size else [0]


class Machine:
    """Network events of a time come before all others, those in the order of their making."""

    def __init__(self, nic, hosts, switching="cut-through"):
        self.nic, self.now = nic, 0
        self.events, self.added = [], 0
        options = {"network": fat_tree(hosts), "packet": str(PACKET), "switching": switching}
        self.net = network.Network(options, nic.byte, nic.byte,
                                   lambda text: round(float(text) * NS))
        self.hosts = [Host(self, number) for number in range(hosts)]

    def at(self, time, action):
        assert time >= self.now
        heapq.heappush(self.events, (time, self.added, action))
        self.added += 1

    def run(self):
        while True:
            of_net = self.net.next_time()
            if of_net is not None and (not self.events or of_net <= self.events[0][0]):
                self.now = of_net
                self.net.step()
            elif self.events:
                self.now, _, action = heapq.heappop(self.events)
                action()
            else:
                return self.now

    def bytes_take(self, count):
        return network.rounded(count, self.nic.byte)


class Host:
    def __init__(self, machine, number):
        self.machine, self.number = machine, number
        self.cpu_free = self.port_free = self.engine_free = self.memory_free = 0
        self.last_ready = {}  # of a sender's packets
        self.free_hpus = list(range(machine.nic.hpus))
        self.waiting = collections.deque()  # handlers without an HPU
        self.most_waiting = 0
        self.read = self.written = 0  # bytes of host memory, by the NIC

    # --- leaving ---

    def put(self, message):
        """By the program: it is busy for o, and then its next call begins."""
        self.cpu_free = max(self.machine.now, self.cpu_free) + self.machine.nic.o
        self.leave_after(self.cpu_free - self.machine.now + self.machine.nic.latency, message)

    def triggered_put(self, message):
        """Also a reply, which begins when its get has matched."""
        self.leave_after(self.machine.nic.latency, message)

    def put_from_host(self, message):
        self.leave_after(2 * self.machine.nic.latency, message)

    def put_from_device(self, message):
        self.leave_after(0, message)

    def work(self, time, then):
        """The program computes; what it does next begins after that."""
        self.cpu_free = max(self.machine.now, self.cpu_free) + time
        self.machine.at(self.cpu_free, then)

    def touch(self, latency, time, then):
        """The program works on memory, for `time` once that is free."""
        begin = max(self.machine.now, self.cpu_free, self.memory_free)
        self.memory_free = begin + time
        self.cpu_free = begin + latency + time
        self.machine.at(self.cpu_free, then)

    def leave_after(self, delay, message):
        self.machine.at(self.machine.now + delay, lambda: self.leave(message))

    def leave(self, message):
        """All packets of a message take the port before those of the next one."""
        nic = self.machine.nic
        for i, count in enumerate(packets_of(message.size)):
            start = max(self.machine.now, self.port_free)
            self.port_free = start + max(nic.g, network.rounded(count, max(nic.byte, nic.dma_byte)))
            self.send_packet(message, i, count, start)

    def send_packet(self, message, i, count, start):
        there = self.machine.hosts[message.to]

        def came(now, first):
            there.last_byte(message, i)

        if message.to == self.number:
            net = self.machine.net
            last = start + 2 * net.cable + net.hop + self.machine.bytes_take(count - 1)
            self.machine.at(last, lambda: came(last, None))
            return
        self.machine.net.send(network.Transfer(self.number, message.to, count, start, False,
                                               lambda time: None, came))

    # --- coming ---

    def last_byte(self, message, i):
        """Packet i of the message is ready after its match, and never before an earlier one."""
        nic = self.machine.nic
        ready = self.machine.now + (nic.match if i == 0 else nic.cam)
        ready = max(ready, self.last_ready.get(message.source, 0))
        self.last_ready[message.source] = ready
        self.machine.at(ready, lambda: message.entry(self, message, message.payload_bytes[i]))

    def take_engine(self, count):
        """Begins a transfer of the DMA engine; returns when it does, and how long that takes it."""
        begin = max(self.machine.now, self.engine_free, self.memory_free)
        self.memory_free = begin + network.rounded(max(count, 1), self.machine.nic.host_byte)
        taken = network.rounded(max(count, 1), self.machine.nic.dma_byte)
        self.engine_free = begin + taken
        return begin, taken

    def deposit(self, count, landed):
        """Runs with the arrival: the engine's time for its bytes delays the next one only."""
        begin, _ = self.take_engine(count)
        self.written += count
        self.machine.at(begin + self.machine.nic.latency, landed)

    # --- handlers: generators that yield the time at which they go on, or Away(that time) if they
    # leave their HPU until then ---

    def handle(self, handler):
        self.waiting.append(handler)
        self.most_waiting = max(self.most_waiting, len(self.waiting) - len(self.free_hpus))
        self.start_handlers()

    def start_handlers(self):
        while self.waiting and self.free_hpus:
            self.go_on(heapq.heappop(self.free_hpus), self.waiting.popleft())

    def go_on(self, hpu, handler):
        until = next(handler, None)
        if isinstance(until, Away):
            self.machine.at(until.time, lambda: self.handle(handler))
        elif until is not None:
            self.machine.at(until, lambda: self.go_on(hpu, handler))
            return
        heapq.heappush(self.free_hpus, hpu)
        self.start_handlers()

    def spend(self, time):
        return self.machine.now + time

    def dma_write(self, count, landed):
        """Posted: the handler goes on when the engine has taken the bytes."""
        begin, taken = self.take_engine(count)
        self.written += count
        self.machine.at(begin + taken + self.machine.nic.latency, landed)
        return begin + taken

    def dma_read(self, count):
        """Also an atomic operation: the handler goes on when the bytes are there."""
        begin, taken = self.take_engine(count)
        self.read += count
        there = begin + 2 * self.machine.nic.latency + taken
        return Away(there) if self.machine.nic.threads else there
