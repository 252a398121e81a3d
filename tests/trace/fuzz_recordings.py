#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Damages recordings at random and hands them to `pinwheel goal trace`: it must say what is
wrong (status 1) or make a schedule (status 0), which `pinwheel goal show` accepts;
nothing may crash, hang or be printed by a sanitizer.

Usage: fuzz_recordings.py PINWHEEL GOLDEN [--seeds N] [--first N]
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stencil import recording  # noqa: E402

NUMBERS = ["0", "1", "-1", "-2", "-3", "-4", "2", "3", "255", "256", "65536", "2147483647",
           "2147483648", "4294967295", "4294967296", "9223372036854775807", "1152921504606846975",
           "18446744073709551616", "", "x"]


def change_number(random, data):
    found = list(re.finditer(rb"-?[0-9]+", data))
    if not found:
        return data
    at = random.choice(found)
    return data[:at.start()] + random.choice(NUMBERS).encode() + data[at.end():]


def change_line(random, data):
    lines = data.split(b"\n")
    i, k = random.randrange(len(lines)), random.randrange(len(lines))
    if random.random() < 0.3:
        del lines[i]
    elif random.random() < 0.5:
        lines.insert(i, lines[k])
    else:
        lines[i], lines[k] = lines[k], lines[i]
    return b"\n".join(lines)


def change_byte(random, data):
    at = random.randrange(len(data))
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1:]


def cut(random, data):
    return data[:random.randrange(len(data))]


def damage(random, folder):
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        path = os.path.join(folder, random.choice(sorted(os.listdir(folder))))
        with open(path, "rb") as file:
            data = file.read()
        if data:
            change = random.choice([change_number, change_number, change_number, change_line,
                                    change_byte, cut])
            with open(path, "wb") as file:
                file.write(change(random, data))


def run(command, seed):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    text = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 1) or "Sanitizer" in text or "runtime error" in text or \
            (done.returncode == 1 and not text.startswith("pinwheel goal")):
        sys.exit("seed %d: %s: status %d\n%s" % (seed, " ".join(command), done.returncode, text))
    return done.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pinwheel")
    parser.add_argument("golden")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    names = ["messages", "communicators", "persistent", "allprof"]
    grids = ["grid9", "grid12"]
    taken = 0
    with tempfile.TemporaryDirectory() as work:
        recording(os.path.join(work, grids[0]), (3, 3), True)
        recording(os.path.join(work, grids[1]), (3, 4), True)
        folder, bin = os.path.join(work, "d"), os.path.join(work, "x.bin")
        for seed in range(args.first, args.first + args.seeds):
            chance = random.Random(seed)
            shutil.rmtree(folder, ignore_errors=True)
            # One in five is a grid, of which the smaller recording or the larger one is damaged.
            grid = seed % 5 == 0
            shutil.copytree(os.path.join(work, chance.choice(grids)) if grid else
                            os.path.join(args.golden, chance.choice(names)), folder)
            for file in os.listdir(folder):
                os.chmod(os.path.join(folder, file), 0o644)
            damage(chance, folder)
            options = chance.choice([[], ["--partial"], ["--no-gaps"], ["--ranks", "6"]])
            if grid:
                other = os.path.join(work, grids[len(os.listdir(folder)) == 9])
                small, large = (folder, other) if other.endswith("12") else (other, folder)
                options, of = ["--regular", small, "--grids", "3x3,3x4,3x6"], large
            else:
                of = folder
            if run([args.pinwheel, "goal", "trace", of, "-o", bin] + options, seed) == 0:
                taken += 1
                if run([args.pinwheel, "goal", "show", "--stats", bin], seed) != 0:
                    sys.exit("seed %d: a schedule that is none" % seed)
                run([args.pinwheel, "goal", "run", bin], seed)
    if not 0 < taken < args.seeds:
        sys.exit("%d of %d recordings were taken: the damage is of one kind" % (taken, args.seeds))
    print("%d of %d damaged recordings made a schedule" % (taken, args.seeds))


main()
