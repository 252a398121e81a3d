#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ranks write, in the order of virtual time: lines.py PINWHEEL PROGRAM [RUNS]."""
import json
import os
import re
import resource
import signal
import subprocess
import sys

pinwheel, program = sys.argv[1:3]
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 2
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def command(*arguments, options=(), ranks=4):
    return [pinwheel, "sim", "--timeout", "100", "-n", str(ranks), "--quiet", *options, program,
            *map(str, arguments)]


def run(*arguments, status=0, **how):
    """Both streams of a run go to one pipe."""
    done = subprocess.run(command(*arguments, **how), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    same(f"status of {arguments}", status, done.returncode)
    return done.stdout


def text(*lines):
    return "".join(line + "\n" for line in lines).encode()


def order():
    """Rank r prints after 10 us, and 1 + r ns after that on standard error, three times. Ranks take
    real time in another order."""
    said = []
    for i in range(1, 4):
        for r in range(4):
            begin = i * 10000 + (i - 1) * (1 + r)
            said += [(begin, r, 0, f"step {i} of rank {r}"),
                     (begin + 1 + r, r, 1, f"error {i} of rank {r}")]
    said.sort()
    wanted = text(*(line for *_, line in said))
    for i in range(runs):
        for options in ((), ("-j", "1"), ("-j", "2")):
            same(f"order {options}", wanted, run("order", options=options))
    same("labels", text(*(f"[{r}] {line}" for _, r, _, line in said)),
         run("order", options=("--label",)))
    same("one time", text(*(f"step {i} of rank {r}" for i in range(1, 4) for r in range(4))),
         run("same"))


def whole_lines():
    same("parts", text(*(f"rank {r} begins and ends" for r in (3, 2, 1, 0))), run("parts"))
    same("at the end", text(*(f"rank {r} ends" for r in (3, 2, 1, 0))), run("exits"))
    wanted = text(*(f"rank {r} says" for r in range(4)), "its last line") + b"and half of one"
    found = run("dies", status=137)
    same("dies", wanted, re.sub(rb"pinwheel run: rank 1 was ended [^\n]*\n", b"", found))
    parents = [f"parent of rank {r}{more}" for more in ("", " again") for r in range(4)]
    ends = [line for r in range(4)
            for line in (f"child of rank {r}", f"parent of rank {r} at the end", "shell")]
    same("processes of a rank", text(*parents, *ends), run("child"))


def all_bytes():
    """Binary output, more than pipes hold, to a reader that begins when all has been written to
    them; and to one that goes away, of which the rank that writes hears as over a pipe of its own."""
    for count in (1, 65537, 3000001):
        wanted = bytes(((i * 2654435761) % 2 ** 32 >> 13) % 256 for i in range(count))
        same(f"{count} bytes", True, run("bytes", count) == wanted)
    with subprocess.Popen(command("bytes", 20000000), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as job:
        same("the first bytes", 10, len(job.stdout.read(10)))
        job.stdout.close()
        same("status when nobody reads", 128 + signal.SIGPIPE, job.wait())


def meanwhile():
    """A rank that hangs: what it has printed is shown, and it is named."""
    with subprocess.Popen(command("hangs"), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as job:
        lines = [job.stdout.readline() for _ in range(5)]
        job.send_signal(signal.SIGTERM)
        same("status", 128 + signal.SIGTERM, job.wait())
    same("hangs", [f"rank {r} says\n".encode() for r in range(4)] + [b"rank 0 hangs\n"], lines)


def looks():
    """A line at each look; the same in every run, and whether ranks write themselves changes no
    time. JSON comes behind all."""
    wanted = text(*(f"look {i} of rank {r} at {20000 * (i + 1)}" for i in range(60)
                    for r in range(2)))
    for options in (("-j", "1"), ("-j", "2")):
        same(f"looks {options}", wanted, run("looks", 60, options=options, ranks=2))
    direct = run("looks", 60, options=("--direct",), ranks=2)
    same("direct", sorted(wanted.splitlines()), sorted(direct.splitlines()))
    found = run("looks", 60, options=("--json",), ranks=2)
    same("JSON", (True, 60 * 20000), (found.startswith(wanted), json.loads(found[len(wanted):])["time_ps"]))


def limits():
    """Pipes need descriptors."""
    low = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    done = subprocess.run(command("same", ranks=32), capture_output=True, text=True, preexec_fn=low)
    same("status with few descriptors", True, done.returncode != 0 and "--direct" in done.stderr
         and "hard limit is 64" in done.stderr)
    done = subprocess.run(command("same", ranks=32, options=("--direct",)), capture_output=True,
                          text=True, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_NOFILE, (80, 80)))
    same("direct with few descriptors", (0, 96), (done.returncode, len(done.stdout.splitlines())))


os.environ.pop("PINWHEEL_SIM", None)
for case in (order, whole_lines, all_bytes, meanwhile, looks, limits):
    case()
sys.exit(wrong != 0)
