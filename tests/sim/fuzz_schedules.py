# SPDX-License-Identifier: BSD-3-Clause
"""Compares `pinwheel goal run` with the reference on random schedules.

    fuzz_schedules.py PINWHEEL [--seeds N] [--first SEED] [--model M] [--threads N] [--keep-going]
                      [--with noise|network|both]

Both models run on every seed; finish times and exit statuses must agree. A disagreement
is printed with its seed and the smallest schedule found that still shows it. Noise and
packet networks are those of the default model.
"""

import argparse
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import backend  # noqa: E402
import generate  # noqa: E402
import schedule  # noqa: E402
import simulate  # noqa: E402

MODELS = ("pinwheel", "loggopsim")


def case(seed, model, more=None, folder=None):
    """The schedule, parameters and file format of a seed, with noise or on a network if `more`
    says so, in files of `folder`: then not of sizes and lengths that take a detour, or a packet,
    for ever."""
    rng = random.Random(seed)
    style = rng.choice(("ties", "ties", "plain", "plain", "extreme" if seed % 8 == 0 else "mixed"))
    if more is not None and style not in ("ties", "plain"):
        style = "plain"
    ranks = generate.random_schedule(rng, style, large=seed % 50 == 0)
    # The default model takes whole numbers too; loggopsim must refuse fractions.
    whole = rng.random() < (0.98 if model == "loggopsim" else 0.3)
    texts, binary = generate.pick_parameters(rng, style, whole), rng.random() < 0.5
    if more in ("noise", "both"):
        texts.update(generate.pick_noise(rng, style, os.path.join(folder, "noise.txt")))
    if more in ("network", "both"):
        del texts["L"]
        texts.update(generate.pick_network(rng, style, len(ranks), os.path.join(folder, "net.dot")))
    return ranks, texts, binary


def differ(reference, tool, ranks, model, texts, binary):
    """The two outcomes, if they disagree."""
    expected = reference.run(ranks, model, texts)
    seen = tool.run(ranks, model, texts, binary)
    return None if expected[:2] == seen[:2] else (expected, seen)


def clone(ranks):
    return [[op.clone() for op in rank] for rank in ranks]


def without(ranks, gone):
    """The schedule without the operations in `gone`, pairs of rank and number."""
    result = clone(ranks)
    for r in {r for r, _ in gone}:
        rank = result[r]
        keep = [i for i in range(len(rank)) if (r, i) not in gone]
        place = {old: new for new, old in enumerate(keep)}
        for i, op in enumerate(rank):
            for name in ("after_end", "after_start"):
                successors = getattr(op, name)
                if i not in place:
                    for j in successors:
                        rank[j].waits -= 1
                setattr(op, name, [place[j] for j in successors if j in place])
        result[r] = [rank[i] for i in keep]
    return result


def units(ranks):
    """What can go by itself: a message with its recv, or a single operation."""
    taken = set()
    for r, rank in enumerate(ranks):
        for i, op in enumerate(rank):
            if op.kind != schedule.SEND:
                continue
            unit = {(r, i)}
            for j, other in enumerate(ranks[op.peer]):
                if (other.kind == schedule.RECV and (op.peer, j) not in taken
                        and schedule.matches(other, r, op.tag)):
                    unit.add((op.peer, j))
                    break
            taken |= unit
            yield unit
    for r, rank in enumerate(ranks):
        for i, op in enumerate(rank):
            if (r, i) not in taken:
                yield {(r, i)}


def less_dependent(ranks):
    """The schedule with one dependency less, for each; and without an idle last rank."""
    for r, rank in enumerate(ranks):
        for i, op in enumerate(rank):
            for name in ("after_end", "after_start"):
                for k in range(len(getattr(op, name))):
                    result = clone(ranks)
                    result[r][getattr(result[r][i], name).pop(k)].waits -= 1
                    yield result
    if len(ranks) > 1 and not ranks[-1] and all(
            op.kind == schedule.CALC or op.peer in (schedule.ANY, *range(len(ranks) - 1))
            for rank in ranks for op in rank):
        yield clone(ranks[:-1])


def minimise(reference, tool, ranks, model, texts, binary, seconds=60):
    """Removes what can go while the two still disagree in the same way."""
    def way(candidate):
        difference = differ(reference, tool, candidate, model, texts, binary)
        return difference and tuple(outcome.status for outcome in difference)

    wanted, end = way(ranks), time.time() + seconds
    parts = list(units(ranks))
    chunk = len(parts)
    while chunk >= 1:
        at, smaller = 0, False
        while at < len(parts) and time.time() < end:
            candidate = without(ranks, set().union(*parts[at:at + chunk]))
            if way(candidate) == wanted:
                ranks, smaller = candidate, True
                parts = list(units(ranks))
            else:
                at += chunk
        chunk = min(chunk // 2, len(parts)) if chunk > 1 or not smaller else 1
    shrunk = True
    while shrunk and time.time() < end:
        shrunk = False
        for candidate in less_dependent(ranks):
            if way(candidate) == wanted:
                ranks, shrunk = candidate, True
                break
        for unit in list(units(ranks)) + [{(r, i)} for r, rank in enumerate(ranks)
                                          for i in range(len(rank))]:
            candidate = without(ranks, unit)
            if way(candidate) == wanted:
                ranks, shrunk = candidate, True
                break
    return ranks


def show(seed, model, texts, ranks, difference):
    options = " ".join(f"{'-' if len(name) == 1 else '--'}{name} {text}"
                       for name, text in texts.items())
    print(f"seed {seed}: goal run --model={model} {options}")
    for side, outcome in zip(("reference", "pinwheel "), difference):
        times = "" if outcome.times is None else [simulate.nanoseconds(ps) for ps in outcome.times]
        print(f"  {side}: status {outcome.status} {times} {outcome.message.strip()[:300]}")
    print(schedule.write_text(ranks))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pinwheel")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--threads", help="of the tool")
    parser.add_argument("--with", dest="more", choices=("noise", "network", "both"))
    parser.add_argument("--keep-going", action="store_true", help="report every seed that fails")
    args = parser.parse_args()
    reference, tool = backend.Reference(), backend.Tool(args.pinwheel, args.threads)
    statuses, failures = {}, 0
    with open(os.path.join(tool.folder.name, "noise.txt"), "w", encoding="ascii") as file:
        file.write(generate.NOISE_TRACE)
    for seed in range(args.first, args.first + args.seeds):
        for model in ("pinwheel",) if args.more else (args.model,) if args.model else MODELS:
            ranks, texts, binary = case(seed, model, args.more, tool.folder.name)
            expected = reference.run(ranks, model, texts)
            seen = tool.run(ranks, model, texts, binary)
            statuses[expected.status] = statuses.get(expected.status, 0) + 1
            if expected[:2] == seen[:2]:
                continue
            failures += 1
            ranks = minimise(reference, tool, ranks, model, texts, binary)
            show(seed, model, texts, ranks, differ(reference, tool, ranks, model, texts, binary))
            if not args.keep_going:
                return 1
    print(f"{args.seeds} seeds, {failures} disagreements; expected exit statuses: {statuses}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
