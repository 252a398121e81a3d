# SPDX-License-Identifier: BSD-3-Clause
"""tools/wireshark/slmp.lua: a capture file of all kinds of packets, made here from
docs/slmp.md, and what tshark says of each. Usage: dissector.py LUA-FILE. Ends with 77
without tshark."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from commands import must

EOM, SYN, ACK, VER = 0x8000, 0x4000, 0x2000, 0x1000
COVER, BLANK, TAGGED, PIECE = 1, 2, 4, 8


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def plain(flags, message, offset, payload=b""):
    return struct.pack("!HII", flags, message, offset) + payload


def packet(flags, message, offset, kind, a, b, bits, rest, payload=b"", tag=b""):
    """A packet of a session, with its checksum, or with a tag behind its header."""
    head = plain(flags, message, offset) + bytes((kind, a, b, bits | (TAGGED if tag else 0)))
    if tag:
        return head + bytes(4) + rest + tag + payload
    covered = head + bytes(4) + rest + (payload if bits & COVER else b"")
    return head + struct.pack("!I", crc32c(covered)) + rest + payload


def session(kind, flags, bits=0, ranges=(), payload=b"", piece=b"", tag=b"", length=0):
    rest = struct.pack("!IIIHIII", 0x31323334, 77, 70, 250, 1111, 2222, length)
    rest += b"".join(struct.pack("!HH", *r) for r in ranges) + piece
    return packet(flags, 5, 1400, kind, 1, len(ranges), bits, rest, payload, tag)


NONCE = struct.pack("!QQ", 0x1112131415161718, 0x2122232425262728)
LIMITS = NONCE + struct.pack("!IHH", 0x31323334, 1472, 256)
GREETING_TAG = struct.pack("!QIHH", 0xabcdef, 0x0a630101, 9330, 0) + bytes(range(16))
DATA_TAG = struct.pack("!Q", 1 << 40) + bytes(range(16))
RESET_TAG = struct.pack("!QIHHIHHQ", 77, 0x0a630101, 9330, 0, 0x0a630102, 9331, 0,
                        0x5152535455565758) + bytes(range(16))

# Each packet, and what must be said of it.
PACKETS = [
    (plain(SYN, 7, 0, b"abc"), {"id": "7", "offset": "0", "flags.syn": "1", "flags.eom": "0",
                                "payload": "61:62:63"}),
    (plain(SYN | EOM, 7, 1462, b"x"), {"offset": "1462", "flags.eom": "1"}),
    (plain(SYN | ACK, 7, 0), {"flags.ack": "1", "info": "plain ACK message 7 offset 0"}),
    (plain(SYN | VER, 9, 0), {"flags.ver": "1", "info": "hello"}),
    (packet(ACK | VER, 9, 0, 1, 1, 2, 0, NONCE),
     {"kind": "1", "version": "1", "version_max": "2", "nonce": "0x1112131415161718",
      "incarnation": "0x2122232425262728", "checksum.status": "1", "info": "WELCOME"}),
    (packet(SYN | VER, 9, 0, 2, 1, 0, 0, LIMITS),
     {"kind": "2", "token": "0x31323334", "packet_size": "1472", "window": "256"}),
    (packet(ACK | VER, 9, 0, 3, 1, 0, 0, LIMITS), {"kind": "3", "info": "OPENED"}),
    (session(4, VER | SYN | ACK, COVER, ((2, 4),), b"payload", length=5000),
     {"kind": "4", "channel": "1", "ranges": "1", "bits.cover": "1", "sequence": "77",
      "cumulative": "70", "window": "250", "stamp": "1111", "echo": "2222", "length": "5000",
      "range.first": "72", "range.end": "74", "checksum.status": "1",
      "payload": "70:61:79:6c:6f:61:64", "info": "DATA #77 message 5 offset 1400"}),
    (session(4, VER | SYN | ACK, 0, (), b"payload", length=5000),
     {"bits.cover": "0", "bits.blank": "0", "checksum.status": "1"}),
    (session(4, VER | SYN | ACK, BLANK, (), b"\0" * 7, length=5000),
     {"bits.blank": "1", "checksum.status": "1"}),
    (session(4, VER | SYN | ACK, PIECE, (), b"p" * 32, struct.pack("!HH", 64, 1000),
             length=5000),
     {"bits.piece": "1", "piece.at": "64", "piece.of": "1000", "checksum.status": "1"}),
    (session(5, VER | ACK, 0, tuple((2 * i, 2 * i + 1) for i in range(1, 33))),
     {"kind": "5", "ranges": "32", "info": "ACK below #70", "checksum.status": "1"}),
    (packet(ACK | VER, 0, 0, 6, 0, 0, 0, struct.pack("!IQ", 0x31323334, 5)),
     {"kind": "6", "token": "0x31323334", "incarnation": "0x0000000000000005"}),
    (packet(ACK | VER, 0, 0, 6, 0, 0, 0, struct.pack("!IQ", 0x31323334, 5), tag=RESET_TAG),
     {"kind": "6", "token": "0x31323334", "number": "77", "to": "10.99.1.1", "from": "10.99.1.2",
      "from_port": "9331", "answers": "0x5152535455565758", "checksum.status": "2"}),
    (packet(ACK | VER, 0, 0, 8, 0, 0, 0, struct.pack("!IQ", 0x31323334, 5), tag=DATA_TAG),
     {"kind": "8", "token": "0x31323334", "number": str(1 << 40), "info": "LEAVE"}),
    (packet(SYN | VER, 9, 0, 7, 2, 0, 0, b"", tag=GREETING_TAG),
     {"kind": "7", "version": "2", "drawn": "0x0000000000abcdef", "to": "10.99.1.1", "to_port": "9330",
      "tag": ":".join("%02x" % i for i in range(16)), "checksum.status": "2"}),
    (packet(ACK | VER, 9, 0, 1, 1, 1, 0, NONCE, tag=GREETING_TAG),
     {"kind": "1", "bits.tagged": "1", "to_port": "9330"}),
    (session(4, VER | SYN | ACK, 0, ((1, 2),), b"payload", tag=DATA_TAG, length=5000),
     {"bits.tagged": "1", "number": str(1 << 40), "checksum.status": "2",
      "payload": "70:61:79:6c:6f:61:64"}),
]


def spoiled():
    data = bytearray(session(4, VER | SYN | ACK, COVER, (), b"payload", length=5000))
    data[-1] ^= 1
    return bytes(data)


PACKETS += [
    (spoiled(), {"checksum.status": "0", "kind": "4", "expert": True}),
    (plain(VER | ACK, 0, 0, bytes((99,)) + bytes(30)), {"info": "malformed", "expert": True}),
    (session(5, VER | ACK)[:40], {"info": "malformed", "expert": True}),
    (packet(ACK | VER, 0, 0, 8, 0, 0, 0, struct.pack("!IQ", 0x31323334, 5)),
     {"info": "malformed", "expert": True}),
    (plain(VER | ACK, 0, 0, b"\x04"), {"info": "malformed", "expert": True}),
]


def capture(path, packets, port):
    """A file of raw IPv4 packets, as tcpdump's manual page describes it."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        for i, data in enumerate(packets):
            udp = struct.pack("!HHHH", 40000, port, 8 + len(data), 0) + data
            ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(udp), i, 0, 64, 17, 0, 0x0a630001,
                             0x0a630101) + udp
            f.write(struct.pack("<IIII", i, 0, len(ip), len(ip)) + ip)


def dissected(lua, path):
    p = subprocess.run(["tshark", "-X", "lua_script:" + lua, "-r", path, "-T", "json"],
                       capture_output=True, text=True, timeout=120)
    must(p.returncode == 0 and "Lua" not in p.stderr, p.stderr)
    return [d["_source"]["layers"] for d in json.loads(p.stdout)]


def words_of(lua, path):
    p = subprocess.run(["tshark", "-X", "lua_script:" + lua, "-r", path, "-T", "fields", "-e",
                        "_ws.col.Protocol", "-e", "_ws.col.Info"], capture_output=True,
                       text=True, timeout=120)
    return [line.split("\t") for line in p.stdout.splitlines()]


def flat(tree, found=None):
    """All fields of a tree by their names without `slmp.`, the first of each."""
    found = {} if found is None else found
    for name, value in tree.items():
        if isinstance(value, dict):
            flat(value, found)
        else:
            found.setdefault(name.removeprefix("slmp."),
                             value[0] if isinstance(value, list) else value)
        if name.startswith("_ws.expert") or name.endswith("malformed"):
            found["expert"] = True
    return found


def number(text):
    """tshark says numbers in ways of its own."""
    try:
        return int(text, 0)
    except (ValueError, TypeError):
        return text


def test_all_kinds(lua):
    capture("all.pcap", [p for p, _ in PACKETS], 9330)
    layers, words = dissected(lua, "all.pcap"), words_of(lua, "all.pcap")
    must(len(layers) == len(PACKETS) == len(words), len(layers), len(words))
    for i, (_, right) in enumerate(PACKETS):
        must(words[i][0] == "SLMP", i, words[i])
        found = flat(layers[i].get("slmp", {}))
        found["info"] = words[i][1]
        for name, value in right.items():
            must(number(found.get(name)) == number(value), "packet", i, name, "is",
                 found.get(name), "not", value, found)


def test_any_port(lua):
    """Elsewhere only packets of sessions are known, and only those that are right."""
    packets = [p for p, _ in PACKETS]
    capture("any.pcap", packets, 12345)
    known = [w[0] == "SLMP" for w in words_of(lua, "any.pcap")]
    right = [len(p) > 10 and bool(p[0] & 0x10) and r.get("checksum.status") != "0" and
             "expert" not in r for p, r in PACKETS]
    must(known == right, known, right)


def main():
    if not shutil.which("tshark"):
        print("skipped: there is no tshark (Debian: tshark)")
        return 77
    lua = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        test_all_kinds(lua)
        test_any_port(lua)
        os.chdir("/")
    return 0


sys.exit(main())
