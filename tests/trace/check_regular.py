#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
`goal trace --regular`: recordings of a stencil on grids, made here. From two of them a third one is
extrapolated, operation by operation the schedule of its own recording; and whatever is not regular
in one line of one of them is refused with that line.

Usage: check_regular.py PINWHEEL
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stencil import recording  # noqa: E402

pinwheel = sys.argv[1]
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def trace(*arguments):
    return subprocess.run([pinwheel, "goal", "trace", *arguments], capture_output=True, text=True)


def change(path, number, was, becomes):
    with open(path) as file:
        lines = file.read().split("\n")
    assert was in lines[number - 1], (lines[number - 1], was)
    lines[number - 1] = lines[number - 1].replace(was, becomes)
    with open(path, "w") as file:
        file.write("\n".join(lines))


def damage(work, what, says, edit):
    small, large = f"{work}/small {what}", f"{work}/large {what}"
    recording(small, (3, 3), True)
    recording(large, (4, 5), True)
    edit(small, large)
    run = trace(large, "--regular", small, "--grids", "3x3,4x5,6x7", "-o", f"{work}/x.bin")
    same(f"{what}: {run.stderr}", (1, True), (run.returncode, says in run.stderr))


with tempfile.TemporaryDirectory() as work:
    for periodic in (False, True):
        name = f"{work}/{periodic}"
        for size in ((3, 3), (4, 5), (6, 7), (4, 9)):
            recording(f"{name}-{size[0]}x{size[1]}", size, periodic)
        for wanted in ("6x7", "4x9", "4x5"):
            grown = trace(f"{name}-4x5", "--regular", f"{name}-3x3", "--grids", f"3x3,4x5,{wanted}", "--text")
            own = trace(f"{name}-{wanted}", "--text")
            same(f"status {periodic} {wanted} {grown.stderr}", (0, 0), (grown.returncode, own.returncode))
            same(f"labelled {wanted}", wanted != "4x5", "EXTRAPOLATED  from 20 ranks" in grown.stderr)
            same(f"schedule {periodic} {wanted}", own.stdout, grown.stdout)
        run = trace(f"{name}-4x5", "--regular", f"{name}-3x3", "--grids", "3x3,4x5,6x7", "-o", f"{work}/x.bin", "--json")
        same("json", (True, True), ('"regular": true' in run.stdout, '"extrapolated": true' in run.stdout))
    # Tag 0 of rank 4 of the small one, the middle: to rank 7; one line is of another.
    damage(work, "peer", "rank-4.trace:5: is not regular: the peer of rank 4 is at -1,+0, and at +1,+0 from rank 6",
           lambda s, l: change(f"{s}/rank-4.trace", 5, " 7 0 8 2", " 1 0 8 2"))
    damage(work, "peer of the large", "rank-12.trace:5: is not regular: the peer of rank 12 is at",
           lambda s, l: change(f"{l}/rank-12.trace", 5, " 17 0 8 2", " 18 0 8 2"))
    damage(work, "tag", "rank-4.trace:5: is not regular: tag 9 of rank 4, 0 of rank 6",
           lambda s, l: change(f"{s}/rank-4.trace", 5, " 7 0 8 2", " 7 9 8 2"))
    damage(work, "communicator", "rank-4.trace:5: is not regular: a communicator",
           lambda s, l: change(f"{s}/rank-4.trace", 5, " 7 0 8 2", " 7 0 8 0"))

    def in_all(was, becomes):
        return lambda s, l: [change(f"{s}/rank-{rank}.trace", 13, was, becomes) for rank in range(9)]

    damage(work, "bytes of a collective", "rank-0.trace:13: is not regular: number 24 of rank 0, 16 of rank 0",
           in_all(" 0 16", " 0 24"))
    damage(work, "call", "rank-0.trace:13: is not regular: rank 0, which has the place of rank 0, makes another call",
           in_all("Allreduce", "Scan"))
    for grids, says in (("3x3,4x5", "must be three grids"), ("3x3,4x5,6", "must be three grids"),
                        ("3x3,4x5,2x7", "must be three grids"), ("3x3,3x5,6x7", "nothing shows how"),
                        ("3x3,3x3,3x3", "one size proves nothing"), ("3x3,4x5,6x7x", "must be three grids")):
        run = trace(f"{work}/True-4x5", "--regular", f"{work}/True-3x3", "--grids", grids, "-o", f"{work}/x.bin")
        same(f"{grids} {run.stderr}", (2, True), (run.returncode, says in run.stderr))
    run = trace(f"{work}/True-4x5", "--regular", f"{work}/True-3x3", "--grids", "3x4,4x5,6x7", "-o", f"{work}/x.bin")
    same(run.stderr, (1, True), (run.returncode, "smaller recording has 9 ranks, its grid 12" in run.stderr))
    run = trace(f"{work}/True-4x5", "--grids", "3x3,4x5,6x7", "-o", f"{work}/x.bin")
    same("alone", (2, True), (run.returncode, "go together" in run.stderr))
sys.exit(wrong != 0)
