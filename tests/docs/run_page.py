# SPDX-License-Identifier: BSD-3-Clause
"""Runs a page of documentation: what it says to do must do what it says.

    run_page.py PAGE BUILD WORK CC=COMPILER CFLAGS=FLAGS

    ```c NAME       becomes the file NAME
    ```sh           is run by a shell, in the page's order, in one folder; each must succeed
    ```text         behind it: lines that were printed, in this order, among others; "..."
                    stands for anything, and blanks for blanks

BUILD is installed to a prefix in WORK first, and found there by PATH and PKG_CONFIG_PATH. The
`cc` of the page is COMPILER with FLAGS, which a build with sanitizers needs.
"""

import os
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(\w*)[ ]*(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fail(page, line, text):
    sys.exit(f"{page}:{line}: {text}")


def pattern(line):
    parts = [r"\s+".join(re.escape(word) for word in part.split()) for part in line.split("...")]
    return re.compile(r"^\s*" + r".*?".join(r"\s*" + part + r"\s*" for part in parts) + r"$")


def compare(page, number, output, expected):
    printed = iter(output.splitlines())
    for line in filter(str.strip, expected.splitlines()):
        if not any(pattern(line).match(candidate) for candidate in printed):
            fail(page, number, f"not printed, or not in its place: {line}\nprinted was:\n{output}")


def run(page, number, script, folder, environment):
    done = subprocess.run(["sh", "-eu", "-c", script], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          check=False)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        fail(page, number, f"status {done.returncode} of:\n{script}\n{output}")
    return output


def make_cc(folder, compiler, flags):
    path = os.path.join(folder, "cc")
    with open(path, "w", encoding="utf-8") as file:
        # without this folder: ccache looks in PATH for the compiler of its own name
        file.write(f'#!/bin/sh\nPATH=${{PATH#{folder}:}} exec {compiler} {flags} "$@"\n')
    os.chmod(path, 0o755)


def main():
    page, build, work = sys.argv[1:4]
    options = dict(option.split("=", 1) for option in sys.argv[4:])
    shutil.rmtree(work, ignore_errors=True)
    prefix, folder = os.path.join(work, "prefix"), os.path.join(work, "page")
    os.makedirs(folder)
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    make_cc(os.path.join(prefix, "bin"), options["CC"], options["CFLAGS"])
    environment = dict(os.environ, LC_ALL="C", HOME=folder)
    with open(os.path.join(folder, ".gdbinit"), "w", encoding="utf-8") as file:
        file.write("set remotetimeout 300\n")  # what is slow is not wrong
    environment["PATH"] = os.path.join(prefix, "bin") + ":" + environment["PATH"]
    environment["PKG_CONFIG_PATH"] = os.path.join(prefix, "lib", "pkgconfig")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    output, counts = None, {"c": 0, "sh": 0, "text": 0}
    for block in FENCE.finditer(text):
        kind, name, body = block.groups()
        number = text.count("\n", 0, block.start()) + 1
        if kind == "c" and name:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(body)
        elif kind == "sh":
            output = run(page, number, body, folder, environment)
        elif kind == "text" and output is not None:
            compare(page, number, output, body)
        else:
            fail(page, number, f"a block of kind {kind or 'none'}, which nobody runs")
        counts[kind] += 1
    if counts["sh"] == 0 or counts["text"] == 0:
        fail(page, 1, f"not the blocks that a page has: {counts}")
    shutil.rmtree(work)
    print(counts)


main()
