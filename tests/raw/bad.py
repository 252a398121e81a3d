#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bad frames, bad images and too much of both, for bad.sh and flood.sh; standard library only.

bad.py lengths FILE          frames of lengths from 14 to 9018
bad.py swapped FILE ANSWERS  each came back, with its addresses exchanged
bad.py flows FILE            100,000 messages that never end
bad.py images ELF FOLDER COMMAND...    images with wild headers; none ends the command by a signal
bad.py flood HOST COUNT      datagrams to port 7
bad.py spread HOST           one message from many ports
"""
import os
import socket
import struct
import subprocess
import sys


def write_file(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for when, frame in frames:
            file.write(struct.pack("<IIII", when // 10**9, when % 10**9, len(frame), len(frame)))
            file.write(frame)


def read_file(path):
    with open(path, "rb") as file:
        file.read(24)
        while head := file.read(16):
            yield file.read(struct.unpack("<IIII", head)[2])


def frame_of(length):
    return (bytes(range(12)) + bytes((length + i) & 255 for i in range(9100)))[:length]


LENGTHS = list(range(14, 1600)) + list(range(1600, 9000, 13)) + list(range(9000, 9019))


def lengths(path):
    write_file(path, ((n, frame_of(n)) for n in LENGTHS))


def swapped(path, answers):
    expected = [f[6:12] + f[:6] + f[12:] for f in read_file(path)]
    found = list(read_file(answers))
    assert len(found) == len(expected) == len(LENGTHS) == 2175, len(found)
    for a, b in zip(found, expected):
        assert a == b, f"{len(b)} bytes"


def slmp(number, flags, src, size=4):
    udp = struct.pack("!HHHH", 5000, 9330, 18 + size, 0) + struct.pack("!HII", flags, number, 0) + \
        bytes(size)
    return bytes(12) + b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + \
        struct.pack("!II", src, 0x0a000002) + udp


def flows(path):
    """As many senders, one id; a second later one more, when all others are old."""
    def frames():
        for n in range(100000):
            yield n * 1000, slmp(1, 0, 0x0a000000 + n)
        yield 10**10, slmp(2, 0x8000, 1)
    write_file(path, frames())


def images(elf, folder, *command):
    """Each word of the file's header and of its program headers, with wild values."""
    with open(elf, "rb") as file:
        data = file.read()
    wide = data[4] == 2
    at, size, count = struct.unpack("<I", data[28:32])[0], 32, data[44]
    places = list(range(16, 52, 4))
    places += [p for i in range(count) for p in range(at + i * size, at + (i + 1) * size, 4)]
    if wide:
        places = []  # of this machine: all that is looked at is that its segments are there
    tried = refused = 0
    for place in places:
        was = struct.unpack("<I", data[place:place + 4])[0]
        for value in (0, 1, was + 0x1000, was - 4, len(data), 0x7fffffff, 0x80000000, 0xffffffff):
            value &= 0xffffffff
            if value == was:
                continue
            path = os.path.join(folder, "wild")
            with open(path, "wb") as file:
                file.write(data[:place] + struct.pack("<I", value) + data[place + 4:])
            done = subprocess.run([*command, "--image", path], capture_output=True, text=True,
                                  timeout=120, check=False)
            assert done.returncode in (0, 1), \
                f"word {place} = {value:#x}: {done.returncode}: {done.stderr}"
            assert done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr
            tried += 1
            refused += done.returncode
    for cut in list(range(0, 64, 7)) + list(range(64, len(data), len(data) // 17)):
        path = os.path.join(folder, "cut")
        with open(path, "wb") as file:
            file.write(data[:cut])
        done = subprocess.run([*command, "--image", path], capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode in (0, 1), f"cut at {cut}: {done.returncode}: {done.stderr}"
        refused += done.returncode
    assert refused > 5
    assert wide or refused > tried // 4
    print(f"{tried} wild images, {refused} refused")


def flood(host, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for _ in range(int(count)):
            udp.sendto(b"x" * 20, (host, 7))


def spread(host):
    """One message, each of whose frames is of another flow; the last when the others have come."""
    counts = []
    for message in range(20):
        seen = []
        for number in range(33):
            flags = 0x8000 if number == 32 else 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.settimeout(60)
                udp.sendto(struct.pack("!HIII", flags, message, 0, 0), (host, 9330))
                seen.append(struct.unpack("!I", udp.recv(100)[10:14])[0])
        assert seen == list(range(1, 34)), f"message {message}: {seen}"
        counts += seen
    print(f"{len(counts)} frames of 20 messages")


globals()[sys.argv[1]](*sys.argv[2:])
