# SPDX-License-Identifier: BSD-3-Clause
"""The model `loggopsim`, from "What LogGOPSim does" in docs/loggops-model.md.

One heap of items (time, stamp). Whole nanoseconds, modulo 2^64.
"""

import heapq

import parameters
from schedule import CALC, RECV, SEND, has_cycle, matches

U64 = 2**64 - 1
U32 = 2**32 - 1


class Host:
    def __init__(self, rank, cpus, nics):
        self.rank = rank
        self.waits = [op.waits for op in rank]
        self.next_o, self.next_gs, self.next_gr = [0] * cpus, [0] * nics, [0] * nics
        self.posted, self.arrived = [], []
        self.released = [i for i, op in enumerate(rank) if op.waits == 0]

    def release(self, successors):
        for i in successors:
            self.waits[i] = (self.waits[i] - 1) & U32
            if self.waits[i] == 0:
                self.released.append(i)


class Message:
    def __init__(self, source, number, op):
        self.source, self.number = source, number
        self.size, self.tag, self.cpu, self.nic = op.size, op.tag, op.cpu, op.nic


class Simulation:
    def __init__(self, ranks, p):
        self.p = p
        everything = [op for rank in ranks for op in rank]
        cpus = 1 + max((op.cpu for op in everything), default=0)
        nics = 1 + max((op.nic for op in everything), default=0)
        self.hosts = [Host(rank, cpus, nics) for rank in ranks]
        self.heap, self.stamp = [], 0

    def enter(self, time, rank, item):
        heapq.heappush(self.heap, (time, self.stamp, rank, item))
        self.stamp += 1

    def enter_released(self, rank):
        """Sends before recvs before calcs, otherwise in the order of their release."""
        host = self.hosts[rank]
        for i in sorted(host.released, key=lambda i: host.rank[i].kind):
            op = host.rank[i]
            time = host.next_o[op.cpu]
            if op.kind == SEND:
                time = max(time, host.next_gs[op.nic])
            self.enter(time, rank, i)
        host.released = []

    def run(self):
        for rank in range(len(self.hosts)):
            self.enter_released(rank)
        step = {SEND: self.send, RECV: self.recv, CALC: self.calc}
        while self.heap:
            time, stamp, rank, item = heapq.heappop(self.heap)
            if isinstance(item, Message):
                outcome = self.message(time, rank, item)
            else:
                outcome = step[self.hosts[rank].rank[item].kind](time, rank, item)
            if isinstance(outcome, set):
                for touched in sorted(outcome):
                    self.enter_released(touched)
            else:  # not yet: back at the time the resource is free, with its old stamp
                heapq.heappush(self.heap, (outcome, stamp, rank, item))

    def calc(self, time, rank, i):
        host, op = self.hosts[rank], self.hosts[rank].rank[i]
        if host.next_o[op.cpu] > time:
            return host.next_o[op.cpu]
        host.next_o[op.cpu] = (time + op.size) & U64
        host.release(op.after_start)
        host.release(op.after_end)
        return {rank}

    def send(self, time, rank, i):
        p, host, op = self.p, self.hosts[rank], self.hosts[rank].rank[i]
        free = max(host.next_o[op.cpu], host.next_gs[op.nic])
        if free > time:
            return free
        more = (op.size - 1) & U64
        host.release(op.after_start)
        host.next_o[op.cpu] = (time + p["o"] + more * p["O"]) & U64
        host.next_gs[op.nic] = (time + p["g"] + more * p["G"]) & U64
        self.enter((time + p["o"] + p["L"]) & U64, op.peer, Message(rank, i, op))
        if op.size <= p["S"]:
            host.release(op.after_end)
        return {rank, op.peer}

    def let_go(self, message, time, cpu, nic):
        """The sender of a rendezvous completes."""
        sender = self.hosts[message.source]
        sender.release(sender.rank[message.number].after_end)
        sender.next_o[cpu] = max(sender.next_o[cpu], time)
        sender.next_gs[nic] = max(sender.next_gs[nic], time)

    def recv(self, time, rank, i):
        host, op = self.hosts[rank], self.hosts[rank].rank[i]
        host.release(op.after_start)
        for message in host.arrived:
            if matches(op, message.source, message.tag):
                host.arrived.remove(message)
                if op.size > self.p["S"]:
                    self.let_go(message, time, op.cpu, op.nic)
                host.release(op.after_end)
                return {rank, message.source}
        host.posted.append(i)
        return {rank}

    def message(self, time, rank, m):
        p, host = self.p, self.hosts[rank]
        free = max(host.next_o[m.cpu], host.next_gr[m.nic])
        if free > time:
            return free
        more = (m.size - 1) & U64
        host.next_o[m.cpu] = (time + p["o"] + max(more * p["O"] & U64, more * p["G"] & U64)) & U64
        host.next_gr[m.nic] = (time + p["g"] + more * p["G"]) & U64
        for i in host.posted:
            if matches(host.rank[i], m.source, m.tag):
                host.posted.remove(i)
                if m.size > p["S"]:
                    self.let_go(m, time, m.cpu, m.nic)
                host.release(host.rank[i].after_end)
                return {rank, m.source}
        host.arrived.append(m)
        return {rank}


def finish_times(ranks, p):
    """The finish time of each rank, in ns. `p` comes from parameters.parse()."""
    whole = {"S": p["S"]}
    for name in "LogGO":
        whole[name], rest = divmod(p[name], parameters.NS)
        if rest:
            raise parameters.ParameterError(f"-{name} is not a whole number of nanoseconds")
    for number, rank in enumerate(ranks):
        if has_cycle(rank):
            raise parameters.SimulationError(f"rank {number}: dependencies have a cycle")
    simulation = Simulation(ranks, whole)
    simulation.run()
    for number, host in enumerate(simulation.hosts):
        if host.posted or host.arrived:
            raise parameters.SimulationError(
                f"rank {number}: {len(host.posted)} recvs without a message,"
                f" {len(host.arrived)} messages without a recv")
    return [max(host.next_o) for host in simulation.hosts]
