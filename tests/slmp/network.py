# SPDX-License-Identifier: BSD-3-Clause
"""`pinwheel slmp send` and `recv` between two network namespaces, with a third as the router
between them, whose links become narrow, go down and vanish, or with a relay there that
treats packets badly.

    a 10.99.0.1 ──── 10.99.0.2 r 10.99.1.2 ──── 10.99.1.1 b

Usage: network.py PINWHEEL [long]. Ends with 77 where namespaces cannot be made."""
import os
import subprocess
import sys
import threading
import time

from commands import (LIMIT, PINWHEEL, Receiving, must, run_tests, same, sending, some_bytes,
                      write)

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = sys.argv[2:] == ["long"]
NAMES = {n: "pw%d%s" % (os.getpid(), n) for n in "arb"}
B = "10.99.1.1"


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def within(name):
    return ("ip", "netns", "exec", NAMES[name])


def link(name, *words):
    ip("-n", NAMES[name], "link", "set", "dev", *words)


def cable(one, address, other, other_address):
    first, second = one + other, other + one
    ip("link", "add", first, "netns", NAMES[one], "type", "veth", "peer", "name", second,
       "netns", NAMES[other])
    for name, device, where in ((one, first, address), (other, second, other_address)):
        ip("-n", NAMES[name], "address", "add", where + "/24", "dev", device)
        link(name, device, "mtu", "9000", "up")


def route():
    ip("-n", NAMES["a"], "route", "replace", "default", "via", "10.99.0.2")
    ip("-n", NAMES["b"], "route", "replace", "default", "via", "10.99.1.2")


def make_namespaces():
    for name in NAMES.values():
        ip("netns", "add", name)


def build():
    for name in NAMES.values():
        ip("-n", name, "link", "set", "lo", "up")
    cable("a", "10.99.0.1", "r", "10.99.0.2")
    cable("r", "10.99.1.2", "b", B)
    route()
    subprocess.run([*within("r"), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"],
                   check=True)


def remove():
    for name in NAMES.values():
        ip("netns", "delete", name, check=False)


def receiver(*options):
    return Receiving("out", "--address", B, *options, before=within("b"))


def send(port, *options, host=B, status=0):
    return sending(port, "in", *options, host=host, before=within("a"), status=status)


class Sending(threading.Thread):
    """A transfer under way while the test does something to the network."""

    def __init__(self, port, *options, host=B):
        super().__init__(daemon=True)
        self.arguments, self.host, self.result = (port, *options), host, None
        self.start()

    def run(self):
        self.result = send(*self.arguments, host=self.host)

    def end(self):
        self.join(LIMIT)
        must(self.result, "the sender did not end well")
        return self.result[0]


def size_of_part():
    """Bytes of the file that is being written; None when there is none, or none any more."""
    for f in os.listdir():
        try:
            if f.startswith("out."):
                return os.path.getsize(f)
        except FileNotFoundError:
            pass
    return None


def wait_for_part(over):
    """Until a part of the file has been written; False if the transfer is over by then."""
    until = time.monotonic() + LIMIT
    while (size_of_part() or 0) < 4 << 20:
        must(time.monotonic() < until, "nothing was written")
        if over():
            return False
        time.sleep(0.002)
    return True


class Transfer:
    """A transfer in whose middle something can be done. A machine that does all of it while
    we look away gets a longer one."""

    def __init__(self, *options):
        for size in (60, 240, 960):
            write("in", some_bytes(1 << 20) * size)
            self.receiver = receiver()
            self.sender = Sending(self.receiver.port, *options)
            if wait_for_part(self.over):
                return
            os.unlink("out")
        must(False, "every transfer was over before anything could be done to it")

    def over(self):
        if not self.sender.is_alive() and self.sender.result:
            self.receiver.end()
            return True
        return False

    def end(self):
        """The sender's report, when both have ended well."""
        sent = self.sender.end()
        self.receiver.end()
        with open("in", "rb") as f:
            same("out", f.read())
        return sent


def make_key():
    write("key", some_bytes(32))
    os.chmod("key", 0o600)


def test_files():
    make_key()
    for size in (1 << 16, 10 << 20, *((100 << 20,) if LONG else ())):
        data = some_bytes(size)
        write("in", data)
        for options in ((), ("--packet", "8972"), ("--key-file", "key", "--packet", "8972")):
            key = options[:2] if options[:1] == ("--key-file",) else ()
            r = receiver(*key)
            sent, _ = send(r.port, *options)
            r.end()
            same("out", data)
            must(sent["verified"], sent)


def relayed(data, relay_options, *options):
    """A transfer over the relay in the middle. With a job key a receiver that knows its
    address would not listen to what was sent to another."""
    write("in", data)
    key = options[:2] if options[:1] == ("--key-file",) else ()
    r = Receiving("out", "--address", "0.0.0.0", *key, before=within("b"))
    relay = subprocess.Popen([*within("r"), sys.executable, os.path.join(HERE, "relay.py"),
                              "10.99.0.2", B, str(r.port), *relay_options],
                             stdout=subprocess.PIPE, text=True)
    try:
        must(relay.stdout.readline() == "listening\n", "no relay")
        s = Sending(r.port, *options, host="10.99.0.2")
        sent = s.end()
        received, _ = r.end()
    finally:
        relay.kill()
        relay.communicate()
    same("out", data)
    must(sent["verified"], sent)
    return sent, received


def test_bad_relay_and_key():
    make_key()
    _, received = relayed(some_bytes(3 << 20), "5 5 10 2 1".split(), "--key-file", "key")
    must(received["forged"] > 0 and received["replayed"] > 0, received)


def test_bad_relay():
    for size, chances in ((1 << 16, "10 10 20 5"), (3 << 20, "5 5 10 2")):
        for seed in ("1", "2", "3") if LONG else ("1",):
            sent, received = relayed(some_bytes(size), [*chances.split(), seed])
            must(sent["retransmitted"] > 0 and received["duplicates"] > 0, sent, received)
            must(sent["corrupt"] + received["corrupt"] > 0, sent, received)


def test_black_hole():
    """Long packets are lost from some moment on, and nobody says so."""
    sent, _ = relayed(some_bytes(6 << 20), "0 0 0 0 1 1400 200".split(), "--packet", "8972")
    must(sent["shortened"] > 0, sent)


def test_a_link_becomes_narrow():
    """The second link's MTU shrinks: the router says so by ICMP. Then the first's: the
    sender's own interface."""
    for name, device in (("r", "rb"), ("a", "ar")):
        t = Transfer("--packet", "8972")
        link(name, device, "mtu", "1400")
        early = (size_of_part() or 60 << 20) < 30 << 20
        sent = t.end()
        must(sent["narrowed"] > 0 or not early, sent)
        link(name, device, "mtu", "9000")
        for n in NAMES.values():
            ip("-n", n, "route", "flush", "cache")


def test_a_link_goes_down():
    t = Transfer()
    link("a", "ar", "down")
    time.sleep(1)
    link("a", "ar", "up")
    route()
    t.end()


def test_an_interface_vanishes():
    write("in", b"")
    os.truncate("in", 8 << 30) # longer than it takes us to look
    r = receiver("--silence", "2")
    s = subprocess.Popen([*within("a"), PINWHEEL, "slmp", "send", "--silence", "2", "--port",
                          str(r.port), B, "in"], stderr=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, text=True)
    must(wait_for_part(lambda: s.poll() is not None), "the sender has ended")
    ip("-n", NAMES["a"], "link", "delete", "dev", "ar")
    _, err = s.communicate(timeout=LIMIT)
    must(s.returncode == 1 and "went away or gave up" in err, s.returncode, err)
    _, err = r.end(1)
    must("went away or gave up after" in err, err)
    write("in", b"x")
    _, err = send(9, "--silence", "1", status=1)
    must("unreachable" in err, err)
    cable("a", "10.99.0.1", "r", "10.99.0.2")
    route()


def main():
    try:
        make_namespaces()
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        print("skipped: network namespaces cannot be made here (root and iproute2 are "
              "needed): %s" % (getattr(e, "stderr", None) or e))
        return 77
    build()
    run_tests(globals())
    return 0


try:
    STATUS = main()
finally:
    remove()
sys.exit(STATUS)
