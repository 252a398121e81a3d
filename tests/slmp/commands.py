# SPDX-License-Identifier: BSD-3-Clause
"""`pinwheel slmp send` and `recv` as the tests start them; the first argument of the test
is the command."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

PINWHEEL = sys.argv[1]
LIMIT = 120


def must(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


class Receiving:
    """A `pinwheel slmp recv` at a port of its own; `before` stands before the command."""

    def __init__(self, path, *options, before=()):
        self.path = path
        self.process = subprocess.Popen(
            [*before, PINWHEEL, "slmp", "recv", "--port", "0", "--json", *options, path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.match(r"listening at ([0-9.]+):(\d+), (.*)$", line)
        must(found, "recv says", line)
        self.port = int(found.group(2))
        self.where = found.group(1) + ", " + found.group(3)

    def end(self, status=0):
        out, err = self.process.communicate(timeout=LIMIT)
        must(self.process.returncode == status, "recv ended with", self.process.returncode, err)
        return (json.loads(out) if status == 0 else None), err


def sending(port, path, *options, status=0, host="127.0.0.1", before=()):
    p = subprocess.run([*before, PINWHEEL, "slmp", "send", "--json", "--port", str(port),
                        *options, host, path], capture_output=True, text=True, timeout=LIMIT)
    must(p.returncode == status, "send ended with", p.returncode, p.stderr)
    return (json.loads(p.stdout) if status == 0 else None), p.stderr


def some_bytes(count, seed=1):
    return random.Random(seed).randbytes(count)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def same(path, data):
    with open(path, "rb") as f:
        must(f.read() == data, path, "has other bytes")


def run_tests(names, chosen=()):
    """Runs the functions test_* of a module's globals(), each in an empty folder of its own, or
    only those that are chosen."""
    for name, test in sorted(names.items()):
        if not name.startswith("test_") or (chosen and name not in chosen):
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            test()
            os.chdir("/")
        print("%s: %.1f s" % (name, time.monotonic() - begun), flush=True)
