#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks handlers and the kernel beside them by scapy, and lets scapy check each answer.

scapy_ask.py INTERFACE MAC FROM TO
"""
import random
import sys

from scapy.all import (ARP, ICMP, IP, UDP, Dot1Q, Ether, IPOption_NOP, Raw, conf, fragment, raw,
                       srp)

iface, mac, source, target = sys.argv[1:]
conf.verb = 0
rng = random.Random(7)


def with_data(packet):
    data = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 7, 56, 500, 1400])))
    return packet / Raw(data) if data else packet


def ask(packets):
    """All are answered, and scapy calls each an answer to its question."""
    answered, left = srp(packets, iface=iface, timeout=20, retry=5)
    assert not left and len(answered) == len(packets), f"{len(left)} of {len(packets)} unanswered"
    for question, answer in answered:
        assert answer.src == mac and answer.answers(question), answer.summary()
    return answered


def right(answer, *layers):
    """Checksums and lengths are what scapy computes for them."""
    again = answer.copy()
    for layer in layers:
        for field in ("chksum", "len"):
            if field in again[layer].fields and not (layer is UDP and answer[UDP].chksum == 0):
                delattr(again[layer], field)
    assert raw(again) == raw(answer), f"{raw(answer).hex()} instead of {raw(again).hex()}"


def head(**fields):
    return Ether(dst=mac) / IP(src=source, dst=target, ttl=rng.randrange(2, 255),
                               id=rng.randrange(65536), tos=rng.randrange(0, 256, 4), **fields)


def payload_of(packet, layer):
    return bytes(packet[layer].payload)[:packet[IP].len - 28]


pings = [with_data(head() / ICMP(id=rng.randrange(65536), seq=n)) for n in range(200)]
for question, answer in ask(pings):
    assert answer[ICMP].type == 0 and answer[ICMP].id == question[ICMP].id
    assert payload_of(answer, ICMP) == bytes(question[ICMP].payload)
    right(answer, IP, ICMP)

echoes = [with_data(head() / UDP(sport=20000 + n, dport=7)) for n in range(200)]
for question, answer in ask(echoes):
    assert (answer[UDP].sport, answer[UDP].dport) == (7, question[UDP].sport)
    assert payload_of(answer, UDP) == bytes(question[UDP].payload)
    right(answer, IP, UDP)

# what is the kernel's is answered by the kernel: ARP, options, fragments, a tag of priority
ask([Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=source, pdst=target)])
ask([head(options=[IPOption_NOP()] * 4) / ICMP(id=1, seq=n) / Raw(b"options") for n in range(3)])
whole = head() / ICMP(id=2, seq=9) / Raw(bytes(1200))
parts = [p.__class__(raw(p)) for p in fragment(whole, fragsize=400)]
assert len(parts) == 4
answered, _ = srp(parts, iface=iface, timeout=20, multi=False)
assert len(answered) == 1 and payload_of(answered[0][1], ICMP) == bytes(1200)
print(f"{len(pings)} pings, {len(echoes)} datagrams")
