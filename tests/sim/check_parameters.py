# SPDX-License-Identifier: BSD-3-Clause
"""How `pinwheel goal run` reads its parameters, against the reference: every spelling, what is
refused and with which status, rounding, and overflow with the operation named.

    check_parameters.py PINWHEEL
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import backend  # noqa: E402
from schedule import CALC, RECV, SEND, Operation  # noqa: E402

TIMES = ("0", "1", "2500", "0.001", "6.7", "283.600", "3.7us", "3700ns", "3700.000ns", "0.5ms", "2s",
         "12345ps", "0012", "1.5ps", "0.0001", "0.0005", "1.0000000000", "18.4s", "18.5s",
         "18446744073", "18446744074", "99999999999999999999", "")
RATES = ("0", "6", "0.04", "20ps", "20ps/B", "0.5ps", "0.000000001", "0.0000000001", "1.5ps/B",
         "0.0000005us", "1/B", "6/b", "2500000ps/B", "18446744073.709551615", "18446744073.709551616")
SIZES = ("0", "1", "65535", "0065535", "4294967296", "18446744073709551615", "18446744073709551616",
         "1.5", "ns", "")
NEVER = ("-1", "+1", " 1", "1 ", "1e3", "0x10", "1,5", ".5", "5.", "1.2.3", "ns", "1 ns", "1h", "1NS",
         "1nsx", "/B", "nan", "inf", "--1", "1\n")
CALC_LIMIT = (2**63 - 1) // 1000


def one_message(size):
    return [[Operation(SEND, size, 1)], [Operation(RECV, size, 0)]]


def cases():
    """Schedule, model and parameters."""
    for model in ("pinwheel", "loggopsim"):
        for name in "LogGOS":
            fitting = SIZES if name == "S" else RATES + TIMES if name in "GO" else TIMES
            for text in fitting + NEVER:
                yield one_message(100), model, {name: text}
    for size in range(1, 12):  # halves, to the even neighbour
        for rate in ("0.5ps", "1.5ps", "0.25ps", "0.499999ps", "0.500001ps"):
            yield one_message(size), "pinwheel", {"G": rate}
            yield one_message(size), "pinwheel", {"O": rate, "S": "0"}
    for size in (2**53 + 1, 2**63, 2**64 - 1):
        for rate in ("0.000000001", "0.5ps", "1", "18s"):
            yield one_message(size), "pinwheel", {"G": rate, "S": str(2**64 - 1)}
            yield one_message(size), "loggopsim", {"G": rate}
    for length in (CALC_LIMIT, CALC_LIMIT + 1, 2**63, 2**64 - 1):
        for model in ("pinwheel", "loggopsim"):
            yield [[Operation(CALC, length)]], model, {}


def main():
    reference, tool = backend.Reference(), backend.Tool(sys.argv[1])
    tried = refused = overflows = wrong = 0
    for ranks, model, texts in cases():
        expected, seen = reference.run(ranks, model, texts), tool.run(ranks, model, texts)
        tried += 1
        refused += expected.status == 2
        unnamed = False
        if expected.status == 1:
            overflows += 1
            unnamed = "rank" not in seen.message
        if expected[:2] != seen[:2] or unnamed:
            wrong += 1
            print(f"--model={model} {texts}, {[op.size for rank in ranks for op in rank]}:"
                  f" expected {expected}, got {seen}")
    print(f"{tried} cases, {refused} refused, {overflows} overflow; {wrong} wrong")
    return wrong > 0 or refused < 100 or overflows < 8


if __name__ == "__main__":
    sys.exit(main())
