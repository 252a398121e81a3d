# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the sPIN paper (SC'17), computed from the rules of the simulated NIC.

    spin_figures.py 3b|3c|5a [--nic discrete|integrated] [--json|--csv] ...

README.md says what is computed, where the rules leave a choice, and which option makes it.
"""

import argparse
import json
import sys

sys.dont_write_bytecode = True

from spin_machine import NICS, NS  # noqa: E402
from spin_programs import Broadcast, Costs, PingPong  # noqa: E402

PING_SIZES = [2**i for i in range(3, 19)]
PING_WAYS = ("rdma", "triggered", "stored", "streamed")
RANKS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
CAST_SIZES = [8, 65536]
CAST_WAYS = ("rdma", "triggered", "streamed")


def ping_pong(options, costs):
    """Half round trips."""
    for size in options.sizes or PING_SIZES:
        row = {"bytes": size}
        for way in PING_WAYS:
            trip = PingPong(NICS[options.nic], size, way, costs,
                            options.completion == "deposited").round_trip()
            row[way] = trip / 2 / NS
        yield row


def broadcast(options, costs):
    """Until the last rank has it."""
    for size in options.sizes or CAST_SIZES:
        for ranks in options.ranks or RANKS:
            row = {"bytes": size, "ranks": ranks}
            for way in CAST_WAYS:
                row[way] = Broadcast(NICS[options.nic], size, ranks, way, costs,
                                     options.root).last() / NS
            yield row


# What it is, its NIC, its rows, and the handlers' default costs in ns.
FIGURES = {
    "3b": ("ping-pong, half round trip in ns", "integrated", ping_pong, 10, 0),
    "3c": ("ping-pong, half round trip in ns", "discrete", ping_pong, 10, 0),
    "5a": ("broadcast until the last rank has it, in ns", "discrete", broadcast, 10, 4),
}


def numbers(text):
    return [int(word) for word in text.split(",")]


def command_line(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("figure", choices=sorted(FIGURES))
    add("--nic", choices=sorted(NICS))
    add("--json", action="store_true")
    add("--csv", action="store_true")
    add("--sizes", type=numbers, help="bytes, with commas")
    add("--ranks", type=numbers, help="5a: with commas")
    add("--handler", type=float, help="ns a call")
    add("--put", type=float, help="ns more for each put of a handler")
    add("--puts", choices=("each", "end"), default="each",
        help="5a: a handler's puts leave one by one, or all at its end")
    add("--root", choices=("puts", "messages", "handler"), default="puts",
        help="5a: how the root of the sPIN broadcast streams")
    add("--completion", choices=("ready", "deposited"), default="ready",
        help="3b, 3c: a completion handler starts when the last packet is ready, or in memory")
    options = parser.parse_args(arguments)
    _, nic, _, handler, put = FIGURES[options.figure]
    options.nic = options.nic or nic
    options.handler = handler if options.handler is None else options.handler
    options.put = put if options.put is None else options.put
    return options


def table(rows):
    lines = [list(rows[0])] + [[f"{v:.2f}" if isinstance(v, float) else str(v)
                                for v in row.values()] for row in rows]
    width = max(len(word) for line in lines for word in line) + 2
    return "\n".join("".join(word.rjust(width) for word in line) for line in lines)


def main(arguments):
    options = command_line(arguments)
    what, _, rows_of, _, _ = FIGURES[options.figure]
    costs = Costs(round(options.handler * NS), round(options.put * NS), options.puts == "end")
    rows = list(rows_of(options, costs))
    if options.json:
        chosen = {name: getattr(options, name)
                  for name in ("handler", "put", "puts", "root", "completion")}
        print(json.dumps({"figure": options.figure, "what": what, "nic": options.nic,
                          "options": chosen, "rows": rows}, indent=1))
    elif options.csv:
        print(",".join(rows[0]))
        for row in rows:
            print(",".join(str(value) for value in row.values()))
    else:
        print(f"{options.figure}: {what}, {options.nic}\n{table(rows)}")


if __name__ == "__main__":
    main(sys.argv[1:])
