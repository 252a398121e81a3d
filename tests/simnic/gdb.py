#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank that a debugger stops: gdb.py PINWHEEL PROGRAM SECONDS.

GDB attaches, runs to a function, asks for the virtual time, leaves the rank stopped for SECONDS of
real time, and asks again. Where there is no GDB, ptrace() alone does so. The rank's output is that
of a run that is left alone, and nothing else is said.
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import time

pinwheel, program, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
SEIZE, INTERRUPT, DETACH, ALL = 0x4206, 0x4207, 17, 0x40000000
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def command(*options):
    return [pinwheel, "sim", "-n", "2", "--quiet", "--timeout", "200", *options, program, "looks", "9"]


def debugged(debug):
    """A run that waits for a debugger, which is called with the process number."""
    alone = subprocess.run(command(), capture_output=True, text=True, check=True)
    with subprocess.Popen(command("--gdb", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as job:
        line = job.stderr.readline()
        found = re.fullmatch(r"pinwheel sim: rank 1 waits for a debugger before its main\(\), at 0 us: "
                             r"gdb -p (\d+) -ex 'handle SIGSYS nostop noprint pass' -ex 'break main' -ex continue\n", line)
        if not found:
            sys.exit(f"no word about the debugger: {line}")
        debug(int(found[1]))
        out, err = job.communicate()
        same("what ranks say", alone.stdout, out)
        same("what else is said", "", err)
        same("status", 0, job.returncode)


def by_gdb(pid):
    now = "print ((unsigned long long (*)(void))PtlSimNow)()"
    steps = ["handle SIGSYS nostop noprint pass", "set breakpoint pending on", "break main", "continue", "delete", "break PtlSimPause",
             "continue", "continue", "continue", now, f"shell sleep {seconds}", now, "continue", now,
             "delete", "detach"]
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid)] +
                          [word for step in steps for word in ("-ex", step)],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    times = re.findall(r"^\$\d+ = (\d+)$", done.stdout, re.M)
    # Before the third look, after two of 20 ns; and before the fourth.
    same(f"times\n{done.stdout}{done.stderr}", ["40000", "40000", "60000"], times)


def by_ptrace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def ptrace(what):
        if libc.ptrace(what, pid, None, None) < 0:
            sys.exit(f"ptrace {what:#x}: {os.strerror(ctypes.get_errno())}")

    ptrace(SEIZE)
    ptrace(INTERRUPT)
    os.waitpid(pid, ALL)
    time.sleep(seconds)
    ptrace(DETACH)


debugged(by_ptrace)
if shutil.which("gdb"):
    debugged(by_gdb)
same("no such rank", 2, subprocess.run(command("--gdb", "2"), capture_output=True).returncode)
sys.exit(wrong != 0)
