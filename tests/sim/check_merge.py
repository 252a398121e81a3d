# SPDX-License-Identifier: BSD-3-Clause
"""Holds `pinwheel goal merge` against the jobs that it merges.

    check_merge.py PINWHEEL [--seeds N] [--first SEED]

On random jobs: where no node is shared and ranks keep their order, each rank of each job
finishes exactly when it does alone, later by the job's start. Jobs that share nodes, with
nics that cost nothing, finish so too, each as a whole: so nothing of one met another's,
whatever sources are left open. By lot, the merged schedule has each job's operations at
its nodes, peers and all. Open tags at shared nodes are refused.
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

import generate  # noqa: E402
import schedule  # noqa: E402
from schedule import ANY, CALC, SEND  # noqa: E402


class Tool:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def call(self, *words):
        return subprocess.run([self.path, "goal", *words], capture_output=True, text=True,
                              timeout=60, cwd=self.folder, check=False)

    def write(self, name, ranks, binary):
        data = schedule.write_binary(ranks) if binary else schedule.write_text(ranks).encode()
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def run(self, name, texts, *words):
        """The JSON of a run, or None if it gave no times."""
        options = [word for key, text in texts.items() for word in ("-" + key, text)]
        done = self.call("run", "--json", *options, *words, name)
        if done.returncode != 0:
            assert done.returncode == 1, done.stderr
            return None
        return json.loads(done.stdout, parse_float=Decimal, parse_int=Decimal)

    def merge(self, *words):
        done = self.call("merge", "-o", "all.bin", "--jobs", "all.jobs", *words)
        assert done.returncode == 0, done.stderr
        with open(os.path.join(self.folder, "all.jobs"), encoding="ascii") as file:
            return [nodes_of(line.split()[0]) for line in file]


def nodes_of(text):
    nodes = []
    for item in text.split(","):
        ends, _, step = item.partition(":")
        first, _, last = ends.partition("-")
        nodes += range(int(first), int(last or first) + 1, int(step or 1))
    return nodes


def rising_nodes(rng, jobs, total, share):
    """Nodes for each job, in the order of its ranks."""
    free, lines = list(range(total)), []
    for ranks in jobs:
        nodes = sorted(rng.sample(free, len(ranks)))
        if not share:
            free = [node for node in free if node not in nodes]
        lines.append(nodes)
    return lines


def write_placement(tool, lines):
    with open(os.path.join(tool.folder, "place"), "w", encoding="ascii") as file:
        for nodes in lines:
            file.write(",".join(map(str, nodes)) + "\n")


def close_tags(ranks):
    for rank in ranks:
        for op in rank:
            op.tag = 0 if op.tag == ANY else op.tag


def check_times(tool, merged, solos, placed, starts, jobs):
    """Whether ranks of all jobs finish as they did alone, but for the start."""
    for i, (solo, nodes, start) in enumerate(zip(solos, placed, starts)):
        seen = [merged["finish_ns"][node] for node in nodes]
        expected = [time + start if rank else time for time, rank in zip(solo["finish_ns"], jobs[i])]
        if seen != expected:
            return f"job {i}: {seen}, alone {expected}"
        if merged["jobs"][i]["finish_ns"] != max(expected):
            return f"job {i} finishes at {merged['jobs'][i]}, not {max(expected)}"
    idle = set(range(len(merged["finish_ns"]))) - {node for nodes in placed for node in nodes}
    return "an idle node finishes" if any(merged["finish_ns"][node] for node in idle) else None


def mapped(jobs, placed, nodes):
    """What the merged schedule must be, without starts."""
    result = [[] for _ in range(nodes)]
    for ranks, place in zip(jobs, placed):
        for number, rank in enumerate(ranks):
            for op in rank:
                op = op.clone()
                if op.kind != CALC and op.peer != ANY:
                    op.peer = place[op.peer]
                result[place[number]].append(op)
    return result


def check_apart(rng, tool, jobs, files, solos, texts):
    starts = [rng.choice((0, 0, 1, 5000, rng.randrange(10**6))) for _ in jobs]
    total = sum(map(len, jobs)) + rng.choice((0, 0, 3))
    how = rng.choice(("packed", "interleaved", "place"))
    write_placement(tool, rising_nodes(rng, jobs, total, False))
    placed = tool.merge(*files, "--placement", how, "--nodes", str(total),
                        "--start", ",".join(map(str, starts)))
    merged = tool.run("all.bin", texts, "--jobs", "all.jobs")
    if merged is None or None in solos:
        return None if merged is None and None in solos else "only one of them cannot finish"
    return check_times(tool, merged, solos, placed, starts, jobs)


def check_scattered(rng, tool, jobs, files):
    total = sum(map(len, jobs)) + rng.choice((0, 5))
    placed = tool.merge(*files, "--placement", "random", "--seed", str(rng.randrange(100)),
                        "--nodes", str(total))
    with open(os.path.join(tool.folder, "all.bin"), "rb") as file:
        seen = file.read()
    if seen != schedule.write_binary(mapped(jobs, placed, total)):
        return f"by lot: other operations than at {placed}"
    text = tool.call("merge", "--text", "--placement", "random", "--nodes", str(total), *files)
    again = tool.call("merge", "--placement", "random", "--nodes", str(total), *files, "-o", "2.bin")
    assert text.returncode == again.returncode == 0, text.stderr + again.stderr
    with open(os.path.join(tool.folder, "text.goal"), "w", encoding="ascii") as file:
        file.write(text.stdout)
    assert tool.call("compile", "text.goal", "-o", "text.bin").returncode == 0
    with open(os.path.join(tool.folder, "text.bin"), "rb") as a, \
            open(os.path.join(tool.folder, "2.bin"), "rb") as b:
        return None if a.read() == b.read() else "the text is another schedule"


def check_shared(rng, tool, jobs, files, texts):
    """Nics that cost nothing, so that jobs on one node, with cpus of their own, are alone."""
    texts = {**texts, "g": "0", "G": "0"}
    place = rising_nodes(rng, jobs, max(map(len, jobs)) + rng.randrange(3), True)
    write_placement(tool, place)
    shared = len({node for nodes in place for node in nodes}) < sum(map(len, place))
    open_tags = any(op.tag == ANY for ranks in jobs for rank in ranks for op in rank)
    if open_tags and shared:
        done = tool.call("merge", *files, "-o", "all.bin", "--share", "--placement", "place")
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 1 and "with any tag at node" not in done.stderr:
            return f"refused because of {done.stderr}"
        meets = [node for node in {n for nodes in place for n in nodes}
                 if sum(node in nodes for nodes in place) > 1]
        touches = any(op.tag == ANY and place[i][op.peer if op.kind == SEND else number] in meets
                      for i, ranks in enumerate(jobs) for number, rank in enumerate(ranks)
                      for op in rank)
        return None if touches == (done.returncode == 1) else "open tags where jobs meet"
    solos = [tool.run(file, texts) for file in files]
    tool.merge(*files, "--share", "--placement", "place")
    merged = tool.run("all.bin", texts, "--jobs", "all.jobs")
    if merged is None or None in solos:
        return None if merged is None and None in solos else "shared: only one cannot finish"
    seen = [job["finish_ns"] for job in merged["jobs"]]
    expected = [solo["max_ns"] for solo in solos]
    return None if seen == expected else f"shared: {seen}, alone {expected}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pinwheel")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    finished = 0
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(os.path.abspath(args.pinwheel), folder)
        for seed in range(args.first, args.first + args.seeds):
            rng = random.Random(seed)
            style = rng.choice(("ties", "plain"))
            jobs = [generate.random_schedule(rng, style) for _ in range(rng.choice((2, 2, 3)))]
            if rng.random() < 0.5:
                for ranks in jobs:
                    close_tags(ranks)
            texts = generate.pick_parameters(rng, style, False)
            files = [f"{i}.goal" for i in range(len(jobs))]
            for file, ranks in zip(files, jobs):
                tool.write(file, ranks, rng.random() < 0.5)
            solos = [tool.run(file, texts) for file in files]
            finished += None not in solos
            wrong = (check_apart(rng, tool, jobs, files, solos, texts)
                     or check_scattered(rng, tool, jobs, files)
                     or check_shared(rng, tool, jobs, files, texts))
            if wrong is not None:
                print(f"seed {seed}, {texts}: {wrong}")
                return 1
    print(f"{args.seeds} seeds, all jobs finish in {finished}")
    return 0 if finished >= args.seeds // 5 else 1


if __name__ == "__main__":
    sys.exit(main())
