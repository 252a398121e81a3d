#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures for telemetry_nic.c, and an exact count of them; standard library only.

telemetry.py make FLOWS FRAMES SEED FILE     flows by Zipf's law, requests and their answers
telemetry.py check FILE JSON                 what telemetry says of the file, against a count
telemetry.py live JSON PINGS                 what it says of pings, and one connection
"""
import bisect
import collections
import ipaddress
import json
import math
import random
import socket
import struct
import sys

from frames import eth, ip, write_file

PROTOCOLS = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp"}


def ip6(proto, payload, src, dst):
    ends = b"".join(socket.inet_pton(socket.AF_INET6, end) for end in (src, dst))
    return struct.pack("!IHBB", 6 << 28, len(payload), proto, 64) + ends + payload


def packet(flow, size, flags=0x10, ident=0, answer=False):
    """A frame of a flow, or of its way back."""
    src, dst, sport, dport, proto = flow
    if answer:
        src, dst, sport, dport = dst, src, dport, sport
    if proto == 6:
        data = struct.pack("!HHIIBBHHH", sport, dport, 1, 2, 0x50, flags, 512, 0, 0) + bytes(size)
    elif proto == 17:
        dns = struct.pack("!HH8x", ident, 0x8000 if answer else 0x100)
        data = struct.pack("!HHHH", sport, dport, 8 + len(dns) + size, 0) + dns + bytes(size)
    else:
        kinds = (8, 0) if proto == 1 else (128, 129)
        data = struct.pack("!BBHI", kinds[answer], 0, 0, ident) + bytes(size)
    if ":" in src:
        return eth(0x86dd, ip6(proto, data, src, dst), pad=False)
    return eth(0x800, ip(proto, data, src=src, dst=dst), pad=False)


def make(flows, frames, seed, path):
    dice = random.Random(seed)
    known = []
    while len(known) < flows:
        v6 = dice.randrange(8) == 0
        ends = [str(ipaddress.ip_address((0xfd << 120 | dice.getrandbits(16)) if v6 else
                                         (10 << 24 | dice.getrandbits(20)))) for _ in range(2)]
        proto = dice.choice([6, 6, 17, 17, 58 if v6 else 1])
        ports = (dice.randrange(1024, 65536), dice.choice([53, 80, 443]))
        ports = ports if proto in (6, 17) else (0, 0)
        known.append((*ends, *ports, proto))
    known = list(dict.fromkeys(known))
    sums, total = [], 0.0
    for rank in range(len(known)):  # Zipf: the k-th flow has 1 / k of the frames of the first
        total += 1 / (rank + 1)
        sums.append(total)
    events, now = [], 10 ** 18
    for number in range(frames):
        now += dice.randrange(2000)
        flow = known[bisect.bisect(sums, dice.random() * total)]
        size = dice.choice([0, 40, 500, 1400])
        asks = flow[4] in (1, 58) or flow[3] == 53 and flow[4] == 17
        if asks or dice.randrange(20) == 0 and flow[4] == 6:
            ident = number % 65536
            events.append((now, packet(flow, size, 2, ident)))
            wait = int(math.exp(dice.gauss(math.log(300e3), 1.0)))  # ns
            if dice.randrange(10) > 0:
                events.append((now + wait, packet(flow, size, 0x12, ident, True)))
        else:
            events.append((now, packet(flow, size)))
        if number % 50 == 0:
            events.append((now, eth(0x806, bytes(28))))
    events.sort(key=lambda e: e[0])
    write_file(path, events)


def times_and_frames(path):
    with open(path, "rb") as file:
        file.read(24)
        while head := file.read(16):
            s, ns, length, _ = struct.unpack("<IIII", head)
            yield s * 10 ** 9 + ns, file.read(length)


def key_of(frame):
    """Flow, and what is behind its network header; None: not IP. The files have no fragments."""
    kind = struct.unpack("!H", frame[12:14])[0]
    if kind == 0x800:
        proto, src, dst = frame[23], frame[26:30], frame[30:34]
        rest = frame[14 + (frame[14] & 15) * 4:]
    elif kind == 0x86dd:
        proto, src, dst, rest = frame[20], frame[22:38], frame[38:54], frame[54:]
    else:
        return None, b""
    ports = struct.unpack("!HH", rest[:4]) if proto in (6, 17) else (0, 0)
    return (str(ipaddress.ip_address(src)), str(ipaddress.ip_address(dst)), *ports, proto), rest


def back(key):
    return key[1], key[0], key[3], key[2], key[4]


class Exact:
    def __init__(self, path):
        self.sums = collections.defaultdict(lambda: [0, 0])
        self.flows = collections.defaultdict(lambda: [0, 0])
        self.latency = {"tcp_handshake": [], "icmp_echo": [], "dns": []}
        asked = {}
        for now, frame in times_and_frames(path):
            key, rest = key_of(frame)
            proto = PROTOCOLS[key[4]] if key else "other"
            for amount in [self.sums["all"], self.sums[proto]] + ([self.flows[key]] if key else []):
                amount[0] += 1
                amount[1] += len(frame)
            for kind, asks, answers, ident in self.kinds(key, rest):
                if asks:
                    asked.setdefault((key, ident), now)
                elif answers and (back(key), ident) in asked:
                    self.latency[kind].append(now - asked.pop((back(key), ident)))

    @staticmethod
    def kinds(key, rest):
        if key is None:
            return
        if key[4] == 6:
            yield "tcp_handshake", rest[13] & 0x12 == 2, rest[13] & 0x12 == 0x12, 0
        elif key[4] == 17:
            yield ("dns", key[3] == 53 and not rest[10] & 0x80, key[2] == 53 and rest[10] & 0x80,
                   rest[8:10])
        else:
            yield "icmp_echo", rest[0] in (8, 128), rest[0] in (0, 129), rest[4:8]


def same(what, found, wanted):
    if found != wanted:
        sys.exit(f"telemetry.py: {what}: {found}, counted exactly {wanted}")


def check_latency(exact, said):
    """Each time is in its bucket, but those of requests that have given their place up."""
    for kind, times in exact.latency.items():
        s = said["latency"][kind]
        assert len(times) > 100, (kind, len(times))
        assert s["given_up"] <= len(times) // 5, s["given_up"]
        same(f"{kind} in buckets", sum(count for _, _, count in s["buckets"]), s["count"])
        for least, end, count in s["buckets"]:
            assert end - least <= max(1, least / 8), (least, end)
            assert count <= sum(least <= t < end for t in times), (kind, least, end, count)
        assert 0 <= len(times) - s["count"] <= s["given_up"], (kind, len(times), s["count"])
        assert s["most_ns"] in times, (kind, s["most_ns"])


def check(path, answer):
    exact = Exact(path)
    with open(answer, encoding="ascii") as file:
        said = json.load(file)
    for name in ["all", "tcp", "udp", "icmp", "other"]:
        same(name, [said[name]["frames"], said[name]["bytes"]], exact.sums[name])
    # the flow table: exact for the frames that it has had room for, and no frame is forgotten
    def key(flow):
        return flow["from"], flow["to"], flow["from_port"], flow["to_port"], flow["protocol"]
    in_table = {key(f): f for f in said["flows"]}
    same("flows twice", len(in_table), len(said["flows"]))
    for i, unit in enumerate(["frames", "bytes"]):
        same(f"{unit} of all", sum(f[unit] for f in said["flows"]) + said["ended"][unit] +
             said["no_room"][unit] + said["other"][unit], said["all"][unit])
    for flow, found in in_table.items():
        if said["flows_ended"] == 0:
            same(f"frames of {flow}", [found["frames"], found["bytes"]], exact.flows[flow])
    # the sketch
    total = said["all"]["bytes"] - said["other"]["bytes"]
    bound = math.e / said["sketch"]["width"] * total
    same("bound", said["sketch"]["bound"], int(bound))
    errors = [f["estimate"] - exact.flows[k][1] for k, f in in_table.items()]
    same("estimates that are too small", sum(e < 0 for e in errors), 0)
    beyond = sum(e > bound for e in errors) / len(errors)
    assert beyond <= math.exp(-said["sketch"]["rows"]), beyond
    # the heaviest: none of those left out is heavier than the least of them
    top = {key(f): f["estimate"] for f in said["top"]}
    least = min(top.values())
    for flow, (_, size) in exact.flows.items():
        assert flow in top or size <= least, (flow, size, least)
    for flow, estimate in top.items():
        assert estimate >= exact.flows[flow][1], flow
    ranks = sorted(exact.flows, key=lambda k: -exact.flows[k][1])[:10]
    same("the ten heaviest that are found", sum(k in top for k in ranks), 10)
    check_latency(exact, said)
    print(f"{said['all']['frames']} frames, {len(exact.flows)} flows, {len(in_table)} in the table; "
          f"errors of the sketch: bound {int(bound)}, most {max(errors)}, not 0 "
          f"{sum(e > 0 for e in errors)}, beyond the bound {beyond:.4f}; no room for {said['no_room']['frames']} frames")


def main():
    if sys.argv[1] == "make":
        make(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3])
    else:
        with open(sys.argv[2], encoding="ascii") as file:
            said = json.load(file)
        same("pings", said["latency"]["icmp_echo"]["count"], int(sys.argv[3]))
        same("handshakes", said["latency"]["tcp_handshake"]["count"], 1)
        same("frames of ICMP", said["icmp"]["frames"], 2 * int(sys.argv[3]))


if __name__ == "__main__":
    main()
