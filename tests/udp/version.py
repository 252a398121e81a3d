#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer with the job's key that speaks version 1 of sessions: version.py HOW KEY-FILE

At 127.0.0.2:2202, with the peer at 127.0.0.1:2201, whose HELLO it waits for; that must say that it
speaks version 4. It prints a line when it is there, and what else it sees is wrong on standard
error. HOW is

  answers   it welcomes the peer
  asks      it answers nothing, but sends a HELLO of its own and waits for the peer's WELCOME,
            which must say that it speaks version 4

The packets are made from docs/slmp.md, and what differed in version 1.
"""
import hashlib
import hmac
import socket
import struct
import sys

WELCOME, HELLO, TAGGED, SYN, ACK, VER = 1, 7, 4, 0x4000, 0x2000, 0x1000
OWN, PEER = ("127.0.0.2", 2202), ("127.0.0.1", 2201)
DRAWN = 0x1112131415161718


def tag(key, data):
    greetings = hmac.new(key, b"SLMP 1 greetings", hashlib.sha256).digest()
    return hmac.new(greetings, data, hashlib.sha256).digest()[:16]


def packet(key, flags, message, kind, versions, rest, drawn):
    data = struct.pack("!HIIBBBBI", flags, message, 0, kind, *versions, TAGGED, 0) + rest
    data += struct.pack("!Q4sHH", drawn, socket.inet_aton(PEER[0]), PEER[1], 0)
    return data + tag(key, data)


def expect(sock, key, kind, length):
    """A packet of the peer's with a right tag."""
    for _ in range(100):
        data = sock.recv(2048)
        if len(data) == length and data[10] == kind:
            assert hmac.compare_digest(data[-16:], tag(key, data[:-16])), data.hex()
            return data
    raise SystemExit("no packet of kind %d" % kind)


def main():
    with open(sys.argv[2], "rb") as file:
        key = file.read()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(30)
    sock.bind(OWN)
    print("is there", flush=True)
    sock.connect(PEER)
    hello = expect(sock, key, HELLO, 50)
    assert hello[11] == 4, hello.hex()
    message, drawn = struct.unpack_from("!I", hello, 2)[0], struct.unpack_from("!Q", hello, 18)[0]
    if sys.argv[1] == "answers":
        sock.send(packet(key, ACK | VER, message, WELCOME, (1, 1), struct.pack("!QQ", 5, 6), drawn))
    else:
        sock.send(packet(key, SYN | VER, 7, HELLO, (0, 0), b"", DRAWN))
        welcome = expect(sock, key, WELCOME, 66)
        assert welcome[11:13] == b"\4\4", welcome.hex()


main()
