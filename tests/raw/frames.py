#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames for the tests of `pinwheel raw run`, and what must become of them; standard library only.

frames.py make pings FILE     pings, good and bad, and others: a capture file
frames.py check pings FILE    the answers to them
frames.py make mixed FILE     of many kinds
frames.py make messages FILE  frames of messages
frames.py check messages FILE what handlers/count.c says of them
frames.py serve|ask ...       datagrams and a connection beside the handlers, see live.sh
frames.py sink|source|listen|connect ...  the same, see firewall.sh
"""
import random
import socket
import struct
import subprocess
import sys

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
SIZES = [0, 1, 2, 15, 16, 56, 57, 1000, 1416, 1472, 8900, 8976]


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip(proto, payload, ihl=5, fragment=0, length=None, src="10.0.0.1", dst="10.0.0.2"):
    options = b"\1" * (4 * (ihl - 5)) if ihl > 5 else b""
    total = 20 + len(options) + len(payload) if length is None else length
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, 0, total, 7, fragment, 64, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def eth(kind, payload, tags=b"", pad=True):
    frame = B + A + tags + struct.pack("!H", kind) + payload
    return frame.ljust(60, b"\0") if pad else frame


def ping(number, size, kind=8):
    data = bytes((number + i) & 255 for i in range(size))
    head = struct.pack("!BBHHH", kind, 0, 0, 0x1234, number)
    return head[:2] + struct.pack("!H", checksum(head + data)) + head[4:] + data


def slmp(number, flags, size, sport=5000, src="10.0.0.1"):
    data = struct.pack("!HII", flags, number, 0) + bytes(size)
    udp = struct.pack("!HHHH", sport, 9330, 8 + len(data), 0) + data
    return eth(0x800, ip(17, udp, src=src), pad=False)


def write_file(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for when, frame in frames:
            file.write(struct.pack("<IIII", when // 10**9, when % 10**9, len(frame), len(frame)))
            file.write(frame)


def read_file(path):
    with open(path, "rb") as file:
        magic = struct.unpack("<I", file.read(24)[:4])[0]
        assert magic == 0xa1b23c4d, hex(magic)
        while head := file.read(16):
            length = struct.unpack("<IIII", head)[2]
            yield file.read(length)


def pings():
    """Frames and their answers; None: none."""
    for number, size in enumerate(SIZES):
        answer = A + B + b"\x08\0" + ip(1, ping(number, size, 0), src="10.0.0.2", dst="10.0.0.1")
        yield eth(0x800, ip(1, ping(number, size))), answer
    good = ping(99, 56)
    for bad in [ip(1, good, length=1000), ip(1, good, length=27), ip(1, good, length=0),
                ip(1, good, length=65535), ip(1, good, ihl=6), ip(1, good, ihl=15),
                ip(1, good, fragment=0x2000), ip(1, good, fragment=3), ip(1, ping(1, 56, 0)),
                ip(17, good), b"", b"\x45", ip(1, good)[:21], ip(1, good)[:34]]:
        yield eth(0x800, bad, pad=False), None
        yield eth(0x800, bad), None
    yield eth(0x800, ip(1, good), tags=b"\x81\0\0\5"), None
    yield eth(0x800, ip(1, good), tags=b"\x88\xa8\0\5\x81\0\0\6"), None
    yield eth(0x86dd, b"\x60" + bytes(60)), None
    yield eth(0x806, bytes(46)), None
    yield bytes(9019), None
    yield bytes(13), None


def tcp(flags, sport, dport, src):
    return eth(0x800, ip(6, struct.pack("!HHIIBBHHH", sport, dport, 1, 2, 0x50, flags, 512, 0, 0),
                         src=src))


def mixed():
    """Frames of many kinds that Ethernet carries at an MTU of 9000, for other tools to count."""
    yield from (f for f, _ in pings() if 14 <= len(f) <= 9014)
    yield from (f for _, f in messages()[0])
    for number in range(200):
        src = f"10.0.0.{number % 12}"
        udp = struct.pack("!HHHH", 4000 + number, 9000 + 30 * (number % 20), 8 + number, 0)
        v6 = struct.pack("!IHBB", 6 << 28, 8, 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
        yield tcp(number % 64, 5000, number, src)
        yield eth(0x800, ip(17, udp + bytes(number), src=src))
        yield eth(0x800, ip(1, ping(number, number), src=src), tags=b"\x81\0\0" + bytes([number % 9]))
        if number % 3 == 0:
            yield eth(0x86dd, v6 + struct.pack("!HHHH", 1, 2, 8, 0))
        if number % 7 == 0:
            yield eth(0x806, bytes.fromhex("0001080006040001") + A + bytes(4) + bytes(6) + bytes(4))


def messages():
    """Time, frame; the reports that are expected, in their order."""
    ms, end, frames, now = 10**6, 0x8000, [], 0
    def add(frame, wait=1):
        nonlocal now
        now += wait * ms
        frames.append((now, frame))
    add(slmp(1, 0, 100))                       # two messages with frames between each other's
    add(slmp(2, 0, 50))
    add(slmp(1, 0, 100))
    add(slmp(1, 0, 100, src="10.0.0.9"))       # another sender with the same id
    add(slmp(2, end, 50))                      # report 1: 2 frames
    add(slmp(1, end, 10))                      # report 2: 3 frames
    add(slmp(7, end, 5))                       # report 3: an end without a beginning
    add(slmp(0xdd000000, 0, 5))                # dropped by the header handler,
    add(slmp(0xdd000000, end, 5))              # no report
    add(slmp(0xee000000, end, 5))              # the kernel's
    add(slmp(0xbb000000, end, 5))              # report 4: dropped by the payload handler
    add(slmp(0xff000000, end, 5))              # report 5: it faults
    add(slmp(0xaa000000, end, 5))              # report 6: it runs for ever
    add(slmp(3, 0, 5), wait=5000)              # report 7 before it: the first of 10.0.0.9 is old
    add(slmp(1, end, 10, src="10.0.0.9"))      # report 8: is another message now
    return frames, [(2, 0, 0), (3, 0, 0), (1, 0, 0), (1, 57, 0), (1, 57, 0), (1, 57, 0), (1, 0, 1),
                    (1, 0, 0), (1, 0, 1)]      # the last: 3 never ends


def check_messages(path):
    expected = messages()[1]
    found = []
    for frame in read_file(path):
        assert len(frame) == 64 and frame[12:14] == b"\x88\x88", frame
        said = struct.unpack("!10I", frame[14:54])
        assert said[3] == 0, f"offsets of frames: {said}"
        found.append((said[1], said[4], said[5]))
    assert found == expected, f"{found} instead of {expected}"


def check_pings(path):
    expected = [answer for _, answer in pings() if answer is not None]
    found = list(read_file(path))
    assert len(found) == len(expected), f"{len(found)} answers instead of {len(expected)}"
    for number, (a, b) in enumerate(zip(found, expected)):
        assert a == b, f"answer {number}: {a[:80].hex()} instead of {b[:80].hex()}"


def ask(host):
    """Datagrams to port 7, which only handlers answer; a connection to port 5001 beside it."""
    with socket.create_connection((host, 5001), timeout=20) as tcp, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(20)
        for size in [0, 1, 16, 500, 1416, 1472]:
            data = bytes(i & 255 for i in range(size))
            udp.sendto(data, (host, 7))
            assert udp.recvfrom(2000)[0] == data, f"{size} bytes"
            tcp.sendall(b"x" * 100000)
            left = 100000
            while left > 0:
                left -= len(tcp.recv(left))


def flows(host, count):
    """Bursts of datagrams from several ports, each answered; more at once than a batch has."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for round_ in range(20):
        for number, udp in enumerate(sockets):
            for size in (10, 1400, 8000):
                udp.sendto(bytes([number, round_]) * (size // 2), (host, 7))
        for number, udp in enumerate(sockets):
            udp.settimeout(30)
            got = sorted(len(data) for data in [udp.recv(9000) for _ in range(3)]
                         if data == bytes([number, round_]) * (len(data) // 2))
            assert got == [10, 1400, 8000], f"flow {number}, round {round_}: {got}"


def ask_pings(host, count, size):
    """Sends pings and waits for each answer, however late it is: ping(8) stops two round trips
    after the last one was sent."""
    left = set(range(count))
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.settimeout(60)
        while left:
            # never more on their way than the socket has room for
            while sent < count and sent - (count - len(left)) < 16:
                icmp.sendto(ping(sent, size), (host, 0))
                sent += 1
            answer = icmp.recv(10000)[20:]
            number = struct.unpack("!H", answer[6:8])[0]
            if answer[0] == 0 and answer[4:6] == b"\x12\x34":
                assert answer == ping(number, size, 0), f"answer {number}: {answer.hex()}"
                left.remove(number)  # a second one is an error, too


def flood(host, count, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for number in range(count):
            udp.sendto(struct.pack("!I", number), (host, port))


def echoes(host, port, count):
    """Datagrams of all sizes, each with bytes of its own, a few on their way; each comes back."""
    dice = random.Random(port)
    waiting = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(60)
        for number in range(count + 8):
            if number < count:
                data = struct.pack("!I", number) + dice.randbytes(dice.randrange(1400))
                waiting[number] = data
                udp.sendto(data, (host, port))
            if len(waiting) == 8 or number >= count and waiting:
                answer = udp.recv(2000)
                assert waiting.pop(struct.unpack("!I", answer[:4])[0]) == answer, answer.hex()


def ask_one(host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(30)
        udp.sendto(b"one", (host, 7))
        assert udp.recv(100) == b"one"


def queues():
    """On how many queues of veth a program has redirected frames, by the driver's statistics."""
    text = subprocess.run(["ethtool", "-S", "veth"], capture_output=True, text=True, check=True)
    return sum(1 for line in text.stdout.splitlines()
               if line.strip().startswith("rx_queue_") and "xdp_redirect:" in line
               and int(line.split(":")[1]) > 0)


def serve(ready):
    with socket.create_server(("", 5001)) as server:
        open(ready, "w", encoding="ascii").close()
        tcp, _ = server.accept()
        with tcp:
            while data := tcp.recv(65536):
                tcp.sendall(data)


def sink(port, ready):
    """Takes datagrams until one says how many there were."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
        s.bind(("", port))
        s.settimeout(100)
        open(ready, "w", encoding="ascii").close()
        seen = set()
        while True:
            data, sender = s.recvfrom(64)
            number = struct.unpack("!I", data)[0]
            if number >= 1 << 31:
                break
            seen.add(number)
            if number % 64 == 63:
                s.sendto(data, sender)
    print(f"{len(seen)} datagrams")


def source(to, port, count):
    """Numbered datagrams, to port 9 with one more that says that these were all. No more are on
    their way than queues have room for: the sink answers each 64th."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((to, port))
        s.settimeout(100)
        for number in range(count):
            s.send(struct.pack("!I", number))
            if port == 9 and number % 64 == 63:
                assert struct.unpack("!I", s.recv(64))[0] == number
        if port == 9:
            s.send(struct.pack("!I", 1 << 31))


def listen(port, ready):
    with socket.create_server(("", port)) as server:
        open(ready, "w", encoding="ascii").close()
        connection, _ = server.accept()
        with connection:
            connection.sendall(connection.recv(100))


def connect(to, port, patience):
    with socket.create_connection((to, port), patience) as s:
        s.sendall(b"hello")
        assert s.recv(100) == b"hello"


def main():
    what, which = (sys.argv + [""])[1:3]
    if what == "make":
        write_file(sys.argv[3], messages()[0] if which == "messages" else
                   enumerate(f for f, _ in pings()) if which == "pings" else enumerate(mixed()))
    elif what == "check":
        (check_pings if which == "pings" else check_messages)(sys.argv[3])
    elif what == "ask":
        ask(which)
    elif what == "flows":
        flows(which, int(sys.argv[3]))
    elif what == "pings":
        ask_pings(which, int(sys.argv[3]), int(sys.argv[4]))
    elif what == "flood":
        flood(which, int(sys.argv[3]), int((sys.argv + ["7"])[4]))
    elif what == "echoes":
        echoes(which, int(sys.argv[3]), int(sys.argv[4]))
    elif what == "ask-one":
        ask_one(which)
    elif what == "sink":
        sink(int(which), sys.argv[3])
    elif what == "source":
        source(which, int(sys.argv[3]), int(sys.argv[4]))
    elif what == "listen":
        listen(int(which), sys.argv[3])
    elif what == "connect":
        try:
            connect(which, int(sys.argv[3]), float((sys.argv + ["60"])[4]))
        except OSError as error:
            sys.exit(f"frames.py: connect {which} {sys.argv[3]}: {error}")
    elif what == "queues":
        print(queues())
    else:
        serve(which)


if __name__ == "__main__":
    main()
