#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `pinwheel goal run --nic` does grows with its schedule and no faster: grows.py PINWHEEL.

Counted, not timed: events, and places in lists that were looked at, for a schedule and one twice as
large, may differ by 2.4 times (trees get deeper).
"""
import json
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import portals  # noqa: E402

pinwheel = sys.argv[1]
MOST = 2.4
TREE = ("--network", "fattree:radix=8,levels=4")


def stream(messages, entry, what="put 8b"):
    """Rank 1 to rank 0, one behind the other."""
    return portals.text_of([[f"append 64b allowed -1 tag 1 {entry} ct 1", f"test 1 for {messages}"],
                 [f"{what} {'from' if what[0] == 'g' else 'to'} 0 tag 1 ct 2"] * messages + [f"test 2 for {messages}"]])


def mixed(messages):
    """Puts behind gets, which they must wait for."""
    return portals.text_of([[f"append 64b allowed -1 tag 1 ct 1", f"test 1 for {2 * messages}"],
                 ["get 64b from 0 tag 1", "put 8b to 0 tag 1"] * messages])


def incast(ranks):
    return portals.text_of([[f"append 64b allowed -1 tag 1 ph 50ns write ct 1", f"test 1 for {ranks - 1}"]] +
                [["put 8b to 0 tag 1 ct 1", "test 1 for 1"]] * (ranks - 1))


def triggered(operations):
    """All at once, and acks meanwhile."""
    return portals.text_of([["append 64b allowed -1 tag 1"] +
                 ["tput 8b to 1 tag 1 when 3 reaches 1 ct 1"] * operations + ["count 3 by 1", f"test 1 for {operations}"],
                 ["append 64b allowed -1 tag 1"] + ["put 8b to 0 tag 1 ct 1"] * operations + [f"test 1 for {operations}"]])


def entries(count):
    """As many as messages, which come in the opposite order."""
    return portals.text_of([[f"append 8b allowed 1 tag {tag} use_once ct 1" for tag in range(count)] + [f"test 1 for {count}"],
                 [f"put 8b to 0 tag {tag}" for tag in reversed(range(count))]])


def work(schedule):
    with tempfile.NamedTemporaryFile("w", suffix=".goal") as file:
        file.write(schedule)
        file.flush()
        run = subprocess.run([pinwheel, "goal", "run", "--nic", "discrete", *TREE, "--json", file.name], check=True,
                             capture_output=True, text=True)
    told = json.loads(run.stdout)
    return told["events"] + told["steps"]


wrong = 0
for name, make, size in (("broadcast", lambda n: portals.broadcast(n, 8), 256),
                         ("triggered broadcast", lambda n: portals.triggered_broadcast(n, 8), 256), ("a stream", lambda n: stream(n, ""), 1000),
                         ("a stream to handlers", lambda n: stream(n, "ph 100ns write"), 1000),
                         ("gets", lambda n: stream(n, "", "get 8b"), 1000), ("gets and puts", mixed, 500),
                         ("incast at handlers", incast, 256), ("triggered puts", triggered, 1000),
                         ("entries", entries, 1000)):
    once, twice = work(make(size)), work(make(2 * size))
    if twice > MOST * once:
        print(f"{name}: {once} for {size}, {twice} for {2 * size}: {twice / once:.2f} times", file=sys.stderr)
        wrong += 1
sys.exit(wrong != 0)
