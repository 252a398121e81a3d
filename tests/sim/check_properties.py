# SPDX-License-Identifier: BSD-3-Clause
"""What docs/loggops-model.md says can be relied on, tried on random schedules.

    check_properties.py [--seeds N] [--first SEED] [--pinwheel PATH]

closed forms of one message; more latency never helps a program in order; names of ranks
do not matter. On the reference, or with --pinwheel on the tool.
"""

import argparse
import os
import random
import sys
from fractions import Fraction

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import backend  # noqa: E402
import generate  # noqa: E402
import parameters  # noqa: E402
import pinwheel  # noqa: E402
import schedule  # noqa: E402
from schedule import ANY, CALC, RECV, SEND, Operation  # noqa: E402


class Failure(Exception):
    pass


def closed_form(rng, runner):
    """One message between idle ranks."""
    texts = generate.pick_parameters(rng, "plain", False)
    size = generate.pick_size(rng, "plain")
    send, recv = Operation(SEND, size, 1), Operation(RECV, size, 0)
    times = runner.run([[send], [recv]], "pinwheel", texts).times
    p, s = parameters.parse(texts), max(size, 1)
    L, o = Fraction(p["L"], parameters.PS), Fraction(p["o"], parameters.PS)
    G, O = (round(Fraction((s - 1) * p[name], parameters.PS)) for name in "GO")
    if s <= p["S"]:
        expected = [o + O, 2 * o + L + max(G, O) + O]
    else:
        expected = [3 * o + 2 * L + max(G, O), 4 * o + 3 * L + max(G, O) + O]
    if times != expected:
        raise Failure(f"one message of {size} bytes with {texts}: {times}, not {expected}")
    return True


def monotone(rng, runner):
    """No finish time of an ordered program falls when L grows."""
    style = rng.choice(("ties", "plain"))
    ranks = generate.ordered_schedule(rng, style)
    texts = generate.pick_parameters(rng, style, rng.random() < 0.5)
    latency = parameters.parse(texts)["L"] // parameters.PS
    before = runner.run(ranks, "pinwheel", {**texts, "L": f"{latency}ps"})
    if before.times is None:
        raise Failure(f"an ordered program cannot finish: {before.message}\n"
                      + schedule.write_text(ranks))
    for _ in range(4):
        latency += rng.choice((1, 1000, rng.randrange(10**4), rng.randrange(10**7)))
        after = runner.run(ranks, "pinwheel", {**texts, "L": f"{latency}ps"})
        if any(new < old for old, new in zip(before.times, after.times)):
            raise Failure(f"L up to {latency}ps with {texts}: {before.times} fell to {after.times}\n"
                          + schedule.write_text(ranks))
        before = after
    return True


class Watched(pinwheel.Simulation):
    """A simulation that notices arrivals of one moment at one rank from different ranks."""

    def __init__(self, ranks, p):
        super().__init__(ranks, p)
        self.seen, self.tie = {}, False

    def note(self, now, dest, source):
        self.tie |= self.seen.setdefault((now, dest), source) != source

    def arrives(self, now, first, message):
        self.note(now, message.op.peer, message.source)
        super().arrives(now, first, message)

    def reply_arrives(self, now, message):
        self.note(now, message.source, message.dest)
        super().reply_arrives(now, message)

    def bring_in(self, now, message):
        if not message.eager:
            self.note(now, message.dest, message.source)
        super().bring_in(now, message)


def renamed(ranks, name):
    """The schedule with rank r called name[r]."""
    result = [None] * len(ranks)
    for r, rank in enumerate(ranks):
        result[name[r]] = []
        for op in rank:
            new = Operation(op.kind, op.size, op.peer, op.tag, op.cpu, op.nic)
            new.waits, new.after_end, new.after_start = op.waits, op.after_end, op.after_start
            if op.kind != CALC and op.peer != ANY:
                new.peer = name[op.peer]
            result[name[r]].append(new)
    return result


def nameless(rng, runner):
    """Renaming ranks renames the finish times, unless arrivals tie (then: not tried)."""
    style = rng.choice(("ties", "plain", "plain", "plain"))
    ranks = generate.random_schedule(rng, style)
    texts = generate.pick_parameters(rng, style, rng.random() < 0.5)
    p = parameters.parse(texts)
    watched = Watched(ranks, p)
    try:
        watched.run()
    except parameters.SimulationError:
        return False
    before = runner.run(ranks, "pinwheel", texts)
    if watched.tie or p["L"] + p["o"] == 0 or before.times is None:
        return False
    name = list(range(len(ranks)))
    rng.shuffle(name)
    after = runner.run(renamed(ranks, name), "pinwheel", texts)
    if after.times is None or [after.times[new] for new in name] != before.times:
        raise Failure(f"names {name} with {texts}: {before.times} became {after.times}"
                      f" {after.message}\n" + schedule.write_text(ranks))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--pinwheel")
    args = parser.parse_args()
    runner = backend.Tool(args.pinwheel) if args.pinwheel else backend.Reference()
    for holds in (closed_form, monotone, nameless):
        tried = 0
        for seed in range(args.first, args.first + args.seeds):
            try:
                tried += holds(random.Random(seed), runner)
            except Failure as failure:
                print(f"{holds.__name__}, seed {seed}: {failure}")
                return 1
        print(f"{holds.__name__}: {tried} of {args.seeds} seeds tried, all hold")
        if 3 * tried < args.seeds:
            print("too few to mean anything")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
