# SPDX-License-Identifier: BSD-3-Clause
"""A plain SLMP peer, written from the description of the protocol alone: a header of ten
bytes (flags, message id, byte offset, network byte order); who gets a packet with SYN sends
its header back, with ACK; how many packets are under way is the sender's choice.

The receiver keeps no state of the protocol: it writes what comes where it belongs. The
sender sends again what was not acknowledged, which the description calls easy to add.
"""
import random
import socket
import struct

HEADER = struct.Struct("!HII")
EOM, SYN, ACK = 0x8000, 0x4000, 0x2000
PAYLOAD = 1462


class Receiver:
    """Receives one message; `lose` of a hundred packets are not seen."""

    def __init__(self, lose=0, seed=1):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(10)
        self.port = self.socket.getsockname()[1]
        self.lose, self.random = lose, random.Random(seed)
        self.data, self.flags, self.ids = bytearray(), set(), set()

    def receive(self):
        """Returns the message when all of it has come and nothing more does."""
        have, end = {}, None
        while end is None or sum(have.values()) < end:
            packet, sender = self.socket.recvfrom(65536)
            if self.random.randrange(100) < self.lose:
                continue
            flags, message, offset = HEADER.unpack_from(packet)
            payload = packet[HEADER.size:]
            self.flags.add(flags)
            self.ids.add(message)
            if flags & SYN:
                answer = HEADER.pack(flags | ACK, message, offset)
                self.socket.sendto(answer, sender)
            if not payload and not flags & EOM:
                continue
            if len(self.data) < offset + len(payload):
                self.data.extend(bytes(offset + len(payload) - len(self.data)))
            self.data[offset:offset + len(payload)] = payload
            have[offset] = len(payload)
            if flags & EOM:
                end = offset + len(payload)
        self._answer_copies()
        return bytes(self.data)

    def _answer_copies(self):
        self.socket.settimeout(0.5)
        try:
            while True:
                packet, sender = self.socket.recvfrom(65536)
                flags, message, offset = HEADER.unpack_from(packet)
                if flags & SYN:
                    self.socket.sendto(HEADER.pack(flags | ACK, message, offset), sender)
        except socket.timeout:
            pass

    def close(self):
        self.socket.close()


def send(port, data, message=0x12345678, window=16, syn="all", shuffle=0, lose=0, twice=0,
         strict=True):
    """Sends one message to a local port. `shuffle`: each packet may be up to so many places
    too early. `syn`: of all packets, of the "ends", or of "none". Returns the flags of all
    acknowledgements."""
    chance = random.Random(message)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", port))
    s.settimeout(0.2)
    offsets = list(range(0, max(len(data), 1), PAYLOAD))
    packets = {}
    for offset in offsets:
        last = offset == offsets[-1]
        wants = syn == "all" or (syn == "ends" and (last or offset == 0))
        flags = (SYN if wants else 0) | (EOM if last else 0)
        packets[offset] = HEADER.pack(flags, message, offset) + data[offset:offset + PAYLOAD]
    order = sorted(offsets, key=lambda o: o + chance.randrange(shuffle + 1) * PAYLOAD)
    seen, waiting, under_way, tries = set(), list(order), {}, 0
    while waiting or under_way:
        while waiting and len(under_way) < window:
            offset = waiting.pop(0)
            flags = HEADER.unpack_from(packets[offset])[0]
            for _ in range(2 if chance.randrange(100) < twice else 1):
                if chance.randrange(100) >= lose or not flags & SYN:
                    s.send(packets[offset])
            if flags & SYN:
                under_way[offset] = True
        if not under_way:
            continue
        try:
            answer = s.recv(65536)
        except socket.timeout:
            tries += 1
            if tries > 50:
                raise RuntimeError("no acknowledgement of %d packets" % len(under_way))
            waiting = list(under_way) + waiting
            under_way = {}
            continue
        tries = 0
        flags, answered, offset = HEADER.unpack_from(answer)
        if strict and (len(answer) != HEADER.size or not flags & ACK or answered != message):
            raise RuntimeError("no acknowledgement: %r" % answer)
        if flags & (SYN | EOM) != HEADER.unpack_from(packets[offset])[0]:
            raise RuntimeError("not the header of packet %d" % offset)
        seen.add(flags)
        under_way.pop(offset, None)
    s.close()
    return seen
