#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile neighbour at a bridge: replay.py INTERFACE SECONDS

Sends again each UDP packet that leaves through INTERFACE, once as it was, once with a wrong
bit, and once with garbage for a payload, under the same sender's address. All go without a
UDP checksum, as IPv4 allows: that of a packet between two namespaces is not filled in.
"""
import os
import random
import socket
import sys
import time

ETHERNET, IP, UDP = 14, 20, 8


def main():
    interface, seconds = sys.argv[1], float(sys.argv[2])
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind((interface, 0))
    wire.settimeout(0.1)
    end, sent, seen = time.monotonic() + seconds, 0, set()
    random.seed(1)
    while time.monotonic() < end:
        try:
            frame, where = wire.recvfrom(65536)
        except socket.timeout:
            continue
        # what comes from there, what is not UDP over IPv4, what is long, short or known already
        head = ETHERNET + IP + UDP
        if (where[2] != socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x00" or frame[23] != 17
                or len(frame) < head + 10 or len(frame) > 1400 or frame in seen or sent > 3000):
            continue
        seen.add(frame)
        frame = bytearray(frame)
        frame[head - 2:head] = b"\0\0"
        bad = bytearray(frame)
        bad[random.randrange(head, len(bad))] ^= 1 << random.randrange(8)
        noise = bytearray(frame)
        noise[head:] = os.urandom(len(frame) - head)
        for packet in (frame, bad, noise):
            wire.send(packet)
            sent += 1
    print(sent)


main()
