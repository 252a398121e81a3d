# SPDX-License-Identifier: BSD-3-Clause
"""The sPIN paper's accumulate and use cases on spin_machine.py; see spin_programs.py."""

import collections

from network import rounded
from spin_machine import Machine, Message, PACKET
from spin_programs import deposited

# Of a handler: ps a call, a put, a byte (1e-6 ps) that it computes on, a block that it writes.
Handler = collections.namedtuple("Handler", "call put byte block", defaults=(0, 0, 0))
# Of a program that works on memory: ps until it begins, 1e-6 ps for each byte read or written;
# a copied byte counts once, as in section 5.1.
Memory = collections.namedtuple("Memory", "latency byte")


def work(host, memory, count, then):
    host.touch(memory.latency, rounded(count, memory.byte), then)


def header_first(header, then):
    """An entry whose packets go to the entry `then` when the header handler has ended."""
    def entry(host, message, count):
        def handler():
            yield from header(host, message)
            message.open = True
            for held in message.held:
                then(host, message, held)

        if not hasattr(message, "held"):
            message.held, message.open = [], False
            host.handle(handler())
        if message.open:
            then(host, message, count)
        else:
            message.held.append(count)
    return entry


class Accumulate:
    """Figure 3d: host 0 puts numbers, which are multiplied with those of host 1; `done` is when
    the products are in its memory, `moved` are the bytes that host's memory has moved.

    paper      a payload handler reads, multiplies, writes its packet
    library    handlers/accumulate.c: a header handler; payload handlers go by blocks of 1 KiB,
               each under a lock in host memory, two atomic operations of 8 B
    """

    BLOCK = {"paper": PACKET, "library": 1024}

    def __init__(self, nic, size, way, handler, memory, program="paper"):
        self.machine = Machine(nic, 2)
        self.target, self.size = self.machine.hosts[1], size
        self.handler, self.memory, self.program = handler, memory, program
        self.by_program = self.left = 0
        self.machine.hosts[0].put(Message(0, 1, size, self.rdma() if way == "rdma" else
                                          self.spin()))

    def run(self):
        self.machine.run()
        self.moved = self.target.read + self.target.written + self.by_program
        return self.done

    def finish(self):
        self.done = self.machine.now

    def rdma(self):
        """The program reads what came and what was there, and writes the products."""
        self.by_program = 3 * self.size
        return deposited(lambda: work(self.target, self.memory, 3 * self.size, self.finish))

    def landed(self, count):
        self.left -= count
        if self.left == 0:
            self.finish()

    def spin(self):
        def packet(host, message, count):
            host.handle(self.payload(host, count))

        self.left = self.size
        return header_first(self.header, packet) if self.program == "library" else packet

    def header(self, host, message):
        yield host.spend(self.handler.call)

    def payload(self, host, count):
        most = self.BLOCK[self.program]
        yield host.spend(self.handler.call)
        for at in range(0, count, most):
            size = min(most, count - at)
            if self.program == "library":
                yield host.dma_read(8)
            yield host.dma_read(size)
            yield host.spend(rounded(size, self.handler.byte))
            yield host.dma_write(size, lambda size=size: self.landed(size))
            if self.program == "library":
                yield host.dma_read(8)


class Strided:
    """Figure 7a: a message that host 1 unpacks into blocks. Returns when all are in memory."""

    def __init__(self, nic, size, block, way, handler, memory):
        self.machine = Machine(nic, 2)
        self.size, self.block, self.left, self.handler = size, block, size, handler
        target = self.machine.hosts[1]

        def rdma():
            return deposited(lambda: work(target, memory, size, self.finish))

        self.machine.hosts[0].put(Message(0, 1, size, rdma() if way == "rdma" else self.spin))

    def run(self):
        self.machine.run()
        return self.done

    def finish(self):
        self.done = self.machine.now

    def spin(self, host, message, count):
        offset = message.done
        message.done += count
        host.handle(self.payload(host, offset, count))

    def payload(self, host, offset, count):
        yield host.spend(self.handler.call)
        while count:
            size = min(self.block - offset % self.block, count)
            yield host.spend(self.handler.block)
            yield host.dma_write(size, lambda size=size: self.landed(size))
            offset += size
            count -= size

    def landed(self, count):
        self.left -= count
        if self.left == 0:
            self.finish()


class Rendezvous:
    """Figure 5b: host 0 sends at time 0. Host 1 has posted its receive before (`early`) and
    computes until `busy`, or posts it then. `done` is when the data are in the receive's buffer,
    `copies` how often the program copies them.

    rdma       short messages come into a buffer of the library; long ones are announced, and the
               program gets them. Nothing but the program answers
    paper      the header handler of the announcement gets the data
    library    handlers/rendezvous.c: it puts a clearance, whose header handler puts the data
    """

    ANNOUNCEMENT, CLEARANCE = 16, 8

    def __init__(self, nic, size, eager, early, busy, way, handler, memory):
        self.machine = Machine(nic, 2)
        self.sender, self.target = self.machine.hosts
        self.size, self.early, self.way = size, early, way
        self.handler, self.memory = handler, memory
        self.copies, self.done = 0, None
        self.arrived = self.back = False  # a message for the program; the program is back
        self.long = size > eager
        to_program = deposited(self.came)
        on_nic = self.announced if self.long else header_first(self.look, to_program)
        self.sender.put(Message(0, 1, self.ANNOUNCEMENT if self.long else size,
                                on_nic if self.on_nic() else to_program))
        self.machine.at(busy, self.program_back)

    def run(self):
        self.machine.run()
        return self.done

    def on_nic(self):
        return self.early and self.way != "rdma"

    def finish(self):
        self.done = self.machine.now

    def came(self):
        self.arrived = True
        if self.on_nic():
            self.finish()
        elif self.back:
            self.serve()

    def program_back(self):
        self.back = True
        if self.arrived and not self.on_nic():
            self.serve()

    def serve(self):
        """The program finds the message, or its announcement."""
        if not self.long:
            self.copies += 1
            work(self.target, self.memory, self.size, self.finish)
        elif self.way == "library":
            self.target.put(self.clearance())
        else:
            self.target.put(self.get())

    def look(self, host, message):
        """The header handler of a short message, which it leaves to the NIC."""
        yield host.spend(self.handler.call)

    def announced(self, host, message, count):
        def header():
            yield host.spend(self.handler.call + self.handler.put)
            host.put_from_device(self.clearance() if self.way == "library" else self.get())
        host.handle(header())

    def data(self):
        return Message(0, 1, self.size, deposited(self.finish))

    def get(self):
        return Message(1, 0, 0, lambda host, message, count: host.triggered_put(self.data()))

    def clearance(self):
        def entry(host, message, count):
            def header():
                yield host.spend(self.handler.call + self.handler.put)
                host.put_from_host(self.data())
            host.handle(header())
        return Message(1, 0, self.CLEARANCE, entry)


class Raid:
    """Figure 7c: client 0 updates `size` bytes, in units round the data servers 2 to 5, each of
    which gets its part in one put; host 1 has the parity. `done` is when the client's NIC has
    the last ack in memory.

        client ── new ──► data server ── old ⊕ new ──► parity server
               ◄── ack ──             ◄──── ack ─────

    The parity server's ack goes to the data server, which tells the client, or straight to the
    client (`direct`). `rdma`: programs do all that, on whole messages. Else payload handlers do,
    on packets, each of which goes on as a put of its own.
    """

    PARITY, DATA, ACK = 1, (2, 3, 4, 5), 1
    LOOK = 20_000  # at a lock that another handler has

    def __init__(self, nic, size, unit, way, handler, memory, direct=False, locks=False):
        self.machine = Machine(nic, 6)
        self.client, self.parity = self.machine.hosts[:2]
        self.handler, self.memory, self.direct = handler, memory, direct
        self.locks, self.locked = locks, set()  # units of the parity on which a handler works
        self.sent = collections.Counter()  # packets of a server's part that its handlers have
        self.part = {server: 0 for server in self.DATA}
        for at in range(0, size, unit):
            self.part[self.DATA[at // unit % len(self.DATA)]] += min(unit, size - at)
        self.acks = sum(part != 0 for part in self.part.values())
        self.applied = dict.fromkeys(self.DATA, 0)
        for server, part in self.part.items():
            if part:
                self.client.put(Message(0, server, part, self.rdma_data(server)
                                        if way == "rdma" else self.spin_data))

    def run(self):
        self.machine.run()
        return self.done

    def ack(self, source):
        def landed():
            self.acks -= 1
            if self.acks == 0:
                self.done = self.machine.now
        return Message(source, 0, self.ACK, deposited(landed))

    # --- programs ---

    def rdma_data(self, server):
        """The program reads old and new, writes new and the difference."""
        host, part = self.machine.hosts[server], self.part[server]
        return deposited(lambda: work(host, self.memory, 4 * part, lambda: host.put(
            Message(server, self.PARITY, part, self.rdma_parity(server)))))

    def rdma_parity(self, server):
        """The program reads parity and difference, writes parity."""
        host, part = self.machine.hosts[server], self.part[server]

        def apply():
            back = self.ack(self.PARITY) if self.direct else Message(
                self.PARITY, server, self.ACK, deposited(lambda: host.put(self.ack(server))))
            self.parity.put(back)
        return deposited(lambda: work(self.parity, self.memory, 3 * part, apply))

    # --- handlers ---

    def spin_data(self, host, message, count):
        unit = self.sent[host.number]
        self.sent[host.number] += 1

        def handler():
            yield host.spend(self.handler.call)
            yield host.dma_read(count)
            yield host.dma_write(count, lambda: None)
            yield host.spend(rounded(count, self.handler.byte) + self.handler.put)
            host.put_from_device(Message(
                host.number, self.PARITY, count,
                lambda there, message, count: self.spin_parity(there, message, count, unit)))
        host.handle(handler())

    def spin_parity(self, host, message, count, unit):
        server = message.source

        def handler():
            yield host.spend(self.handler.call)
            while self.locks and unit in self.locked:
                yield host.spend(self.LOOK)
            self.locked.add(unit)
            yield host.dma_read(count)
            yield host.spend(rounded(count, self.handler.byte))
            yield host.dma_write(count, lambda: None)
            self.locked.discard(unit)
            self.applied[server] += count
            if self.applied[server] == self.part[server]:
                yield host.spend(self.handler.put)
                host.put_from_device(self.ack(self.PARITY) if self.direct else Message(
                    self.PARITY, server, self.ACK, self.spin_ack))
        host.handle(handler())

    def spin_ack(self, host, message, count):
        def handler():
            yield host.spend(self.handler.call + self.handler.put)
            host.put_from_device(self.ack(host.number))
        host.handle(handler())


class LineRate:
    """Figure 4: packets of one size, each a message, come as fast as the network brings them."""

    def __init__(self, nic, size, call, packets=400):
        self.machine = Machine(nic, 2)
        self.target = self.machine.hosts[1]

        self.ends = []

        def entry(host, message, count):
            def handler():
                yield host.spend(call)
                self.ends.append(self.machine.now)
            host.handle(handler())
        for _ in range(packets):
            self.machine.hosts[0].put_from_device(Message(0, 1, size, entry))

    def kept(self):
        """No packet waits for an HPU."""
        self.machine.run()
        return self.target.most_waiting == 0

    def apart(self):
        """From one packet that is handled to the next, in ps."""
        self.machine.run()
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)


def gap(nic, size):
    """Between packets at line rate, in ps."""
    return max(nic.g, rounded(size, nic.byte))


def hpus_needed(nic, size, call):
    """Little's law: handlers of `call` ps run at once, at line rate."""
    return -(-call // gap(nic, size))
