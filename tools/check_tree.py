#!/usr/bin/env python3
"""Checks what compilers do not: `make lint` runs it at the top of the tree.

  rooms     a file includes files of its own folder, and of those that docs/rooms.txt allows it
  comments  no comment ends in the middle of its sentence, to go on after the next line of code
  sizes     no file of src, lib, tools and bench above 500 lines, no function above 80, but for those
            that tools/check_tree.exempt lists with a reason
  mutants   each patch of tests/mutants still fits the tree

It prints a line FILE:LINE: what is wrong, for each finding, and exits with 1 if there is any.
`check_tree.py --self-test` runs the checks on a tree of its own in which each finds something.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

FILE_LINES, FUNCTION_LINES = 500, 80
EXEMPT = "tools/check_tree.exempt"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# Where an include is looked for, beside the folder of the file itself.
PATHS = ["src", "include", "handlers", "tools", "bench", "bench/ours", "bench/spin", "bench/slmp",
         "bench/conductor", "tests/hpu"]


def rooms_of(path):
    """docs/rooms.txt: each room's line, from the top down, and what it may include."""
    rooms, wrong = {}, []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if words:
                rooms[words[0].rstrip(":")] = (number, words[1:])
    for room, (number, below) in rooms.items():
        for other in below:
            if other not in rooms:
                wrong.append(f"{path}:{number}: {other}, which {room} may include, has no line")
            elif rooms[other][0] <= number:
                wrong.append(f"{path}:{number}: {other} stands above {room}: arrows point down")
    return rooms, wrong


def check_rooms(texts, table):
    rooms, wrong = rooms_of(table)
    for name, text in texts.items():
        room = os.path.dirname(name)
        if not name.startswith(("src/", "lib/", "tools/", "bench/", "handlers/")):
            continue
        if room not in rooms:
            wrong.append(f"{name}:1: its folder has no line in {table}")
            continue
        for found in INCLUDE.finditer(text):
            tried = (os.path.normpath(os.path.join(p, found[1])) for p in [room] + PATHS)
            target = next((t for t in tried if t in texts), None)
            there = os.path.dirname(target) if target else room
            if there != room and there not in rooms[room][1]:
                line = text.count("\n", 0, found.start(1)) + 1
                wrong.append(f"{name}:{line}: {room} may not include {target} ({table})")
    return wrong


def check_comments(texts, reasons):
    wrong = []
    for name, text in texts.items():
        if reasons.pop(f"comments:{name}", None) is not None:
            continue
        for found in COMMENT.finditer(text):
            if found[0][0] != "/":
                continue
            words = found[0].removesuffix("*/").rstrip()
            if words.endswith((",", ";")):
                line = text.count("\n", 0, found.start() + len(words)) + 1
                wrong.append(f"{name}:{line}: the comment goes on after the next line of code")
    return wrong


def functions(text):
    """Name, first line and number of lines of each function, as clang-format lays it out."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if line == "{":
            head = i - 1
            while head > 0 and lines[head].startswith((" ", "\t")):
                head -= 1
            name = re.search(r"(\w+)\s*\(", lines[head])
            end = next((j for j in range(i, len(lines)) if lines[j] == "}"), i)
            if name:
                yield name[1], head + 1, end - head + 1


def exemptions(exempt):
    """Lines WHAT REASON, where WHAT is FILE, FILE:FUNCTION or comments:FILE."""
    wrong, reasons = [], {}
    with open(exempt, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                what, _, why = line.strip().partition(" ")
                reasons[what] = number
                if not why.strip():
                    wrong.append(f"{exempt}:{number}: {what} has no reason")
    return reasons, wrong


def check_sizes(texts, reasons):
    wrong = []
    for name, text in texts.items():
        if not name.startswith(("src/", "lib/", "tools/", "bench/")):
            continue
        count = text.count("\n")
        if count > FILE_LINES and reasons.pop(name, None) is None:
            wrong.append(f"{name}:{count}: the file has more than {FILE_LINES} lines")
        for function, line, length in functions(text):
            if length > FUNCTION_LINES and reasons.pop(f"{name}:{function}", None) is None:
                wrong.append(f"{name}:{line}: {function}() has {length} lines, more than "
                             f"{FUNCTION_LINES}")
    return wrong


def check_mutants(folder):
    """A patch that does not fit any more tells nobody until somebody runs that mutant."""
    wrong = []
    for name in sorted(glob.glob(f"{folder}/*.patch")):
        tried = subprocess.run(["patch", "--dry-run", "--force", "-p1", "-i", name], check=False,
                               capture_output=True, text=True)
        if tried.returncode != 0:
            wrong.append(f"{name}:1: the patch does not fit the tree any more: break the same rule "
                         f"where it is now, with `git diff > {name}`")
    return wrong


def read(names):
    texts = {}
    for name in names:
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                texts[name] = file.read()
    return texts


def check(texts):
    reasons, wrong = exemptions(EXEMPT)
    wrong += check_rooms(texts, "docs/rooms.txt") + check_comments(texts, reasons)
    wrong += check_sizes(texts, reasons) + check_mutants("tests/mutants")
    return wrong + [f"{EXEMPT}:{number}: {what} needs no exemption"
                    for what, number in reasons.items()]


def mutant_of(name, line):
    return f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{line}\n+int y;\n"


SELF_TEST = {
    "docs/rooms.txt": "src/high: src/low\nsrc/low:\n",
    EXEMPT: "src/low/old.c it has a reason\nsrc/low/gone.c it had one\n",
    "src/low/low.h": "int low; /* \",\" is no comment */\nchar c = ',';\n",
    "src/low/up.c": '#include "high/high.h"\n',
    "src/high/high.h": '#include "low/low.h"\nint a; /* the first, */\nint b; /* the second */\n',
    "src/low/old.c": "\n" * 501,
    "src/low/long.c": "\n" * 501,
    "src/low/function.c": "int f(int a,\n      int b)\n{\n" + "    a++;\n" * 90 + "}\n",
    "src/other/x.c": "int x;\n",
    "tests/mutants/fits.patch": mutant_of("src/other/x.c", "int x;"),
    "tests/mutants/bent.patch": mutant_of("src/other/x.c", "int z;"),
    "tests/mutants/gone.patch": mutant_of("src/gone.c", "int x;"),
}
SELF_TEST_FINDS = [
    "src/low/up.c:1: src/low may not include src/high/high.h (docs/rooms.txt)",
    "src/other/x.c:1: its folder has no line in docs/rooms.txt",
    "src/high/high.h:2: the comment goes on after the next line of code",
    "src/low/long.c:501: the file has more than 500 lines",
    "src/low/function.c:1: f() has 94 lines, more than 80",
    "tests/mutants/bent.patch:1: the patch does not fit the tree any more: break the same rule "
    "where it is now, with `git diff > tests/mutants/bent.patch`",
    "tests/mutants/gone.patch:1: the patch does not fit the tree any more: break the same rule "
    "where it is now, with `git diff > tests/mutants/gone.patch`",
    "tools/check_tree.exempt:2: src/low/gone.c needs no exemption",
]


def self_test():
    with tempfile.TemporaryDirectory() as top:
        os.chdir(top)
        for name, text in SELF_TEST.items():
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        found = check(read([n for n in SELF_TEST if n.endswith((".c", ".h"))]))
        with open("docs/rooms.txt", "w", encoding="utf-8") as file:
            file.write("src/low: src/high\nsrc/high: src/low\n")
        found += rooms_of("docs/rooms.txt")[1]
    expected = SELF_TEST_FINDS + ["docs/rooms.txt:2: src/low stands above src/high: "
                                  "arrows point down"]
    if found != expected:
        sys.exit("check_tree.py: self-test:\n  " + "\n  ".join(found) + "\nis not\n  " +
                 "\n  ".join(expected))


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    names = subprocess.run(["git", "ls-files", "*.c", "*.h"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    wrong = check(read(name for name in names if name))
    if wrong:
        sys.exit("\n".join(wrong))


main()
