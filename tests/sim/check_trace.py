# SPDX-License-Identifier: BSD-3-Clause
"""Holds the timelines of `pinwheel goal run --trace` against hand-derived times and rules.

    check_trace.py PINWHEEL GOLDEN

The golden times are those of docs/loggops-model.md. For every schedule: what takes one cpu,
or one side of a nic, never overlaps; an arrow leads from a send to a later receive and both
ends lie in a span; the last end on a cpu is the rank's finish time, where nothing else is later.
On a packet network, each packet takes each channel of its way once, one at a time.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal

# rank, thread: name, begin, length in us
GOLDEN = {
    "03_late_recv_rndv": [
        (0, "cpu 0", "request", "0", "1.5"), (0, "cpu 0", "data", "2004", "1.5"),
        (0, "cpu 0", "calc", "2605.494", "0.05"), (0, "nic 0 out", "data", "2004", "600.994"),
        (1, "cpu 0", "calc", "0", "2000"), (1, "cpu 0", "reply", "2000", "1.5"),
        (1, "cpu 0", "recv", "2607.994", "1.5"), (1, "cpu 0", "calc", "2609.494", "0.007"),
        (1, "nic 0 in", "recv", "2008", "600.994")],
    "14_two_nics": [
        (0, "cpu 0", "send", "0", "1.5"), (0, "cpu 0", "send", "1.5", "1.5"),
        (0, "nic 0 out", "send", "0", "60.994"), (0, "nic 1 out", "send", "1.5", "60.994"),
        (1, "cpu 0", "recv", "63.994", "1.5"), (1, "cpu 0", "recv", "65.494", "1.5"),
        (1, "nic 0 in", "recv", "4", "60.994"), (1, "nic 1 in", "recv", "5.5", "60.994")],
}


def run(pinwheel, schedule, *options):
    """The result, and the events of the trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        done = subprocess.run([pinwheel, "goal", "run", "--json", "--trace", path, *options, schedule],
                              check=True, capture_output=True, text=True, timeout=60)
        with open(path, encoding="utf-8") as file:
            return (json.loads(done.stdout, parse_float=Decimal),
                    json.load(file, parse_float=Decimal)["traceEvents"])


def spans_of(events):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(e["pid"], names[e["pid"], e["tid"]], e["name"], e["ts"], e["dur"])
            for e in events if e["ph"] == "X"]


def check_golden(name, spans):
    expected = sorted((r, t, n, Decimal(x), Decimal(d)) for r, t, n, x, d in GOLDEN[name])
    if sorted(spans) != expected:
        sys.exit(f"{name}: {sorted(spans)}\nis not {expected}")


def check_rules(name, result, events):
    lanes = {}
    for rank, thread, _, begin, length in spans_of(events):
        lanes.setdefault((rank, thread), []).append((begin, begin + length))
    for lane, spans in lanes.items():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            if begin < end:
                sys.exit(f"{name}: two at once on {lane}")
    for rank, finish in enumerate(result["finish_ns"]):
        last = max((spans[-1][1] for (r, thread), spans in lanes.items()
                    if r == rank and thread.startswith("cpu")), default=0)
        if last * 1000 > finish:
            sys.exit(f"{name}: rank {rank} ends at {last}, after {finish}")
    arrows = {}
    for event in events:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], {})[event["ph"]] = event
            if not any(e["ph"] == "X" and (e["pid"], e["tid"], e["ts"]) ==
                       (event["pid"], event["tid"], event["ts"]) for e in events):
                sys.exit(f"{name}: {event} is outside of spans")
    if len(arrows) != result["messages"]:
        sys.exit(f"{name}: {len(arrows)} arrows, {result['messages']} messages")
    if any(a["s"]["ts"] > a["f"]["ts"] for a in arrows.values()):
        sys.exit(f"{name}: an arrow leads back in time")


def check_channels(name, result, events):
    """The network is one more process; its threads are channels."""
    network = result["ranks"]
    channels = [event for event in events if event["pid"] == network and event["ph"] == "X"]
    if len(channels) != result["network"]["channel_hops"]:
        sys.exit(f"{name}: {len(channels)} times on channels, {result['network']['channel_hops']} hops")
    sent = {(event["pid"], event["args"]["operation"], event["name"]): event["ts"]
            for event in events if event["ph"] == "X" and event["pid"] != network}
    for event in channels:
        kind = event["name"].split()[0]
        began = sent[event["args"]["rank"], event["args"]["operation"], kind]
        if event["ts"] < began:
            sys.exit(f"{name}: {event} is on its way before {began}")
    names = {span[1] for span in spans_of(events) if span[0] == network}
    busiest = result["network"].get("busiest_channel")
    if channels and busiest not in names:
        sys.exit(f"{name}: {busiest} is none of {names}")


def main():
    pinwheel, golden = sys.argv[1:]
    schedules = glob.glob(os.path.join(golden, "micro", "*.goal"))
    schedules += [os.path.join(golden, "bin", "dissemination_16_1.bin")]
    for schedule in schedules:
        name = os.path.basename(schedule).split(".")[0]
        for options in ([], ["-S", "0"], ["-O", "3", "-G", "0.5", "--threads", "2"],
                        ["-O", "3", "--noise", "exponential:period=3us,mean=1us"]):
            result, events = run(pinwheel, schedule, *options)
            check_rules(name, result, events)
            if name in GOLDEN and not options:
                check_golden(name, spans_of(events))
        for options in (["--network", "torus:4x4"],
                        ["--network", "fattree:radix=8", "--packet", "50", "-S", "0"],
                        ["--network", "dragonfly:a=4,h=2,p=2", "--routing", "adaptive"],
                        ["--network", "torus:4x4", "--noise", "uniform:period=3us,low=0,high=2us"]):
            result, events = run(pinwheel, schedule, *options)
            check_rules(name, result, events)
            check_channels(name, result, events)
    print(f"{len(schedules)} schedules")
    return 0 if len(schedules) == 19 else 1


if __name__ == "__main__":
    sys.exit(main())
