#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank writes random words to the memory that it shares with `pinwheel sim` (spoils.c):
spoils.py PINWHEEL PROGRAM RUNS [FIRST-SEED].

Whatever it writes, and when, `pinwheel sim` ends by itself, not by a signal and not by its time-out,
and with status 0 only with the figures, the bytes and the trace of the job that is left alone.
"""
import subprocess
import sys
import tempfile

pinwheel, program, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
PARTS = ["layout", "board", "words", "record", "figures", "out", "in", "child", "other", "spans", "any", "late"]
TIMEOUT = 60


def job(seed, part, words):
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/t.json"
        run = subprocess.run([pinwheel, "sim", "-n", "4", "--timeout", str(TIMEOUT), "--json", "--stats=json",
                              "--spans", "1000", "--trace", trace, program, "12", str(seed % 4), part,
                              str(seed), str(words)], capture_output=True, text=True)
        try:
            with open(trace, encoding="utf-8") as f:
                spans = f.read()
        except OSError:
            spans = None
    return run.returncode, sorted(run.stdout.splitlines()), spans, run.stderr


status, figures, spans, said = job(1, "any", 0)
if status != 0 or spans is None:
    sys.exit(f"undisturbed: status {status}: {said}")
if job(2, "any", 0)[1:3] != (figures, spans):
    sys.exit("undisturbed runs differ")
wrong, told = 0, {}
for seed in range(first, first + runs):
    part = PARTS[seed % len(PARTS)]
    status, found, trace, said = job(seed, part, 1 + seed // len(PARTS) % 40)
    why = None
    if status < 0:
        why = f"pinwheel sim was ended by signal {-status}"
    elif status == 124:
        why = "it hung"
    elif status == 0 and (found, trace) != (figures, spans):
        why = "status 0 and other figures"
    elif status != 0 and said == "":
        why = f"status {status} without a word"
    if why is not None:
        wrong += 1
        print(f"seed {seed}, {part}: {why}\n{said}", file=sys.stderr)
    of = told.setdefault(part, {"harmless": 0, "named": 0, "other": 0})
    of["harmless" if status == 0 else "named" if "has written over" in said else "other"] += 1
for part, of in told.items():
    print(part, of)
sys.exit(wrong != 0)
