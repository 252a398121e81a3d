# SPDX-License-Identifier: BSD-3-Clause
"""`pinwheel hpu gdb` under GDB itself, and under a client that keeps to no rule.

    check_gdb.py PINWHEEL FOLDER WORK    FOLDER is tests/hpu, WORK a folder to write to

GDB (gdb-multiarch) runs in batches: what a user types, and the lines that must come of it.
The client speaks the protocol by itself: each step of a handler against `pinwheel hpu trace`,
Ctrl-C, and packets that are none.
"""

import json
import os
import re
import socket
import subprocess
import sys

PINWHEEL, FOLDER, WORK = sys.argv[1:4]
SOURCE = os.path.join(FOLDER, "handler.c")
IMAGE = os.path.join(WORK, "handler.elf")


def fail(text):
    sys.exit("check_gdb.py: " + text)


def build():
    os.makedirs(WORK, exist_ok=True)
    subprocess.run(
        ["riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32", "-mno-strict-align",
         "-Og", "-g", "-ffreestanding", "-nostdlib", "-Wl,-Ttext=0x1d000000",
         "-Wl,--build-id=none", "-Wl,-e,handler", SOURCE, "-o", IMAGE], check=True)
    with open(os.path.join(WORK, "packet"), "wb") as file:
        file.write(b"\6\0\0\0" * 16)


def server(function, *options):
    return [PINWHEEL, "hpu", "gdb", "--function", function, "--packet",
            os.path.join(WORK, "packet"), *options, IMAGE]


def line_of(text):
    with open(SOURCE, encoding="ascii") as file:
        return 1 + next(n for n, line in enumerate(file) if text in line)


# ---- GDB ----

def gdb(function, commands, expected, where=None):
    """A session; expected are regular expressions of lines, in this order."""
    target = where or "| " + " ".join(server(function))
    script = os.path.join(WORK, function + ".gdb")
    with open(script, "w", encoding="ascii") as file:
        file.write("set pagination off\nset confirm off\nset width 0\nset remotetimeout 300\n"
                   f"target remote {target}\n" + "\n".join(commands) + "\n")
    done = subprocess.run(["gdb-multiarch", "-nx", "-batch", "-x", script, IMAGE],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          check=False)
    output = done.stdout.decode()
    lines = iter(output.splitlines())
    for pattern in expected:
        if not any(re.search(pattern, line) for line in lines):
            fail(f"{function}: no line like {pattern!r}, in its place, of:\n{output}")


def test_steps():
    body, total = line_of("s += words[i] / 3"), line_of("return sum(words, count) +")
    gdb("handler",
        ["info registers sp a1 cycle instret", "break sum", "continue", "info args", "backtrace",
         f"tbreak {body}", "continue", "print words[i]", "set var words[0]=30", "next", "print s",
         "x/2wx words", "stepi", "delete", "finish", "monitor cycles", "monitor where",
         "monitor regions", "monitor dance", "set var $before = $instret", "stepi",
         "print $instret - $before", "continue"],
        [r"^handler \(packet=0x10004000, bytes=64, state=0x10010000\)",
         r"^sp +0x10001000", r"^a1 +0x40", r"^cycle +0x0", r"^instret +0x0",
         r"^Breakpoint 1, sum \(words=", r"^count = 16",
         r"^#1 .* both \(words=0x10004000, count=16\)", r"^#2 .* handler \(",
         rf"handler\.c:{body}", r"^\$1 = 6", r"^\$2 = 10", "^0x10004000:\t0x0000001e\t0x00000006",
         rf"^{total}\t", r"^Value returned is \$3 = 40$",
         r"^cycles        \d+ of at most 100000000", r"^instructions  \d+$", r"both\+0x10 ",
         r"^10004000      64 bytes  rw  packet", r"^monitor cycles",
         r"^\$4 = 1$", r"^returned 0x00000040$", r"^\d+ instructions, \d+ cycles$",
         r"exited normally"])


def test_watchpoints():
    gdb("handler",
        ["watch *(unsigned *)0x10010000", "continue", "continue", "continue"],
        [r"^Hardware watchpoint 1:", r"^Old value = 0$", r"^New value = 48$",
         r"handler\.c:\d+", r"^returned 0x00000030"])
    gdb("handler",
        ["rwatch *(unsigned *)0x10004008", "continue", "info registers a4", "delete", "awatch "
         "*(unsigned *)0x10010000", "continue", "continue", "continue"],
        [r"^Hardware read watchpoint 1:", r"^Value = 6$", r"^Hardware access \(read/write\)",
         r"^Value = 0$", r"^New value = 48$", r"exited normally"])


def test_changes():
    """Registers, jumps, calls, and memory that is not the program's."""
    gdb("handler",
        ["print sum((unsigned *)0x10004000, 3)", "print both((unsigned *)0x10004000, 4)",
         "print $a0 = 77", "info registers a0", "set $pc = &spin", "x/i $pc", "set $pc = &handler",
         "set $a0 = 0x10004000", "continue"],
        [r"^\$1 = 6$", r"^\$2 = 12$", r"^\$3 = 77$", r"^a0 +0x4d", r"<spin>:",
         r"^returned 0x00000030"])
    gdb("handler", ["set *(int *)0x1d000000 = 5"], ["Cannot access memory at address 0x1d000000"])
    gdb("handler", ["print *(int *)0x20000000"], ["Cannot access memory at address 0x20000000"])
    gdb("handler", ["set *(char *)0x10004040 = 5"], ["Cannot access memory at address 0x10004040"])


def test_faults():
    stray = line_of("beyond any packet")
    gdb("stray", ["continue", "backtrace", "info registers cycle", "continue"],
        [r"^SEGV: may not load 4 bytes at 0x10014000;", r"received signal SIGSEGV",
         rf"^#0 .* stray \(.*handler\.c:{stray}$", r"^Program terminated with signal SIGSEGV"])
    gdb("deep", ["continue", "frame 2", "print n >= 0"],
        [r"^SEGV: stack overflow", r"received signal SIGSEGV", r"^#2 .* deep \(", r"^\$1 = 1"])
    # Where control left the code there is no frame: the one that it left is shown.
    gdb("nowhere", ["continue", "backtrace", "info registers pc ra", "continue"],
        [r"^SEGV: control left the code; pc 0x00000000, from 0x1d0", r"received signal SIGSEGV",
         rf"^#0 .* through \(f=.*0x0.*handler\.c:{line_of('a pointer to nowhere')}$",
         r"^#1 .* nowhere \(", r"^pc .*<through\+", r"^Program terminated with signal SIGSEGV"])
    gdb("smashed", ["continue", "backtrace"],
        [r"^SEGV: control left the code; pc 0x12345678", r"received signal SIGSEGV",
         rf"^#0 .* smashed \(\) .*handler\.c:{line_of('what an overflow leaves')}$"])
    gdb("illegal", ["continue", "kill"],
        [r"^SEGV: illegal instruction", r"received signal SIGILL", r"killed"])
    gdb("trap", ["continue", "print $pc = $pc + 2", "continue"],
        [r"^SEGV: ebreak", r"received signal SIGTRAP", r"^returned "])
    gdb("call", ["continue"], [r"^SEGV: ecall", r"received signal SIGSYS"])
    gdb("spin", ["continue", "continue"],
        [r"^TIMEOUT", r"received signal SIGXCPU", r"terminated with signal SIGXCPU"],
        "| " + " ".join(server("spin", "--budget", "100000")))
    gdb("handler", ["detach"], [r"^\[Inferior 1 .* detached\]"])


def test_sockets():
    path = os.path.join(WORK, "gdb.socket")
    for where in (path, "0"):
        with subprocess.Popen(server("handler", "--listen", where), stderr=subprocess.PIPE) as stub:
            target = re.match(rb"in GDB: target remote (.*)", stub.stderr.readline())[1].decode()
            gdb("handler", ["continue"], [r"^returned 0x00000030"], target)
            if stub.wait(timeout=300) != 0:
                fail(f"--listen {where}: status {stub.returncode}")
    # GDB may be gone before it reads from a pipe how a handler that it has left ends.
    with subprocess.Popen(server("handler", "--listen", path), stderr=subprocess.PIPE) as stub:
        stub.stderr.readline()
        gdb("handler", ["detach"], [r"^\[Inferior 1 .* detached\]"], path)
        text = stub.stderr.read().decode()
        if "returned 0x00000030" not in text:
            fail(f"after detach: {text}")
    if os.path.exists(path):
        fail("the socket is still there")
    for where, why in (("70000", "must be a port"), (WORK + "/" + 200 * "x", "too long"),
                       ("/nowhere/s", "No such file"), (IMAGE, "in use")):
        done = subprocess.run(server("handler", "--listen", where), stderr=subprocess.PIPE,
                              timeout=300, check=False)
        if done.returncode != 1 or why not in done.stderr.decode():
            fail(f"--listen {where}: {done}")


# ---- A client of our own ----

class Client:
    def __init__(self, function, *options):
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(300)
        with theirs:
            self.stub = subprocess.Popen(server(function, *options), stdin=theirs, stdout=theirs,
                                         stderr=subprocess.DEVNULL)
        self.stream = self.ours.makefile("rb")

    def send(self, data):
        self.ours.sendall(b"$%s#%02x" % (data, sum(data) % 256))

    def receive(self):
        """The next packet; None at the end."""
        byte = self.stream.read(1)
        while byte in (b"+", b"-"):
            byte = self.stream.read(1)
        if byte == b"":
            return None
        data = b""
        while (byte := self.stream.read(1)) != b"#":
            data += byte
        if int(self.stream.read(2), 16) != sum(data) % 256:
            fail(f"wrong sum of {data}")
        return data

    def ask(self, data):
        self.send(data)
        return self.receive()

    def end(self):
        self.stream.close()
        self.ours.close()
        return self.stub.wait(timeout=300)


def word(data):
    return int.from_bytes(bytes.fromhex(data.decode()), "little")


def test_every_step():
    """Stepping sees the pcs and cycles that a trace does, cold and warm."""
    for options in ([], ["--cold"]):
        trace = json.loads(subprocess.run(
            [PINWHEEL, "hpu", "trace", "--json", "--function", "handler", "--packet",
             os.path.join(WORK, "packet"), *options, IMAGE], check=True,
            stdout=subprocess.PIPE).stdout)
        client = Client("handler", *options)
        for number, step in enumerate(trace["trace"]):
            seen = [word(client.ask(b"p%x" % register)) for register in (32, 33, 35)]
            if seen != [step["pc"], step["cycle"], number]:
                fail(f"step {number} {options}: {seen}, traced {step}")
            stopped = client.ask(b"vCont;s:1")
        told = bytes.fromhex(stopped[1:].decode()).decode()
        if (stopped[:1] != b"O" or client.receive() != b"W00" or
                f"{trace['instructions']} instructions, {trace['cycles']} cycles" not in told):
            fail(f"no end: {stopped} {told}")
        if client.end() != 0:
            fail("status of a handler that returned")


def test_interrupt():
    client = Client("spin", "--budget", "1000000000000")
    client.send(b"c")
    client.ours.sendall(b"\3")
    if client.receive() != b"T02":
        fail("Ctrl-C does not stop it")
    if word(client.ask(b"p21")) == 0:
        fail("it did not run")
    client.send(b"c")
    if client.end() != 0:  # gone while it runs
        fail("status of a handler whose debugger left")


def test_nonsense():
    """Each packet and its answer."""
    client = Client("handler")
    rows = [(b"", b""), (b"?", b"T05"), (b"Hg0", b"OK"), (b"~", b""), (b"vCont?", b"vCont;c;C;s;S;r"),
            (b"vMustReplyEmpty", b""), (b"p", b"E16"), (b"p27", b"E16"), (b"pfffffffff", b"E16"),
            (b"P20", b"E16"), (b"P0=01000000", b"OK"), (b"p0", b"00000000"),
            (b"P21=01000000", b"E16"), (b"Pa=0100", b"E16"), (b"m", b"E16"), (b"m10004000", b"E16"),
            (b"m10004000,4", b"06000000"), (b"m1000403e,8", b"0000"), (b"m10004040,1", b"E0e"),
            (b"mffffffff,8", b"E0e"), (b"M10004000,2:ff0", b"E16"), (b"M10004000,1:fe", b"OK"),
            (b"m10004000,1", b"fe"), (b"M1000403f,2:0102", b"E0e"), (b"M1d000000,1:00", b"E0e"),
            (b"X10004000,3:a}\x03b", b"OK"), (b"m10004000,3", b"612362"),
            (b"X10004000,9:a", b"E16"), (b"Mffffffff,ffffffff:", b"E16"), (b"Z0,1d000000,4", b"OK"),
            (b"Z0,1d000001,4", b"E0e"), (b"Z5,1d000000,4", b""), (b"Z0,", b"E16"),
            (b"Z2,10004000,0", b"E0e"), (b"z2,10004000,4", b"OK"), (b"z0,1d000000,4", b"OK"),
            (b"vCont;", b"E16"), (b"vCont;r1,", b"E16"), (b"cxyz", b"E16"),
            (b"qRcmd,6", b"6d6f6e"), (b"qRcmd," + 200 * b"61", b"E16"), (b"qRcmd,zz", b"E16"),
            (b"qXfer:features:read:target.xml:0,5", b"m<?xml"),
            (b"qXfer:features:read:target.xml:ffffff,5", b"l"),
            (b"qXfer:features:read:other.xml:0,5", b""), (6000 * b"m", b""),
            (b"QStartNoAckMode", b"OK")]
    for packet, answer in rows:
        got = client.ask(packet)
        if got != answer and not (packet == b"qRcmd,6" and got.startswith(answer)):
            fail(f"{packet[:60]}: {got}, not {answer}")
    for address in range(16):
        if client.ask(b"Z2,%x,4" % (0x10004000 + 4 * address)) != b"OK":
            fail("fewer than 16 watchpoints")
    if client.ask(b"Z2,10005000,4") != b"E0e":
        fail("a watchpoint too many")
    # Cut, with a wrong sum, without any: the next good one is answered.
    client.ours.sendall(b"$m10004000,4$m1#00$m1#zz%%$p0#a0")
    if client.receive() != b"00000000":
        fail("lost its way")
    client.send(b"k")
    if client.end() != 0:
        fail("status of a handler that was killed")


build()
test_steps()
test_watchpoints()
test_changes()
test_faults()
test_sockets()
test_every_step()
test_interrupt()
test_nonsense()
