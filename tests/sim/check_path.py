# SPDX-License-Identifier: BSD-3-Clause
"""Holds what `pinwheel goal run --critical-path` says against the schedule.

    check_path.py PINWHEEL [--seeds N] [--first SEED] [--network] [--noise]

On random schedules: the path begins at time 0 and ends at the last finish; the parts of
every step fill the time to the next one, so that the sums add up to the finish; a step
that comes after an operation is one that the schedule makes wait for it; messages come
from a send to its peer; who waits for a cpu or nic waits for one that the other uses. Two
threads find the same path. With --network the schedules run on packet networks, where
the finish times are those of a run without a record. With --noise the detours are those
of the reference, which each step holds as long as its cpu was taken.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from decimal import Decimal

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import fuzz_schedules  # noqa: E402
import generate  # noqa: E402
import noise  # noqa: E402
import schedule  # noqa: E402

PARTS = ("o_ns", "g_ns", "G_ns", "L_ns", "O_ns", "calc_ns", "noise_ns")
WAY = {"path_ns", "serialisation_ns", "queueing_ns"}
MAY_HOLD = {
    "after end": {"o_ns", "G_ns", "O_ns", "calc_ns", "noise_ns"},
    "cpu free": {"o_ns", "O_ns", "calc_ns", "noise_ns", "wait_ns"},
    "nic free": {"g_ns", "G_ns", "wait_ns"},
    "message": {"o_ns", "L_ns", "noise_ns"},
    "last byte": {"o_ns", "L_ns", "O_ns", "G_ns", "noise_ns"},
    "after start": set(),
    "posted": set(),
}


MAY_HOLD_ON_NETWORK = {**MAY_HOLD, "after end": MAY_HOLD["after end"] | WAY - {"path_ns"},
                       "message": {"o_ns", "noise_ns"} | WAY,
                       "last byte": {"o_ns", "G_ns", "noise_ns"} | WAY}


def length(step):
    return sum(step.get(part, 0) for part in PARTS) + sum(step.get(part, 0) for part in WAY)


def link_is_true(ranks, before, step):
    """Whether `before` can be what `step` says it waited for."""
    why = step["why"]
    a, b = (ranks[s["rank"]][s["operation"]] for s in (before, step))
    same_rank = before["rank"] == step["rank"]
    if why == "after end":
        return same_rank and step["operation"] in a.after_end
    if why == "after start":
        return same_rank and step["operation"] in a.after_start
    if why == "posted":
        return same_rank and before["operation"] == step["operation"] and before["step"] == "post"
    if why == "cpu free":
        return same_rank and a.cpu == b.cpu
    if why == "nic free":
        return same_rank and a.nic == b.nic
    if why == "message" and step["step"] == "data":
        return before["step"] == "reply" and b.peer == before["rank"]
    if why == "last byte" and before["step"] == "in":
        return same_rank and before["operation"] == step["operation"]
    return before["step"] in ("send", "request", "data") and a.peer == step["rank"]


def noise_is_true(detours, step, why):
    """Whether a step is longer by what the reference says; `why` is of the one after it."""
    work = step.get("o_ns", 0)
    if why in ("after end", "cpu free") and not {"G_ns", "serialisation_ns"} & set(step):
        work += step.get("O_ns", 0) + step.get("calc_ns", 0)
    begin, work = int(step["time_ns"] * 1000), int(work * 1000)
    added = detours.end(step["rank"], begin, work) - begin - work if detours else 0
    return step.get("noise_ns", 0) * 1000 == added


def check(ranks, result, may_hold, detours):
    """What is wrong with a result, or None."""
    path = result["critical_path"]
    steps = path["steps"]
    if path["end_ns"] != result["max_ns"]:
        return "ends elsewhere"
    if not steps:
        return None if result["max_ns"] == 0 and not ranks[result["last_rank"]] else "no steps"
    if length(path) != path["end_ns"]:
        return f"parts add up to {length(path)}, not {path['end_ns']}"
    for part in {*PARTS, *WAY, "wait_ns"} & set(path):
        if path[part] != sum(s.get(part, 0) for s in steps):
            return f"the sum of {part}"
    if steps[0]["why"] != "at once" or steps[0]["time_ns"] != 0:
        return "begins elsewhere"
    if steps[-1]["rank"] != result["last_rank"]:
        return "ends at another rank"
    ends = [s["time_ns"] for s in steps[1:]] + [path["end_ns"]]
    for step, end in zip(steps, ends):
        if step["time_ns"] + length(step) != end:
            return f"a gap after {step}"
    for step, why in zip(steps, [s["why"] for s in steps[1:]] + ["after end"]):
        if not noise_is_true(detours, step, why):
            return f"the noise of {step}"
    for before, step in zip(steps, steps[1:]):
        if {key for key in before if key in {*PARTS, *WAY, "wait_ns"}} - may_hold[step["why"]]:
            return f"{before} is not what {step} waits for"
        if not link_is_true(ranks, before, step):
            return f"{step} does not wait for {before}"
    return None


def pick_network(rng, texts):
    """A network for up to 50 ranks, as options; texts lose what it has no use for."""
    texts.pop("L", None)
    return ["--network", rng.choice(("torus:8x8", "torus:4x4x4", "fattree:radix=12,levels=2",
                                     "fattree:radix=8,levels=3", "dragonfly:a=4,h=2,p=2")),
            "--routing", rng.choice(("static", "adaptive")),
            "--switching", rng.choice(("cut-through", "store-and-forward")),
            "--packet", rng.choice(("64", "1000", "4096")), "--buffer", rng.choice(("4096", "65536")),
            "--link-rate", rng.choice(("400Gbit/s", "1Gbit/s", "3GB/s")),
            "--placement", rng.choice(("linear", "random")), "--hop-latency", rng.choice("05")]


def call(pinwheel, texts, path, *words):
    command = [pinwheel, "goal", "run", "--json", *words]
    for name, text in texts.items():
        command += [f"-{name}" if len(name) == 1 else f"--{name}", text]
    done = subprocess.run(command + [path], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    if done.returncode != 0:
        return None
    return json.loads(done.stdout, parse_float=Decimal, parse_int=Decimal)


def run(pinwheel, texts, path, *words):
    result = call(pinwheel, texts, path, "--critical-path", *words)
    if result is None:
        return None
    for step in result["critical_path"]["steps"]:
        step["rank"], step["operation"] = int(step["rank"]), int(step["operation"])
    result["last_rank"] = int(result["last_rank"])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pinwheel")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--noise", action="store_true")
    args = parser.parse_args()
    checked, noisy, reasons = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "schedule.goal")
        trace = os.path.join(folder, "noise.txt")
        with open(trace, "w", encoding="ascii") as file:
            file.write(generate.NOISE_TRACE)
        for seed in range(args.first, args.first + args.seeds):
            ranks, texts, _ = fuzz_schedules.case(seed, "pinwheel")
            with open(path, "w", encoding="ascii") as file:
                file.write(schedule.write_text(ranks))
            network = pick_network(random.Random(seed), texts) if args.network else []
            detours = None
            if args.noise:
                rng = random.Random(seed)
                texts.update(generate.pick_noise(rng, rng.choice(("ties", "plain")), trace))
                detours = noise.Noise(texts["noise"], int(texts["seed"]))
            if (args.network or args.noise) and seed % 8 == 0:
                continue  # sizes of which there would be too many packets, lengths of too many detours
            result = run(args.pinwheel, texts, path, *network)
            if result is None:
                continue  # it cannot finish, or a time is too late: fuzz_schedules.py
            wrong = check(ranks, result, MAY_HOLD_ON_NETWORK if args.network else MAY_HOLD,
                          detours)
            if wrong is None and not args.network and run(
                    args.pinwheel, texts, path, "--threads=2")["critical_path"] != result["critical_path"]:
                wrong = "two threads find another path"
            if wrong is None and (args.network or args.noise) and call(
                    args.pinwheel, texts, path, *network)["finish_ns"] != result["finish_ns"]:
                wrong = "with a record the times are others"
            if wrong is not None:
                print(f"seed {seed}, {texts}: {wrong}\n{schedule.write_text(ranks)}")
                return 1
            checked += 1
            noisy += result["critical_path"].get("noise_ns", 0) > 0
            reasons |= {step["why"] for step in result["critical_path"]["steps"]}
    missing = set(MAY_HOLD) - reasons
    print(f"{args.seeds} seeds, {checked} paths, {noisy} with noise")
    if checked < args.seeds // 4 or missing or (args.noise and noisy < checked // 2):
        print(f"too few to say anything; never seen: {missing}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
