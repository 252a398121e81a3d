#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""left_out.py BUILD: what the last run of ctest in a build folder has left out, and why.

ctest shows no output of tests that pass or are skipped. So a run without privilege would look like
a whole one; `make test` ends with these lines. A test says what it leaves out in a line that has the
words "left out"; one that is skipped (SKIP_RETURN_CODE) and does not is shown with its last line.
"""
import os
import re
import sys


def tests_of(log):
    """Name and output of each test."""
    pattern = r"^\d+/\d+ Test: (\S+)$.*?^Output:\n-+\n(.*?)\n?<end of output>"
    return re.findall(pattern, log, re.MULTILINE | re.DOTALL)


def left_out(log, skipped):
    """Lines, one for each reason, with the tests that have it."""
    reasons = {}
    for name, output in tests_of(log):
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        found = [line for line in lines if re.search(r"\bleft out\b", line)]
        if name in skipped and not found:
            found = lines[-1:] or ["it does not say why"]
        for line in dict.fromkeys(found):
            reasons.setdefault(line, []).append(name if name in skipped else f"{name} (a part)")
    return [f"  {', '.join(names)}\n      {line}" for line, names in reasons.items()]


def main(folder):
    place = os.path.join(folder, "Testing", "Temporary")
    skipped = set()
    if os.path.exists(os.path.join(place, "LastTestsDisabled.log")):
        with open(os.path.join(place, "LastTestsDisabled.log"), encoding="utf-8") as file:
            skipped = {line.strip().split(":", 1)[1] for line in file if ":" in line}
    with open(os.path.join(place, "LastTest.log"), encoding="utf-8", errors="replace") as file:
        lines = left_out(file.read(), skipped)
    if lines:
        print("Left out of this run:", *lines, sep="\n")
    else:
        print("Nothing was left out of this run.")


def self_test():
    def block(name, output):
        return f"1/9 Testing: {name}\n1/9 Test: {name}\nCommand: x\nOutput:\n{'-' * 60}\n{output}" \
            f"<end of output>\nTest time = 1 sec\n{'-' * 60}\nTest Passed.\n\n"
    log = block("a", "left out: no tun\n") + block("b", "fine\n") + block("c", "left out: no tun\n") + \
        block("d", "1 case\nit is not root\n") + block("e", "") + block("f", "left out: no dnsperf\nfine\n")
    assert [n for n, _ in tests_of(log)] == ["a", "b", "c", "d", "e", "f"]
    assert left_out(log, {"a", "c", "d", "e"}) == [
        "  a, c\n      left out: no tun", "  d\n      it is not root", "  e\n      it does not say why",
        "  f (a part)\n      left out: no dnsperf"]
    assert left_out(block("b", "fine\n"), set()) == []


if sys.argv[1] == "--self-test":
    self_test()
else:
    main(sys.argv[1])
