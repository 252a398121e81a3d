#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The reports of `pinwheel sim`: reports.py CASE PINWHEEL FOLDER-OF-PROGRAMS FOLDER-OF-EXAMPLES.

Numbers are computed by hand from the table of docs/sim-nic.md; the machine is `discrete` unless a
case says otherwise.
"""
import json
import subprocess
import sys

case, pinwheel, programs, examples = sys.argv[1:5]
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def sim(*arguments, status=0):
    run = subprocess.run([pinwheel, "sim", "--timeout", "100", *map(str, arguments)],
                         capture_output=True, text=True)
    same(f"status of {arguments}", status, run.returncode)
    return run


def stats_of(*arguments):
    out = sim("-n", 2, "--quiet", "--stats=json", *arguments).stdout
    return json.loads(out[out.index("{\n"):])


def stats():
    """A put of eight packets, 81.92 ns apart, of which the first is matched in 30 ns and the others
    in 2 ns; handlers take 1 us, and four can run. So the fifth waits 1,030 - 2 - 4 * 81.92 ns, and
    the other three 1,000 - 4 * 81.92 ns, for the HPU of the packet four before; there is always one
    that waits until the last begins, and when the fifth begins four do."""
    fifth, others = 1030000 - 2000 - 4 * 81920, 1000000 - 4 * 81920
    found = stats_of("--handler", "1us", f"{programs}/simnic_burst", 8)
    sender, target = found["by_rank"][1], found["by_rank"][0]
    [handler] = target["handlers"]
    same("handler", ("burst_packet", 8, 8 * 2500, 8000000, fifth + 3 * others, fifth),
         tuple(handler[k] for k in ("name", "calls", "cycles", "taken_ps", "waited_ps",
                                    "longest_wait_ps")))
    same("HPUs", [2000000] * 4, target["hpu_ps"])
    same("HPU queue", (fifth + 3 * others, 4), (target["hpu_queue"]["waited_ps"], target["hpu_queue"]["most"]))
    same("shortage", 1000000 + 3 * 81920 - 4 * 81920, found["shortage_ps"])
    same("egress", (8 * 81920, 0), (sender["egress_ps"], target["egress_ps"]))
    same("links", (8 * 81920, 8 * 81920), (sender["link_out_ps"], target["link_in_ps"]))
    same("DMA", 0, found["sum"]["dma_queue"]["waited_ps"])
    same("messages", (1, 1, 1, 0), (sender["messages"], target["requests"], target["matched"],
                                    target["dropped"]))
    # With as many HPUs as packets nobody waits, and one more gains nothing.
    found = stats_of("--handler", "1us", "--hpus", 8, f"{programs}/simnic_burst", 8)
    same("shortage of 8 HPUs", 0, found["shortage_ps"])
    same("limit of 8 HPUs", True, found["limit"].endswith("a 9th HPU gains nothing: no call waited for one"))
    # 8,192 bytes: the second packet's transfer waits until the first, issued 81,920 - 28,000 ps
    # before, has left the engine after 4,096 * 15.6 ps.
    found = stats_of(f"{programs}/simnic_pingpong", "rdma", 8192)
    queue = found["by_rank"][0]["dma_queue"]
    same("DMA queue", (10 * (63897 - 53920), 1), (queue["waited_ps"], queue["most"]))
    same("looks", True, found["sum"]["looks"] == 0 and found["sum"]["skipped_ps"] == 0)
    found = stats_of(f"{programs}/simnic_scenes", "polls", 100000)
    same("skipped", True, found["by_rank"][0]["skipped_ps"] > 0 and found["by_rank"][0]["looks"] >= 64)


def limit():
    """What limits a run is said without an option."""
    said = sim("-n", 2, f"{programs}/simnic_pingpong", "rdma", 8).stderr
    same("ping-pong", True, "limited by latency, nothing is full: " in said and "no handler ran" in said)
    said = sim("-n", 2, "--handler", "1us", "--hpus", 1, f"{programs}/simnic_burst", 500).stderr
    same("burst", True, "limited by HPUs of rank 0: HPUs 9" in said
         and "a 2nd HPU gains at most " in said)


{name: f for name, f in globals().items() if name in ("stats", "limit")}[case]()
sys.exit(wrong != 0)
