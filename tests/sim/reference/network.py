# SPDX-License-Identifier: BSD-3-Clause
"""The packet network, from docs/network-model.md: its state and its three events.

Channels look whenever something might have changed for them, which is more often than need
be.
"""

import heapq

import topology

ENTER, LOOK, DELIVER = range(3)
RATES = {"Gbit/s": 8 * 10**9, "GB/s": 10**9}  # 1e-6 ps for a byte, at 1
DEFAULTS = {"packet": "4096", "buffer": "65536", "hop-latency": "50", "cable-latency": "33.4",
            "switching": "cut-through", "routing": "static", "seed": "1"}


def rounded(count, per_byte):
    """The product in ps, to the nearest, a half to the even one."""
    whole, rest = divmod(count * per_byte, 10**6)
    return whole + (2 * rest > 10**6 or (2 * rest == 10**6 and whole % 2 == 1))


def byte_time(text):
    """1e-6 ps, of a rate that gives whole ones."""
    for unit, one in RATES.items():
        if text.endswith(unit):
            byte, rest = divmod(one, int(text[:-len(unit)]))
            assert rest == 0, text
            return byte
    raise ValueError(text)


class Lane:
    def __init__(self, buffer):
        self.waiting = []  # heap of (age, serial, packet); at a host (age, serial, transfer)
        self.free = buffer
        self.returning = []  # (time, bytes)


class Channel:
    def __init__(self, key, lanes, buffer, from_host, to_host):
        self.key, self.from_host, self.to_host = key, from_host, to_host
        self.lanes = [Lane(buffer) for _ in range(1 if from_host or to_host else lanes)]
        self.busy_until = 0
        self.queued = 0  # ps that what waits will take


class Transfer:
    """A message under way. `left` and `delivered` are told about it."""

    def __init__(self, source, to, size, time, ordered, left, delivered):
        self.source, self.to, self.size, self.time = source, to, size, time
        self.ordered, self.left, self.delivered = ordered, left, delivered
        self.sent = self.came = 0
        self.first, self.last = None, 0
        self.complete = False


class Packet:
    def __init__(self, transfer, age, serial, size, seed):
        self.transfer, self.age, self.serial, self.size = transfer, age, serial, size
        self.seed = seed
        self.source, self.to = transfer.source, transfer.to
        self.held = None  # the lane whose buffer it is in, and the channel of that
        self.node = None  # the switch that it enters
        self.way, self.lane = None, 0  # for its route


class Network:
    def __init__(self, options, pace, byte, time_of):
        o = {**DEFAULTS, **options}
        self.topology = topology.build(o["network"])
        self.packet, self.buffer = int(o["packet"]), int(o["buffer"])
        self.hop, self.cable = time_of(o["hop-latency"]), time_of(o["cable-latency"])
        self.store = o["switching"] == "store-and-forward"
        self.byte = byte_time(o["link-rate"]) if "link-rate" in o else byte
        self.pace, self.adaptive, self.seed = pace, o["routing"] == "adaptive", int(o["seed"])
        self.channels, self.pairs = {}, {}
        self.events, self.added, self.serial = [], 0, 0

    def add(self, time, kind, key, action):
        heapq.heappush(self.events, (time, kind, key, self.added, action))
        self.added += 1

    def next_time(self):
        return self.events[0][0] if self.events else None

    def step(self):
        time, _, _, _, action = heapq.heappop(self.events)
        action(time)

    def time(self, size):
        return rounded(size, self.byte)

    def channel(self, source, to, cable=0):
        key = (source, to, cable)
        if key not in self.channels:
            from_host, to_host = isinstance(source, int), isinstance(to, int)
            order = ((0, source, 0) if from_host else (0, to, 1) if to_host else
                     (1, self.topology.order(source, to, cable)))
            self.channels[key] = Channel(order, self.topology.lanes, self.buffer, from_host, to_host)
        return self.channels[key]

    def look_at(self, time, channel):
        self.add(time, LOOK, channel.key, lambda now: self.look(now, channel))

    # --- messages ---

    def send(self, transfer):
        transfer.serial = self.serial
        self.serial += 1
        if transfer.ordered:
            self.pairs.setdefault((transfer.source, transfer.to), []).append(transfer)
        if transfer.source == transfer.to:
            transfer.first = transfer.time
            transfer.last = transfer.time + rounded(transfer.size - 1, self.pace)
            self.deliver_at(transfer)
            transfer.left(transfer.last)
        else:
            self.offer(transfer, self.channel(transfer.source, self.topology.switch_of(transfer.source)))

    def next_size(self, transfer):
        return min(self.packet, transfer.size - transfer.sent)

    def offer(self, transfer, channel):
        """The next packet of a message waits for its host's channel."""
        age = transfer.time + rounded(transfer.sent, self.pace)
        if self.pace > self.byte:
            age += rounded(self.next_size(transfer) - 1, self.pace - self.byte)
        heapq.heappush(channel.lanes[0].waiting, (age, transfer.serial, transfer))
        self.look_at(max(age, channel.busy_until), channel)

    def cut(self, now, channel):
        age, _, transfer = heapq.heappop(channel.lanes[0].waiting)
        packet = Packet(transfer, age, self.serial, self.next_size(transfer), self.seed)
        self.serial += 1
        transfer.sent += packet.size
        if transfer.sent < transfer.size:
            self.offer(transfer, channel)
        else:
            transfer.left(now + self.time(packet.size - 1))
        return packet

    def deliver_at(self, transfer):
        self.add(transfer.last, DELIVER, (0, 0), lambda now: self.deliver(now, transfer))

    def deliver(self, now, transfer):
        transfer.complete = True
        if not transfer.ordered:
            transfer.delivered(now, transfer.first)
            return
        line = self.pairs[transfer.source, transfer.to]
        while line and line[0].complete:
            first = line.pop(0)
            first.delivered(now, first.first)

    # --- channels ---

    def look(self, now, channel):
        if channel.busy_until > now:
            return
        best = None
        for lane in channel.lanes:
            lane.free += sum(size for time, size in lane.returning if time <= now)
            lane.returning = [(time, size) for time, size in lane.returning if time > now]
            if not lane.waiting or lane.waiting[0][0] > now:
                continue
            age, serial, item = lane.waiting[0]
            size = self.next_size(item) if channel.from_host else item.size
            if (channel.to_host or lane.free >= size) and (best is None or (age, serial) < best[:2]):
                best = (age, serial, lane)
        if best is not None:
            self.take(now, channel, best[2])

    def take(self, now, channel, lane):
        if channel.from_host:
            packet = self.cut(now, channel)
            channel_to = self.topology.switch_of(packet.source)
        else:
            packet = heapq.heappop(lane.waiting)[2]
            channel.queued -= self.time(packet.size)
            channel_to = packet.next
        busy = self.time(packet.size)
        channel.busy_until = now + busy
        self.look_at(channel.busy_until, channel)
        if packet.held is not None:
            held, before = packet.held
            back = now + busy + self.cable
            held.returning.append((back, packet.size))
            self.look_at(back, before)
        head = now + self.cable
        if channel.to_host:
            self.eject(packet, head)
            return
        lane.free -= packet.size
        packet.held, packet.node = (lane, channel), channel_to
        tail = self.time(packet.size - 1) if self.store else 0
        self.add(head + tail + self.hop, ENTER, channel.key, lambda t: self.enter(t, packet))

    def eject(self, packet, head):
        transfer = packet.transfer
        transfer.came += packet.size
        transfer.first = head if transfer.first is None else min(transfer.first, head)
        transfer.last = max(transfer.last, head + self.time(packet.size - 1))
        if transfer.came == transfer.size:
            self.deliver_at(transfer)

    def enter(self, now, packet):
        def load(to, cable):
            channel = self.channel(packet.node, to, cable)
            return channel.queued + max(0, channel.busy_until - now)

        packet.next, cable, lane = self.topology.route(packet, packet.node,
                                                       load if self.adaptive else None)
        channel = self.channel(packet.node, packet.next, cable)
        channel.queued += self.time(packet.size)
        heapq.heappush(channel.lanes[0 if channel.to_host else lane].waiting,
                       (packet.age, packet.serial, packet))
        self.look_at(max(now, channel.busy_until), channel)
