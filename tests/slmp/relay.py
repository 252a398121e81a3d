# SPDX-License-Identifier: BSD-3-Clause
"""Passes packets between senders of one address and a port, badly: in 100 packets so many
are lost, come twice, come late, have a bit turned, as a seed has it. As a program,

    relay.py ADDRESS TO-ADDRESS TO-PORT LOSS TWICE LATE SPOIL SEED [LONGEST AFTER]

listens at the same port and says so; after AFTER packets those longer than LONGEST are lost,
too."""
import random
import select
import socket
import sys
import threading


class Relay(threading.Thread):
    def __init__(self, port, loss, twice, late, seed, spoil=0, address="127.0.0.1",
                 to="127.0.0.1", own_port=0):
        super().__init__(daemon=True)
        self.to = (to, port)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind((address, own_port))
        self.back.bind(("0.0.0.0", 0))
        for s in (self.front, self.back):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.port = self.front.getsockname()[1]
        self.chances, self.random = (loss, twice, late, spoil), random.Random(seed)
        self.sender, self.kept, self.going, self.lost = None, [], True, 0
        self.longest, self.passed, self.narrow_after = 65536, 0, None

    def run(self):
        while self.going:
            for s in select.select([self.front, self.back], [], [], 0.005)[0]:
                packet, where = s.recvfrom(65536)
                self.sender = where if s is self.front else self.sender
                self.pass_on(s is self.front, packet)
            kept, self.kept = self.kept, []
            for forward, packet in kept:
                self.put(forward, packet)

    def pass_on(self, forward, packet):
        loss, twice, late, spoil = self.chances
        draw = self.random.randrange(100)
        self.passed += 1
        narrow = self.narrow_after is not None and self.passed > self.narrow_after
        if draw < loss or (narrow and len(packet) > self.longest):
            self.lost += 1
            return
        if self.random.randrange(100) < spoil:
            at = self.random.randrange(8 * len(packet))
            packet = bytearray(packet)
            packet[at // 8] ^= 1 << at % 8
        for _ in range(2 if self.random.randrange(100) < twice else 1):
            if self.random.randrange(100) < late:
                self.kept.append((forward, packet))
            else:
                self.put(forward, packet)

    def put(self, forward, packet):
        try:
            if forward:
                self.back.sendto(packet, self.to)
            elif self.sender:
                self.front.sendto(packet, self.sender)
        except OSError:
            self.lost += 1 # no way there just now

    def stop(self):
        self.going = False
        self.join()
        self.front.close()
        self.back.close()


def main():
    address, to = sys.argv[1], sys.argv[2]
    port, loss, twice, late, spoil, seed = (int(a) for a in sys.argv[3:9])
    relay = Relay(port, loss, twice, late, seed, spoil, address, to, port)
    if len(sys.argv) > 9:
        relay.longest, relay.narrow_after = int(sys.argv[9]), int(sys.argv[10])
    print("listening", flush=True)
    relay.run()


if __name__ == "__main__":
    main()
