#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody on the network of a job who has no key: attack.py HOW SECONDS MOST RATE PORT PORT...

Sees all UDP packets of the loopback interface between those ports, and sends what it saw there,
MOST packets at most, for so many seconds at most, RATE a second, until the file ATTACK_UNTIL is
there. It prints how many it sent. HOW is

  spread   each packet once to every port as from every port: what is answered as well
  again    packets to where they went as from where they came, over and over
"""
import os
import random
import socket
import struct
import sys
import time

ETHERNET, IP, UDP, KEPT, ADDRESS = 14, 20, 8, 512, "127.0.0.1"
OWN_ID = 0x7077  # the identification of packets that are sent from here


class Attack:
    def __init__(self, most, rate, ports):
        self.ports, self.most, self.rate, self.sent, self.seen = ports, most, rate, 0, []
        self.begun = time.monotonic()
        self.known = set()
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.wire.bind(("lo", 0))
        self.out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def look(self, longest):
        """A packet that is new: from which port to which, and its bytes; None without one."""
        self.wire.settimeout(longest)
        try:
            frame, where = self.wire.recvfrom(65536)
        except (socket.timeout, BlockingIOError):
            return None
        head = ETHERNET + IP + UDP
        if (where[2] == socket.PACKET_OUTGOING or len(frame) < head or frame[ETHERNET + 9] != 17
                or struct.unpack_from("!H", frame, ETHERNET + 4)[0] == OWN_ID):
            return None
        ends = struct.unpack_from("!HH", frame, ETHERNET + IP)
        payload = bytes(frame[head:])
        if not set(ends) <= set(self.ports) or len(payload) > KEPT or payload in self.known:
            return None
        self.known.add(payload)
        return ends[0], ends[1], payload

    def send(self, source, target, payload):
        if self.sent >= self.most:
            return
        length = IP + UDP + len(payload)
        address = socket.inet_aton(ADDRESS)
        packet = struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, length, OWN_ID, 0, 64, 17, 0, address,
                             address, source, target, UDP + len(payload), 0) + payload
        try:
            self.out.sendto(packet, (ADDRESS, 0))
        except OSError:
            return  # a full queue
        self.sent += 1

    def spread(self):
        found = self.look(0.05)
        for source in self.ports if found else []:
            for target in self.ports:
                self.send(source, target, found[2])

    def again(self):
        found = self.look(0.0005)
        if found and len(self.seen) < 4000:
            self.seen.append(found)
        due = min(100, int((time.monotonic() - self.begun) * self.rate) - self.sent)
        for _ in range(due if self.seen else 0):
            self.send(*random.choice(self.seen))


def main():
    attack = Attack(int(sys.argv[3]), int(sys.argv[4]), [int(p) for p in sys.argv[5:]])
    step = {"spread": attack.spread, "again": attack.again}[sys.argv[1]]
    end, until = time.monotonic() + float(sys.argv[2]), os.environ.get("ATTACK_UNTIL", "")
    random.seed(1)
    while time.monotonic() < end and attack.sent < attack.most and not os.path.exists(until):
        step()
    print(attack.sent)


main()
