# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the sPIN paper (SC'17), computed from the rules of the simulated NIC.

    spin_figures.py 3b|3c|3d|4|5a|5b|7a|7c [--nic discrete|integrated] [--json|--csv] ...

README.md says what is computed, where the rules leave a choice, and which option makes it.
"""

import argparse
import collections
import json
import sys

sys.dont_write_bytecode = True

from spin_machine import NICS, NS  # noqa: E402
from spin_programs import Broadcast, Costs, PingPong  # noqa: E402
from spin_uses import (Accumulate, Handler, LineRate, Memory, Raid, Rendezvous, Strided, gap,  # noqa: E402
                       hpus_needed)

KIB = 1024
MESSAGE_7A = 4 * KIB * KIB

# `own`: options of this figure that are not 0 or the first choice, besides --nic.
Figure = collections.namedtuple("Figure", "what nic rows own")


def ps(ns):
    return round(ns * NS)


def per_byte(text_ps):
    return round(text_ps * 10**6)


def machine(options):
    nic = NICS[options.nic]
    return nic._replace(hpus=options.hpus or nic.hpus, threads=options.hpu_waits == "threads")


def costs(options):
    return Costs(ps(options.handler), ps(options.put), options.puts == "end")


def handler(options):
    return Handler(ps(options.handler), ps(options.put), per_byte(options.byte),
                   ps(options.block))


def memory(options):
    return Memory(ps(options.dram), per_byte(options.memory))


def ping_pong(o):
    for size in o.sizes:
        row = {"bytes": size}
        for way in ("rdma", "triggered", "stored", "streamed"):
            trip = PingPong(machine(o), size, way, costs(o), o.completion == "deposited")
            row[way] = trip.round_trip() / 2 / NS
        yield row


def accumulate(o):
    for size in o.sizes:
        row = {"bytes": size}
        for way in ("rdma", "spin"):
            run = Accumulate(machine(o), size, way, handler(o), memory(o), o.program)
            row[way] = run.run() / NS
            row[way + "_moved"] = run.moved
        yield row


def budget(o):
    nic = machine(o)
    for size in o.sizes:
        apart = gap(nic, size)
        row = {"bytes": size, "gap": apart / NS, "million_per_s": 1e6 / apart,
               "budget": nic.hpus * apart / NS}
        for time in o.times:
            row[f"hpus_{time}ns"] = hpus_needed(nic, size, ps(time))
            row[f"apart_{time}ns"] = LineRate(nic, size, ps(time), 1000).apart() / NS
        yield row


def broadcast(o):
    for size in o.sizes:
        for ranks in o.ranks:
            row = {"bytes": size, "ranks": ranks}
            for way in ("rdma", "triggered", "streamed"):
                row[way] = Broadcast(machine(o), size, ranks, way, costs(o), o.root).last() / NS
            yield row


def rendezvous(o):
    for size in o.sizes:
        for early in (True, False):
            row = {"bytes": size, "posted": "early" if early else "late"}
            for way in ("rdma", "spin"):
                run = Rendezvous(machine(o), size, o.eager, early, ps(o.busy),
                                 o.program if way == "spin" else way, handler(o), memory(o))
                row[way] = run.run() / NS
                row[way + "_waits"] = max(0, row[way] - o.busy)
                row[way + "_copies"] = run.copies
            yield row


def strided(o):
    for size in o.sizes:
        row = {"block": size}
        for way in ("rdma", "spin"):
            time = Strided(machine(o), MESSAGE_7A, size, way, handler(o), memory(o)).run()
            row[way] = time / NS
            row[way + "_GB_per_s"] = MESSAGE_7A * NS / time
        yield row


def raid(o):
    for size in o.sizes:
        row = {"bytes": size}
        for way in ("rdma", "spin"):
            row[way] = Raid(machine(o), size, o.unit, way, handler(o), memory(o),
                            o.acks == "direct", o.locks == "unit").run() / NS
        row["rdma_over_spin"] = row["rdma"] / row["spin"]
        yield row


PING = {"sizes": [2**i for i in range(3, 19)], "handler": 10}
FIGURES = {
    "3b": Figure("ping-pong, half round trip in ns", "integrated", ping_pong, PING),
    "3c": Figure("ping-pong, half round trip in ns", "discrete", ping_pong, PING),
    "3d": Figure("accumulate until in target memory, in ns; bytes moved there", "discrete",
                 accumulate, {"sizes": [2**i for i in range(4, 19)], "handler": 10}),
    "4": Figure("handler times in ns that keep line rate, HPUs needed", "discrete", budget,
                {"sizes": [8, 64, 128, 256, 335, 512, 1024, 2048, 4096], "hpus": 8}),
    "5a": Figure("broadcast until the last rank has it, in ns", "discrete", broadcast,
                 {"sizes": [8, 65536], "handler": 10, "put": 4}),
    "5b": Figure("send and receive until done, in ns; how long the target's program waits",
                 "discrete", rendezvous,
                 {"sizes": [8, 4096, 65536, 262144], "handler": 10, "put": 4}),
    "7a": Figure("4 MiB in blocks of every other place, until in memory, in ns", "integrated",
                 strided, {"sizes": [2**i for i in range(4, 19)], "handler": 20, "block": 12,
                           "memory": 94.3}),
    "7c": Figure("RAID-5 update to the last ack, in ns", "discrete", raid,
                 {"sizes": [2**i for i in range(6, 21, 2)], "handler": 10, "put": 4}),
}
CHOICES = {
    "hpu-waits": ("blocked", "threads"),
    "completion": ("ready", "deposited"),
    "puts": ("each", "end"),
    "root": ("puts", "messages", "handler"),
    "program": ("paper", "library"),
    "acks": ("server", "direct"),
    "locks": ("none", "unit"),
}
DEFAULTS = {"handler": 0.0, "put": 0.0, "byte": 0.0, "block": 0.0, "dram": 51.0, "memory": 6.7,
            "busy": 10000.0, "hpus": 0, "unit": 4096, "eager": 4096,
            "ranks": [4, 8, 16, 32, 64, 128, 256, 512, 1024], "times": [53, 100, 200, 500, 655]}


def numbers(text):
    return [int(word) for word in text.split(",")]


def command_line(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                     epilog="Times in ns, per byte in ps; see README.md.")
    parser.add_argument("figure", choices=sorted(FIGURES))
    parser.add_argument("--nic", choices=sorted(NICS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--sizes", type=numbers, help="bytes, with commas; 7a: of a block")
    for name, value in DEFAULTS.items():
        parser.add_argument("--" + name, type=numbers if isinstance(value, list) else type(value))
    for name, choices in CHOICES.items():
        parser.add_argument("--" + name, choices=choices, default=choices[0])
    options = parser.parse_args(arguments)
    figure = FIGURES[options.figure]
    for name, value in {"nic": figure.nic, **DEFAULTS, **figure.own}.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def table(rows):
    lines = [list(rows[0])] + [[f"{v:.2f}" if isinstance(v, float) else str(v)
                                for v in row.values()] for row in rows]
    widths = [max(len(word) for word in column) + 2 for column in zip(*lines)]
    return "\n".join("".join(map(str.rjust, line, widths)) for line in lines)


def main(arguments):
    options = command_line(arguments)
    figure = FIGURES[options.figure]
    rows = list(figure.rows(options))
    if options.json:
        chosen = {name: value for name, value in vars(options).items()
                  if name not in ("figure", "json", "csv")}
        print(json.dumps({"figure": options.figure, "what": figure.what, "nic": options.nic,
                          "options": chosen, "rows": rows}, indent=1))
    elif options.csv:
        print(",".join(rows[0]))
        for row in rows:
            print(",".join(str(value) for value in row.values()))
    else:
        print(f"{options.figure}: {figure.what}, {options.nic}\n{table(rows)}")


if __name__ == "__main__":
    main(sys.argv[1:])
