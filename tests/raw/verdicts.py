#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same rules in nftables and in `pinwheel raw run`, and the same random frames to both.

verdicts.py PINWHEEL NS_A NS_B TABLES FRAMES [SEED]

For each of TABLES random tables of rules, FRAMES random frames go from the interface `veth` of
namespace NS_A to that of NS_B: first nftables decides there (at the interface's ingress), then the
XDP program of the rules. Packet sockets of one protocol each, which stand behind both, say which
frames have come through. Each frame must have had the same verdict, and each rule as many frames.

Frames whose IP lengths lie are sent last: nftables does not look into them, rules do; what either
lets through IP drops, so they count as dropped. Their counts are not compared.
"""
import ctypes
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from frames import checksum

MARK, ODD = 0x88b5, 0x1234  # of frames that tell the end of a batch; of a protocol nobody knows
TYPES = [0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, ODD, MARK]
PORTS = [22, 25, 53, 80, 123, 443, 1000, 1001, 1500, 2049, 3306, 5000, 5001, 6000, 8080, 9330]
MACS = [bytes([2, 0, 0, 0, 1, n]) for n in range(4)]
EXTENSIONS = [0, 43, 44, 51, 60]


# ---- Frames ----

def ip4(dice, proto, payload):
    head = bytearray(struct.pack(
        "!BBHHHBBH4B4B", 0x45, dice.choice([0, 0x10, 0xb8]), 20 + len(payload), dice.getrandbits(16),
        dice.choice([0, 0x4000]), dice.choice([1, 2, 63, 64, 128, 255]), proto, 0,
        10, 0, dice.randrange(4), dice.randrange(16), 10, 0, dice.randrange(4), dice.randrange(16)))
    return head, payload


def joined(head, payload):
    head[10:12] = b"\0\0"
    head[10:12] = struct.pack("!H", checksum(bytes(head)))
    return bytes(head) + payload


def ip6(dice, proto, payload):
    ends = [bytes([0xfd, 0, 0, 0, 0, dice.randrange(3)]) + bytes(9) + bytes([dice.randrange(8)])
            for _ in range(2)]
    return struct.pack("!IHBB", 6 << 28, len(payload), proto, 64) + ends[0] + ends[1] + payload


def transport(dice, v6):
    rest = bytes(dice.choice([4, 4, 4, 18, 60, 300]))
    kind = dice.randrange(10)
    ports = (dice.choice(PORTS + [dice.getrandbits(16)]), dice.choice(PORTS + [dice.getrandbits(16)]))
    if kind < 5:
        flags = dice.choice([2, 0x12, 0x10, 0x11, 0x18, 4, 0, 0x29, dice.getrandbits(8)])
        return 6, struct.pack("!HHIIBBHHH", *ports, dice.getrandbits(32), dice.getrandbits(32), 0x50,
                              flags, 512, 0, 0) + rest
    if kind < 8:
        return 17, struct.pack("!HHHH", *ports, 8 + len(rest), 0) + rest
    if kind < 9:
        kinds = [128, 129, 135, 136, 1] if v6 else [8, 0, 3, 11, 13]
        return (58 if v6 else 1), struct.pack("!BBHI", dice.choice(kinds), 0, 0, 5) + rest
    return dice.choice([2, 47, 50, 89, 132]), rest


def packet(dice):
    """A type of Ethernet, what is in the frame, and whether its lengths lie."""
    kind = dice.randrange(100)
    if kind < 20:
        payload = ip6(dice, *transport(dice, True))
        if kind < 2:
            payload = payload[:6] + bytes([dice.choice(EXTENSIONS)]) + payload[7:]
        if kind == 2:
            payload = bytes([dice.choice([0x40, 0x50, 0])]) + payload[1:]
        if kind == 3:
            return 0x86dd, payload[:4] + struct.pack("!H", 5000) + payload[6:], True
        return 0x86dd, payload, False
    if kind < 23:
        return 0x0806, struct.pack("!HHBBH", 1, 0x800, 6, 4, dice.choice([1, 2, 3])) + bytes(20), False
    if kind < 25:
        return ODD, bytes(40), False
    head, payload = ip4(dice, *transport(dice, False))
    lies = False
    if kind < 29:  # options
        head[0] = 0x40 | dice.randrange(6, 16)
        head += b"\1" * ((head[0] & 15) * 4 - 20)
        head[2:4] = struct.pack("!H", len(head) + len(payload))
    elif kind < 34:  # fragments
        head[6:8] = struct.pack("!H", dice.choice([0x2000, 0x2005, 1, 0x1fff, 0xa001]))
    elif kind < 36:
        head[0] = dice.choice([0x55, 0x65, 0x05, 0x44, 0x40, 0x43])
    elif kind < 40:
        lies = True
        head[2:4] = struct.pack("!H", dice.choice([0, 19, len(payload) + 100, 65535]))
    elif kind < 42:  # torn: its length lies as well
        cut = dice.randrange(len(head) + 8)
        return 0x0800, joined(head, payload)[:cut], True
    return 0x0800, joined(head, payload), lies


def frame(dice, number):
    kind, payload, lies = packet(dice)
    tags = b""
    if dice.randrange(20) == 0:
        tags = struct.pack("!HH", 0x8100, dice.randrange(4096))
        if dice.randrange(3) == 0:
            tags = struct.pack("!HH", 0x88a8, dice.randrange(4096)) + tags
    data = (MACS[0] + dice.choice(MACS) + tags + struct.pack("!H", kind) + payload +
            struct.pack("!I", number))
    return data, lies


# ---- Rules ----

def numbers(dice, most, pool):
    """Values and ranges of a field: for rules, and for nft."""
    found = set()
    for _ in range(dice.choice([1, 1, 2, 4])):
        first = dice.choice(pool)
        found.add((first, first if dice.randrange(2) else min(most, first + dice.randrange(1, 600))))
    spans, end = [], -1
    for low, high in sorted(found):  # without overlaps, which nft's sets do not have
        if low > end:
            spans.append((low, high))
            end = high
    return spans


def term(dice, field, words, spans):
    ours = " or ".join(f"{field} = {a}..{b}" if a != b else f"{field} = {a}" for a, b in spans)
    theirs = ", ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in spans)
    return ours, f"{words} {{ {theirs} }}"


def conditions(dice):
    """Lines of one set, and of nft's rule."""
    pool4 = [f"10.0.{n}.{m}" for n in range(4) for m in range(0, 16, 4)]
    kind = dice.randrange(13)
    ether = "ether type ip "
    lines = []
    if kind < 8 and dice.randrange(2):
        prefix = dice.choice([8, 22, 24, 30, 32])
        side, their = dice.choice([("ip.src", "saddr"), ("ip.dst", "daddr")])
        base = int.from_bytes(socket.inet_aton(dice.choice(pool4)), "big") >> (32 - prefix) << (32 - prefix)
        text = f"{socket.inet_ntoa(base.to_bytes(4, 'big'))}/{prefix}"
        lines.append((f"{side} = {text}", f"ip {their} {text}"))
    if kind < 3:
        field = dice.choice(["dport", "sport"])
        lines.append(term(dice, f"tcp.{field}", f"tcp {field}", numbers(dice, 65535, PORTS)))
        if dice.randrange(3) == 0:
            mask = dice.choice([2, 0x12, 0x3f, 0x29])
            value = dice.choice([2, 0x10, 0x12, 0]) & mask
            lines.append((f"tcp.flags & {mask} = {value}", f"tcp flags & {mask} == {value}"))
    elif kind < 5:
        field = dice.choice(["dport", "sport"])
        lines.append(term(dice, f"udp.{field}", f"udp {field}", numbers(dice, 65535, PORTS)))
        if dice.randrange(3) == 0:
            lines.append(("udp.length = 12..100", "udp length 12-100"))
    elif kind == 5:
        lines.append(term(dice, "icmp.type", "icmp type", [(n, n) for n in sorted(
            dice.sample([0, 3, 8, 11, 13], dice.choice([1, 2])))]))
    elif kind == 6:
        lines.append(term(dice, "ip.ttl", "ip ttl", [dice.choice([(1, 1), (0, 2), (64, 200)])]))
    elif kind == 7:
        lines.append(term(dice, "ip.proto", "ip protocol", [(n, n) for n in sorted(
            dice.sample([1, 2, 6, 17, 47, 50, 89, 132], 2))]))
    elif kind < 11:
        ether = "ether type ip6 "
        if dice.randrange(2):
            text = f"fd00:0:{dice.randrange(3):x}::/48"
            side, their = dice.choice([("ip6.src", "saddr"), ("ip6.dst", "daddr")])
            lines.append((f"{side} = {text}", f"ip6 {their} {text}"))
        protocol = dice.choice(["tcp", "udp", "icmp6"])
        if protocol == "icmp6":
            lines.append(term(dice, "icmp6.type", "icmpv6 type", [(128, 128)]))
        else:
            lines.append(term(dice, f"{protocol}6.dport", f"{protocol} dport",
                              numbers(dice, 65535, PORTS)))
    elif kind == 11:
        ether = ""
        mac = dice.choice(MACS).hex(":")
        lines.append((f"eth.src = {mac}", f"ether saddr {mac}"))
    else:
        ether = "ether type arp "
        lines.append(term(dice, "arp.op", "arp operation", [(1, 1)]))
    return [a for a, _ in lines], ether + " ".join(b for _, b in lines)


def table(dice):
    """Name, lines, nft's words and action of each rule. The first ones say what becomes of frames
    that the others do not look into."""
    yield "mark", ["eth.type = 0x88b5"], "ether type 0x88b5", "pass"
    for name, ours, theirs in [
            ("qinq", ["eth.type = 0x88a8"], "ether type 0x88a8"),
            ("vlan", ["vlan"], "ether type 8021q"),
            ("version", ["eth.type = ipv4",
                         "at 14 mask 0xff000000 = 0..0x3fffffff or at 14 mask 0xff000000 = 0x50000000..0xff000000"],
             "ether type ip ip version != 4"),
            ("header", ["ip.header = 0..4 or ip.header = 6..15"], "ether type ip ip hdrlength != 5"),
            ("fragment", ["ip.fragment = 1..0x3fff"], "ether type ip ip frag-off & 0x3fff != 0"),
            ("version6", ["eth.type = ipv6",
                          "at 14 mask 0xff000000 = 0..0x5fffffff or at 14 mask 0xff000000 = 0x70000000..0xff000000"],
             "ether type ip6 ip6 version != 6"),
            ("extension", ["ip6.next = 0 or ip6.next = 43..44 or ip6.next = 51 or ip6.next = 60"],
             "ether type ip6 ip6 nexthdr { 0, 43-44, 51, 60 }")]:
        yield name, ours, theirs, dice.choice(["pass", "drop", "drop"])
    for number in range(dice.randrange(4, 24)):
        yield f"r{number}", *conditions(dice), dice.choice(["pass", "drop"])
    yield "rest", ["all"], "", dice.choice(["pass", "drop"])


# ---- Both sides ----

def in_namespace(name, make):
    """make() in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{name}") as there:
        for file in (there, home):
            if libc.setns(file.fileno(), 0x40000000) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            if file is there:
                made = make()
    return made


def packet_socket(kind):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind))
    s.bind(("veth", kind))
    s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
    s.setblocking(False)
    return s


class Wire:
    """Sends frames in batches that no queue on the way is too short for."""
    BATCH = 64

    def __init__(self, a, b):
        self.out = in_namespace(a, lambda: packet_socket(0))
        self.into = in_namespace(b, lambda: [packet_socket(kind) for kind in TYPES])
        self.mark = 1 << 31

    def drain(self, seen):
        found = False
        for s in self.into:
            while True:
                try:
                    data = s.recv(2048)
                except BlockingIOError:
                    break
                number = struct.unpack("!I", data[-4:])[0]
                found = found or number == self.mark
                seen.add(number)
        return found

    def send(self, frames):
        """The numbers of the frames that came through."""
        seen = set()
        for at in range(0, len(frames), self.BATCH):
            for data in frames[at:at + self.BATCH]:
                self.out.send(data)
            self.mark += 1
            self.out.send(MACS[0] + MACS[1] + struct.pack("!HI", MARK, self.mark))
            end = time.monotonic() + 60
            while not self.drain(seen):
                if time.monotonic() > end:
                    sys.exit("verdicts.py: a frame that must pass does not come")
                select.select(self.into[-1:], [], [], 1)
        return {number for number in seen if number < 1 << 31}


class Nft:
    def __init__(self, namespace, rules):
        self.exec = ["ip", "netns", "exec", namespace, "nft"]
        lines = [f'{theirs} counter {"accept" if action == "pass" else "drop"} comment "{name}"'
                 for name, _, theirs, action in rules]
        text = ('table netdev fw {\nchain in {\ntype filter hook ingress device "veth" priority 0;\n'
                + "\n".join(lines) + "\n}\n}\n")
        done = subprocess.run(self.exec + ["-f", "-"], input=text, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"verdicts.py: nft: {done.stderr}\n{text}")

    def counts(self):
        said = json.loads(subprocess.check_output(self.exec + ["-j", "list", "table", "netdev", "fw"]))
        rules = [item["rule"] for item in said["nftables"] if "rule" in item]
        return {r["comment"]: next(e["counter"]["packets"] for e in r["expr"] if "counter" in e)
                for r in rules}

    def end(self):
        subprocess.check_call(self.exec + ["delete", "table", "netdev", "fw"])


class Raw:
    def __init__(self, pinwheel, namespace, rules):
        self.file = tempfile.NamedTemporaryFile("w+", suffix=".rules")
        for name, ours, _, action in rules:
            self.file.write(f"set {name} {action} {{\n" + "".join(f"    {x}\n" for x in ours) + "}\n")
        self.file.flush()
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, pinwheel, "raw", "run", "--iface", "veth", "--rules",
             self.file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stderr.readline()
        if " sets" not in first:
            sys.exit(f"verdicts.py: {first}{self.process.stderr.read()}")

    def counts(self):
        self.process.send_signal(signal.SIGUSR1)
        counts = {}
        while (line := self.process.stdout.readline()).startswith("set "):
            counts[line.split()[1][:-1]] = int(line.split("frames ")[1].split(",")[0])
        return counts

    def end(self):
        self.process.terminate()
        self.process.communicate()


def main():
    pinwheel, a, b = sys.argv[1:4]
    tables, count = int(sys.argv[4]), int(sys.argv[5])
    dice = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
    wire = Wire(a, b)
    sent = passed = liars = differences = 0
    for number in range(tables):
        rules = list(table(dice))
        frames = [frame(dice, n) for n in range(count)]
        honest = [data for data, lies in frames if not lies]
        lying = [data for data, lies in frames if lies]
        results, counts = [], []
        for side in (lambda: Nft(b, rules), lambda: Raw(pinwheel, b, rules)):
            s = side()
            through = wire.send(honest)
            c = s.counts()
            c.pop("mark")
            counts.append(c)
            wire.send(lying)
            s.end()
            results.append(through)
        for n in sorted(results[0] ^ results[1]):
            differences += 1
            if differences <= 5:
                print(f"table {number}, frame {n}: {'nft' if n in results[0] else 'pinwheel'} passes "
                      f"it: {frames[n][0].hex()}")
        if counts[0] != counts[1]:
            differences += 1
            print(f"table {number}: counts differ: nft {counts[0]}, pinwheel {counts[1]}")
        sent += len(frames)
        passed += len(results[1])
        liars += len(lying)
    print(f"{sent} frames, {tables} tables: {passed} passed, {sent - passed - liars} dropped, {liars} "
          f"with lengths that lie; {differences} differences")
    return 1 if differences or passed < sent // 10 or passed > sent * 9 // 10 else 0


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    sys.exit(main())
