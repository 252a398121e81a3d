#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints, sorted, a line for each name on which users of the command or of the environment rely:

    tools/surface.py TREE BUILD

subcommands and their options, as each --help lists them; the exit status of a wrong option and of
a wrong subcommand; the keys of JSON that commands print without other programs at hand; variables
PINWHEEL_... that the sources or the manual pages of TREE name. tools/abi.sh compares two of these.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60)


def help_of(pinwheel, path, lines):
    """Adds the lines of the subcommand `path`, and of its subcommands, to `lines`."""
    text = run(pinwheel, *path, "--help").stdout
    name = " ".join(path) or "pinwheel"
    lines.add(f"command {name}")
    for option in re.findall(r"^  (?:(-\w), ?)?(--?[\w-]+)", text, re.M):
        lines.update(f"option {name} {o}" for o in option if o)
    for key, words in (("option", ["--no-such-option"]), ("subcommand", ["no-such-subcommand"])):
        if key == "option" or "SUBCOMMAND" in text.split("\n")[0]:
            lines.add(f"status {name}: a wrong {key}: {run(pinwheel, *path, *words).returncode}")
    below = re.search(r"^subcommands:\n((?:  .*\n)+)", text, re.M)
    for word in re.findall(r"^  ([\w-]+) ", below.group(1), re.M) if below else []:
        if word != "help":
            help_of(pinwheel, path + [word], lines)


def keys(value, at=""):
    """Yields the paths of all keys of a JSON value; the elements of a list have the path `[]`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{at}.{key}"
            yield from keys(inner, f"{at}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{at}[]")


def json_of(pinwheel, lines):
    with tempfile.TemporaryDirectory() as folder:
        goal = pathlib.Path(folder, "g.bin")
        for pattern in ("allreduce", "recursive-doubling", "dissemination"):
            if run(pinwheel, "goal", "gen", "--ranks", 4, "-o", goal, pattern).returncode == 0:
                break
        plain = ["goal", "run", "--json", goal]
        for words in (["info", "--json"], ["nic", "--json"], ["goal", "show", "--json", goal], plain,
                      plain + ["--ranks", "--critical-path", "--queues"],
                      plain + ["--noise", "exponential:period=1ms,mean=10us"],
                      plain + ["--network", "fattree:radix=4"], plain + ["--sweep", "L=1:5:2"]):
            out = run(pinwheel, *words).stdout
            name = " ".join(str(w) for w in words if w != goal)
            try:
                lines.update(f"json {name}: {k}" for k in keys(json.loads(out)))
            except json.JSONDecodeError:
                lines.add(f"json {name}: is no JSON")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tree, pinwheel = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2], "tools/pinwheel/pinwheel").resolve()
    lines = set()
    help_of(pinwheel, [], lines)
    json_of(pinwheel, lines)
    for file in [f for d in ("src", "lib", "tools", "man") for f in (tree / d).rglob("*") if f.is_file()]:
        for name in re.findall(r"\bPINWHEEL_[A-Z0-9_]+\b(?!_H\b)", file.read_text(errors="replace")):
            if not name.endswith(("_H", "_")):
                lines.add(f"variable {name}")
    print("\n".join(sorted(lines)))  # in the order of the C locale, as comm(1) wants it


main()
