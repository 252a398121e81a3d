#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds lines of Markdown above 100 columns, which `make lint` does not let pass.

    lint_docs.py FILE.md...

Tables, code (fenced, or indented by four behind a blank line) and headings may be wider, and so may
what has no blank to break it at: a link, a piece of `code`. A list's own lines are not code.
"""

import re
import sys

WIDTH = 100
FENCE = re.compile(r"^\s*```")
ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s")
WORD = re.compile(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+")


def breakable(line):
    """True if the line can be wrapped: it has a blank behind a word, other than a list item's mark."""
    words = list(WORD.finditer(line))
    first = 1 if ITEM.match(line) else 0
    return len(words) > first + 1


def wide_lines(text):
    fenced = in_list = in_code = False
    blank = True
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not line.strip():
            blank = True
            continue
        elif not fenced:
            if ITEM.match(line):
                in_list = True
            elif not line.startswith(" "):
                in_list = False
            in_code = line.startswith("    ") and not in_list and (blank or in_code)
            prose = not in_code and not line.lstrip().startswith(("|", "#"))
            if prose and len(line) > WIDTH and breakable(line):
                yield number, len(line)
        blank = False


def main():
    found = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for number, width in wide_lines(file.read()):
                print(f"{path}:{number}: {width} columns, at most {WIDTH}: wrap it")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
