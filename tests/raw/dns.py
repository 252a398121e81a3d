#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks the DNS cache and, at another address, its server the same, and compares every byte but the
id; TTLs of the cache may be less, by the seconds gone by. Standard library only; see dns.sh.

dns.py config FILE           the server's data
dns.py upstream ADDRESS      a server that this one asks
dns.py compare CACHE SERVER LOG ANSWERS    questions for the table; answers go to a file
dns.py hostile CACHE SERVER  what is no plain question
dns.py stopped CACHE ANSWERS PID           while the server is stopped
dns.py expire CACHE LOG      TTLs count down, and end
"""
import os
import pickle
import random
import signal
import socket
import struct
import sys
import time

A, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, ANY = 1, 5, 6, 12, 15, 16, 28, 33, 255
LONG = ".".join(["l" * 63, "m" * 63, "n" * 63, "o" * 40, "test"])
# (name, type) of answers that the server gives twice
KEPT = [("host.test", A), ("host.test", AAAA), ("alias.test", A), ("text.test", TXT),
        ("test", MX), ("_sip._udp.test", SRV), ("9.8.7.10.in-addr.arpa", PTR), (LONG, A),
        ("a.b.c.d.e.f.g.test", A), ("one.up.test", A), ("chain.up.test", A),
        ("none.up.test", A), ("one.up.test", MX)]
# those that are the server's: no TTL, addresses that take turns, too much, no such name
SERVERS = [("turns.test", A), ("zero.up.test", A), ("large.test", TXT), ("missing.test", A),
           ("host.test", TXT), (".", A)]
# how a question may be put: flags, record of EDNS
WAYS = [(0x100, None), (0, None), (0x120, None), (0x110, (1232, 0)), (0x100, (512, 0)),
        (0x100, (4096, 0x8000))]


def name_of(text):
    return b"".join(bytes([len(p)]) + p.encode() for p in text.split(".") if p) + b"\0"


def edns(size, flags, options=b"", version=0):
    return struct.pack("!BHHBBHH", 0, 41, size, 0, version, flags, len(options)) + options


def query(name, kind, flags=0x100, opt=None, ident=None):
    ident = random.randrange(1, 65536) if ident is None else ident
    extra = edns(*opt) if opt is not None else b""
    name = name if isinstance(name, bytes) else name_of(name)
    return struct.pack("!6H", ident, flags, 1, 0, 0, opt is not None) + name + \
        struct.pack("!HH", kind, 1) + extra


def skip_name(data, at):
    while data[at] != 0:
        if data[at] >= 0xc0:
            return at + 2
        at += 1 + data[at]
    return at + 1


def ttls_of(data):
    """Where the TTLs are, but for that of EDNS."""
    at, found = 12, []
    questions, *records = struct.unpack("!4H", data[4:12])
    for _ in range(questions):
        at = skip_name(data, at) + 4
    for _ in range(sum(records)):
        at = skip_name(data, at)
        kind, _, _, length = struct.unpack("!HHIH", data[at:at + 10])
        found += [at + 4] if kind != 41 else []
        at += 10 + length
    return found


def split(data):
    """An answer without id and TTLs, and its TTLs."""
    at, rest, ttls = 2, b"", []
    for ttl in ttls_of(data):
        rest += data[at:ttl]
        ttls += struct.unpack("!I", data[ttl:ttl + 4])
        at = ttl + 4
    return rest + data[at:], ttls


def must_equal(cache, server, spent, what):
    """The cache's answer is the server's; its TTLs are less by the seconds spent at most."""
    (a, fewer), (b, ttls) = split(cache), split(server)
    assert a == b, f"{what}:\n{cache.hex()} instead of\n{server.hex()}"
    for x, y in zip(fewer, ttls):
        assert 0 < x or y == 0, f"{what}: a TTL of {x} instead of {y}"
        assert abs(y - x) <= spent, f"{what}: a TTL of {x} instead of {y}, after {spent} s"


class Asker:
    def __init__(self, host):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((host, 53))
        self.socket.settimeout(1)

    def ask(self, data):
        """Again and again until it is answered: a datagram may be lost."""
        for _ in range(60):
            self.socket.send(data)
            try:
                while True:
                    answer = self.socket.recv(65536)
                    if answer[:2] == data[:2]:
                        return answer
            except socket.timeout:
                pass
        raise AssertionError(f"no answer to {data.hex()}")

    def all_of(self, data):
        """All answers to this. Behind it comes a question that is the server's, which says that
        the server is done, and then another one: what the cache sends leaves after each turn."""
        answers = []
        self.socket.send(data)
        for opt in ((1232, 0, b"\0\x0a\0\x08cookies!"), None):
            last = query("host.test", A, opt=opt)
            self.socket.send(last)
            while (answer := self.socket.recv(65536))[:2] != last[:2]:
                answers.append(answer)
        return answers


def seen(log, what):
    with open(log, encoding="utf-8") as file:
        return sum(1 for line in file if line == f"dns_cache: {what}\n")


def until_more(log, what, before, again):
    """Until the cache has said this once more; the question is asked again meanwhile."""
    for _ in range(600):
        if seen(log, what) > before:
            return
        again()
        time.sleep(0.05)
    raise AssertionError(f"the cache does not say: {what}")


def mixed_case(name, number):
    return "".join(c.upper() if number >> i & 1 else c for i, c in enumerate(name))


def compare(cache, server, log, answers):
    cache, server, begun, kept = Asker(cache), Asker(server), time.monotonic(), []
    for name, kind in KEPT + SERVERS:
        for flags, opt in WAYS:
            what = f"{name} {kind} {flags:x} {opt}"
            first = query(name, kind, flags, opt)
            text = "." if name == "." else f"{name}."
            line = f"{text} type {kind}, {len(first)} bytes"
            line = line if name != "." else f" type {kind}, {len(first)} bytes"
            verb = "learned" if (name, kind) in KEPT else "the server's is"
            if name == "large.test" and opt is not None and opt[0] >= 1232:
                verb = "learned"  # it has room
            before = seen(log, f"{verb} {line}")
            ours, theirs = cache.ask(first), server.ask(first)
            if name != "turns.test":
                must_equal(ours, theirs, time.monotonic() - begun + 2, "first " + what)
            until_more(log, f"{verb} {line}", before, lambda: cache.ask(first))
            # the second case of the letters is learned, too; then any is
            for number in (0, 0x55555, 0xaaaaa, 0xfffff):
                again = query(mixed_case(name, number), kind, flags, opt)
                said = line.replace(text, mixed_case(text, number)) if number == 0x55555 else None
                before = seen(log, f"{verb} {said}")
                ours, theirs = cache.ask(again), server.ask(again)
                if name == "zero.up.test":
                    # of two at once that it has to ask on, the server takes the letters of one
                    ours, theirs = ours.lower(), theirs.lower()
                if name != "turns.test":
                    must_equal(ours, theirs, time.monotonic() - begun + 2, f"again {what} {number}")
                if said is not None and said != line:
                    until_more(log, f"{verb} {said}", before, lambda: cache.ask(again))
                if verb == "learned":
                    kept.append((again, theirs))
    with open(answers, "wb") as file:
        pickle.dump((begun, kept), file)


def hostiles():
    good, rng = query("host.test", A, ident=7), random.Random(4)
    yield from (good[:n] for n in range(len(good)))
    yield good + b"\0"
    yield good + good
    for at in range(2, 12):                     # each bit of the header
        for bit in range(8):
            yield good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:]
    for at in range(12, len(good)):             # bytes of the question
        for byte in (0, 1, 63, 64, 128, 0xc0, 0xff):
            yield good[:at] + bytes([byte]) + good[at + 1:]
    yield query(b"\xc0\x0c", A)                 # points to itself
    yield query(b"\4host\xc0\x0c", A)
    yield query(b"\x3f" + b"x" * 63 + b"\0", A)
    yield query((b"\x3f" + b"x" * 63) * 4 + b"\0", A)      # 257 bytes
    yield query((b"\x3f" + b"x" * 63) * 3 + b"\x3d" + b"x" * 61 + b"\0", A)
    yield query((b"\1x" * 127) + b"\0", A)
    yield query("host.test", ANY)
    yield query("host.test", 252)
    yield query("host.test", 41)
    yield query("host.test", A)[:-1] + b"\3"    # class chaos
    yield query("host.test", A, opt=(1232, 0, b"\0\3\0\0"))
    yield query("host.test", A, opt=(1232, 0, b"", 1))
    yield query("host.test", A, opt=(1232, 0x4000))
    yield query("host.test", A, opt=(0, 0))
    yield query("host.test", A, opt=(1232, 0))[:-1]
    two = query("host.test", A, opt=(1232, 0)) + edns(1232, 0)
    yield two[:11] + b"\2" + two[12:]
    yield good[:2] + b"\x81\x80" + good[4:]     # an answer
    for _ in range(200):
        yield bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
    yield good + bytes(1400)


def hostile(cache, server):
    cache, server = Asker(cache), Asker(server)
    cache.socket.settimeout(30)
    server.socket.settimeout(30)
    answered = total = 0
    for round_ in range(2):
        for data in hostiles():
            ours, theirs = cache.all_of(data), server.all_of(data)
            total += 1
            answered += len(theirs)
            assert len(ours) == len(theirs), f"round {round_}, {data.hex()}: {len(ours)} answers " \
                f"instead of {len(theirs)}"
            for a, b in zip(ours, theirs):
                if len(b) < 12 or split(a)[0] != split(b)[0]:
                    assert a == b, f"{data.hex()}: {a.hex()} instead of {b.hex()}"
    assert 100 < answered < total
    print(f"{total} messages, {answered} of which the server answers")


def stopped(cache, answers, pid):
    """The server is stopped: what is in the table is answered, and all else waits for it."""
    asker = Asker(cache)
    with open(answers, "rb") as file:
        begun, kept = pickle.load(file)
    waits = query("turns.test", A, ident=0)
    asker.socket.send(waits)
    answered = 0
    for again, theirs in kept:
        spent = time.monotonic() - begun
        if min(split(theirs)[1]) < spent + 5:
            continue  # on a busy machine it may have run out by now
        ours = asker.ask(again)
        must_equal(ours, theirs, time.monotonic() - begun + 2, again.hex())
        answered += 1
    assert answered > 0
    os.kill(int(pid), signal.SIGCONT)
    asker.socket.settimeout(30)
    assert asker.socket.recv(65536)[:2] == waits[:2]
    print(f"{answered} answers of {len(kept)} while the server was stopped")


def expire(cache, log):
    """TTLs count down from that of the server, and the server is asked anew at the end."""
    asker, name = Asker(cache), "short.test"
    data = query(name, A)
    line = f"learned {name}. type {A}, {len(data)} bytes"
    found, before = [], seen(log, line)
    until_more(log, line, before, lambda: asker.ask(data))
    while seen(log, line) < before + 2:
        found += split(asker.ask(data))[1]
        time.sleep(0.01)
    assert found[0] <= 3 and found[-1] <= 3 and min(found) > 0, found
    assert {1, 2} <= set(found), found
    falls = [a > b for a, b in zip(found, found[1:])]
    assert any(falls), found


def config(path):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"""no-resolv
no-hosts
bind-interfaces
local=/test/
server=/up.test/127.0.0.9
host-record=host.test,10.7.8.9,fd00::9,1000
host-record=a.b.c.d.e.f.g.test,10.7.8.10,1000
host-record={LONG},10.7.8.11,1000
host-record=target.test,10.7.8.12,1000
host-record=short.test,10.7.8.13,3
host-record=turns.test,10.7.8.14,1000
host-record=turns.test,10.7.8.15,1000
cname=alias.test,target.test,900
txt-record=text.test,some words,"and, more"
txt-record=large.test,{",".join(str(i) * 90 for i in range(10))}
mx-host=test,mail.test,10
srv-host=_sip._udp.test,sip.test,5060,1,2
local-ttl=800
cache-size=1000
""")


def upstream(address):
    """One, two and no records for names below up.test."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((address, 53))
        while True:
            data, peer = udp.recvfrom(4096)
            end = skip_name(data, 12) + 4
            kind = struct.unpack("!H", data[end - 4:end - 2])[0]
            labels = bytes(data[13:13 + data[12]]).lower()
            def record(kind, ttl, rdata, name=b"\xc0\x0c"):
                return name + struct.pack("!HHIH", kind, 1, ttl, len(rdata)) + rdata
            soa = record(SOA, 700, name_of("ns.up.test") + name_of("root.up.test") +
                         struct.pack("!5I", 1, 2, 3, 4, 600), name_of("up.test"))
            code, answer, authority = 0, [], []
            if labels == b"none":
                code, authority = 3, [soa]
            elif kind != A:
                authority = [soa]
            elif labels == b"chain":
                to = name_of("one.up.test")
                answer = [record(CNAME, 900, to), record(A, 600, bytes([10, 9, 8, 7]),
                                                      struct.pack("!H", 0xc000 | end + 12))]
            else:
                answer = [record(A, 0 if labels == b"zero" else 500, bytes([10, 9, 8, 6]))]
            udp.sendto(data[:2] + struct.pack("!5H", 0x8180 | code, 1, len(answer),
                                              len(authority), 0) + data[12:end] +
                       b"".join(answer + authority), peer)


globals()[sys.argv[1]](*sys.argv[2:])
