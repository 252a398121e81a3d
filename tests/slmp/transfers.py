# SPDX-License-Identifier: BSD-3-Clause
"""`pinwheel slmp send` and `recv` with each other, with the plain peer of plain_peer.py as
sender and as receiver, over a relay that loses, repeats and mixes packets, and when things
go wrong. Usage: transfers.py PINWHEEL"""
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import plain_peer
from commands import (LIMIT, PINWHEEL, Receiving, must, run_tests, same, sending, some_bytes,
                      write)
from relay import Relay


def test_session():
    for size in (0, 1, 5000, 9000000):
        data = some_bytes(size)
        write("in", data)
        r = Receiving("out")
        sent, _ = sending(r.port, "in", *(["--packet", "4000"] if size == 5000 else []))
        received, _ = r.end()
        same("out", data)
        must(sent["verified"] and received["verified"] and not sent["plain"], sent)
        must(sent["crc32c"] == received["crc32c"] and sent["bytes"] == size, sent, received)


def test_crc_is_castagnoli():
    write("in", b"123456789")
    r = Receiving("out")
    sent, _ = sending(r.port, "in")
    r.end()
    must(sent["crc32c"] == "e3069283", sent)


def test_bad_network():
    data = some_bytes(3000000, 2)
    write("in", data)
    for seed, chances in enumerate(((1, 0, 0), (10, 0, 0), (5, 5, 10))):
        r = Receiving("out")
        relay = Relay(r.port, *chances, seed)
        relay.start()
        sent, _ = sending(relay.port, "in")
        r.end()
        relay.stop()
        same("out", data)
        must(relay.lost > 0 and sent["retransmitted"] > 0, sent)


def write_key(path, seed, mode=0o600):
    write(path, some_bytes(32, seed))
    os.chmod(path, mode)


def test_job_key():
    data = some_bytes(2000000, 9)
    write("in", data)
    write_key("key", 1)
    write_key("other", 2)
    write_key("open", 3, 0o644)
    r = Receiving("out", "--key-file", "key")
    sent, _ = sending(r.port, "in", "--key-file", "key")
    received, _ = r.end()
    same("out", data)
    must(sent["verified"] and received["forged"] + received["replayed"] == 0, received)
    r = Receiving("again", "--key-file", "key")
    relay = Relay(r.port, 0, 0, 0, 4) # who forwards it is not whom it was sent to
    relay.start()
    sending(relay.port, "in", "--key-file", "key", "--silence", "0.5", status=1)
    relay.stop()
    for options, text in ((("--key-file", "other"), "another job key, or none"),
                          ((), "no answer"),
                          (("--key-file", "open"), "open: has mode 0644"),
                          (("--key-file", "nokey"), "nokey: the job key cannot be read"),
                          (("--key-file", "in"), "in: has mode"),
                          (("--key-file", "key", "--plain"), "plain SLMP knows no job key")):
        _, err = sending(r.port, "in", "--silence", "0.5", *options, status=1)
        must(text in err, err)
    must(not os.path.exists("again"), "something was written")
    os.environ["PINWHEEL_JOB_KEY_FILE"] = "key"
    try:
        sent, _ = sending(r.port, "in")
        r.end()
        same("again", data)
    finally:
        del os.environ["PINWHEEL_JOB_KEY_FILE"]
    _, err = sending(9, "in", "--silence", "0.5", status=1,
                     before=("env", "PINWHEEL_JOB_KEYFILE=key"))
    must("warning: PINWHEEL_JOB_KEYFILE is no option; did you mean PINWHEEL_JOB_KEY_FILE?" in err,
         err)


def test_we_send_plain():
    data = some_bytes(700000, 3)
    write("in", data)
    for lose, options in ((0, ()), (10, ()), (5, ("--window", "1")), (0, ("--packet", "200"))):
        peer = plain_peer.Receiver(lose)
        result = {}
        thread = threading.Thread(target=lambda: result.update(data=peer.receive()))
        thread.start()
        if options == ("--window", "1"):
            write("in", data[:100000])
        sent, _ = sending(peer.port, "in", "--plain", *options)
        write("in", data)
        thread.join(LIMIT)
        must(result.get("data") == data[:sent["bytes"]], "other bytes")
        must(peer.flags == {plain_peer.SYN, plain_peer.SYN | plain_peer.EOM}, peer.flags)
        must(len(peer.ids) == 1 and sent["plain"] and not sent["verified"], sent)
        peer.close()


def test_we_send_unacknowledged():
    data = some_bytes(300000, 4)
    write("in", data)
    peer = plain_peer.Receiver()
    result = {}
    thread = threading.Thread(target=lambda: result.update(data=peer.receive()))
    thread.start()
    sent, _ = sending(peer.port, "in", "--plain", "--gap", "500")
    thread.join(LIMIT)
    must(result.get("data") == data, "other bytes")
    must(peer.flags == {0, plain_peer.EOM}, peer.flags)
    packets = (len(data) + 1461) // 1462
    must(sent["seconds"] >= (packets - 1) * 500e-6, sent)
    peer.close()


def test_we_receive_plain():
    data = some_bytes(500000, 5)
    for i, options in enumerate(({}, {"window": 1}, {"shuffle": 30}, {"syn": "ends"},
                                 {"lose": 10}, {"twice": 30, "lose": 5, "shuffle": 8})):
        for mode in ((), ("--plain",)):
            r = Receiving("out", *mode)
            flags = plain_peer.send(r.port, data, message=i + 1, **options)
            received, _ = r.end()
            same("out", data)
            must(received["plain"] and received["bytes"] == len(data), received)
            must(all(f & plain_peer.ACK for f in flags), flags)


def test_we_receive_unacknowledged():
    data = some_bytes(20000, 6)
    r = Receiving("out")
    plain_peer.send(r.port, data, syn="none")
    r.end()
    same("out", data)


def test_plain_peer_needs_plain():
    write("in", some_bytes(1000))
    peer = plain_peer.Receiver()
    thread = threading.Thread(target=lambda: _ignore(peer.receive))
    peer.socket.settimeout(5)
    thread.start()
    _, err = sending(peer.port, "in", status=1)
    must("plain SLMP only; use --plain" in err, err)
    thread.join()
    must(not peer.data, "a plain peer got bytes of a session")
    peer.close()


def _ignore(call):
    try:
        call()
    except socket.timeout:
        pass


def test_garbage_costs_a_counter():
    data = some_bytes(200000, 7)
    write("in", data)
    r = Receiving("out")
    noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    chance = random.Random(8)
    for i in range(2000):
        packet = chance.randbytes(chance.choice((0, 1, 9, 10, 11, 34, 42, 44, 60, 1472)))
        if len(packet) > 2: # neither data nor the beginning of a plain message
            packet = bytes((packet[0] | 0x20, packet[1])) + packet[2:]
        noise.sendto(packet, ("127.0.0.1", r.port))
        if i == 1000:
            time.sleep(0.05)
    sending(r.port, "in")
    r.end()
    same("out", data)
    noise.close()


def test_errors():
    write("in", b"x")
    r = Receiving("out", "--wait", "3")
    taken = subprocess.run([PINWHEEL, "slmp", "recv", "--port", str(r.port), "x"],
                           capture_output=True, text=True, timeout=LIMIT)
    must(taken.returncode == 1 and "another process has the port" in taken.stderr, taken.stderr)
    _, err = r.end(1)
    must("no sender came within 3 s" in err, err)
    must(not os.path.exists("out") and not os.path.exists("x"), os.listdir())
    _, err = sending(r.port, "in", status=1)
    must("nobody listens at 127.0.0.1:%d" % r.port in err, err)
    must("start `pinwheel slmp recv FILE` there" in err, err)
    must(r.where == "127.0.0.1, this host only; --address 0.0.0.0 for all interfaces", r.where)
    r = Receiving("out", "--wait", "0.1", "--address", "0.0.0.0")
    must(r.where == "0.0.0.0, all interfaces", r.where)
    r.end(1)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    _, err = sending(silent.getsockname()[1], "in", "--silence", "0.5", status=1)
    must("no answer from" in err and "within 0.5 s" in err, err)
    silent.close()
    _, err = sending(9, "nothing", status=1)
    must("nothing: No such file" in err, err)
    for command, status, text in (
            (("recv", "/proc/x"), 1, "/proc/x: cannot be written"),
            (("recv", "."), 1, "cannot be written: exists and is no regular file"),
            (("recv", "--address", "192.0.2.1", "x"), 1, "no interface of this machine has it"),
            (("send", "127.0.0.1", "/dev"), 1, "no regular file"),
            (("send", "no.such.host.invalid", "in"), 1, "needed is a host name"),
            (("send", "--gap", "5", "127.0.0.1", "in"), 2, "--plain"),
            (("send", "127.0.0.1"), 2, "takes a host and a file"),
            (("send", "--packet", "10", "127.0.0.1", "in"), 2, "from 128 to 65507"),
            (("recv", "--silence", "x", "y"), 2, "must be seconds"),
            (("recv",), 2, "takes one file"),
            (("push",), 2, "send, recv")):
        p = subprocess.run([PINWHEEL, "slmp", *command], capture_output=True, text=True,
                           timeout=LIMIT)
        must(p.returncode == status and text in p.stderr, command, p.returncode, p.stderr)


def test_strangers_are_no_life():
    """A sender falls silent; that others send something to the receiver keeps it not alive."""
    write("in", b"")
    os.truncate("in", 1 << 30) # longer than the relay takes for it while we look
    r = Receiving("out", "--silence", "0.5")
    relay = Relay(r.port, 0, 0, 0, 1)
    relay.start()
    s = subprocess.Popen([PINWHEEL, "slmp", "send", "--port", str(relay.port), "127.0.0.1", "in"],
                         stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + LIMIT / 2
    noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        while not any(os.path.getsize(f) > 0 for f in os.listdir() if f.startswith("out.")):
            must(time.monotonic() < until, "nothing is written")
            time.sleep(0.01)
        s.send_signal(signal.SIGSTOP)
        while r.process.poll() is None:
            must(time.monotonic() < until, "the receiver takes strangers for its sender")
            noise.sendto(bytes(60), ("127.0.0.1", r.port))
            time.sleep(0.05)
    finally:
        r.process.terminate()
        s.kill()
        s.wait()
        relay.stop()
        noise.close()
    _, err = r.end(1)
    must("went away or gave up" in err, err)


def test_who_dies_is_noticed():
    write("in", b"")
    os.truncate("in", 1 << 30) # longer than the relay takes for it while we look
    write("out", b"what was there")
    for victim in ("sender", "receiver"):
        r = Receiving("out", "--silence", "3")
        relay = Relay(r.port, 0, 0, 0, 1)
        relay.start()
        s = subprocess.Popen([PINWHEEL, "slmp", "send", "--silence", "3", "--port",
                              str(relay.port), "127.0.0.1", "in"], stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True)
        until = time.monotonic() + LIMIT
        while not any(os.path.getsize(f) > 0 for f in os.listdir() if f.startswith("out.")):
            must(time.monotonic() < until, "nothing was written")
            time.sleep(0.02)
        if victim == "sender":
            s.kill()
            s.communicate()
            _, err = r.end(1)
            must("went away or gave up after" in err, err)
        else:
            r.process.send_signal(signal.SIGKILL)
            r.process.communicate()
            _, err = s.communicate(timeout=LIMIT)
            must(s.returncode == 1 and "went away or gave up" in err, s.returncode, err)
        relay.stop()
        same("out", b"what was there")
    left = [f for f in os.listdir() if f.startswith("out.")]
    must(len(left) <= 1, left) # of the receiver that was killed


run_tests(globals(), sys.argv[2:])
