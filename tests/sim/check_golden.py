# SPDX-License-Identifier: BSD-3-Clause
"""Holds golden times and the document's examples against the reference, or the tool.

    check_golden.py GOLDEN-FOLDER DOCUMENT [--pinwheel PATH]

GOLDEN-FOLDER has loggops/expected.tsv (model loggopsim) and pinwheel/expected.tsv (model
pinwheel); both name schedules of loggops/, each also there as loggops/bin/*.bin. DOCUMENT
is docs/loggops-model.md, whose examples give the times of both models.
"""

import argparse
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import backend  # noqa: E402
import schedule  # noqa: E402
import simulate  # noqa: E402


def options(words):
    """{"L": "2500", ...} from "-L 2500 ..."."""
    words = words.split()
    return {name.lstrip("-"): value for name, value in zip(words[::2], words[1::2])}


def golden_cases(folder):
    """Name, schedule, model, parameters and expected words of each golden row, twice: from
    the text and from the binary file."""
    for table, model in (("loggops", "loggopsim"), ("pinwheel", "pinwheel")):
        with open(os.path.join(folder, table, "expected.tsv"), encoding="ascii") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
        for name, parameters, times in rows:
            stem = os.path.basename(name).removesuffix(".goal")
            for path in (name, f"bin/{stem}.bin"):
                yield (path, os.path.join(folder, "loggops", path), model, options(parameters),
                       times.split())


def example_text(line):
    """GOAL text of an example on one line: `rank 0 { a; b }  rank 1 { c }`."""
    ranks = re.findall(r"rank \d+ \{([^}]*)\}", line)
    text = f"num_ranks {len(ranks)}\n"
    for r, body in enumerate(ranks):
        text += f"rank {r} {{\n" + "".join(op.strip() + "\n" for op in body.split(";")) + "}\n"
    return text


def document_cases(path):
    """Name, schedule, model, parameters and expected words of the document's examples."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    pattern = r"^(\d+)\. (?:.*\n)+? +`(?:(-[^:`]*): )?(rank 0.*)`\n +loggopsim (.*?) · pinwheel (.*)$"
    for number, parameters, line, theirs, ours in re.findall(pattern, text, re.M):
        ranks = schedule.read_text(example_text(line))
        for model, words in (("loggopsim", theirs), ("pinwheel", ours)):
            times = re.match(r"[0-9. ]*", words).group().split()
            yield f"difference {number}", ranks, model, options(parameters), times
    program = re.search(r"((?:^       .*\n)+)", text, re.M).group(1)
    ranks = schedule.read_text(program)
    for latency, finish in re.findall(r"-L (\d+)`[^`]*?rank\s+0\s+finishes\s+at\s+(\d+)", text):
        free = {"L": latency, "o": "0", "g": "0", "G": "0", "O": "0"}
        yield f"example with L {latency}", ranks, "pinwheel", free, [finish]


class Check:
    def __init__(self):
        self.rows, self.wrong = 0, 0

    def same(self, name, model, outcome, words):
        """`words` may be the times of the first ranks only, or empty for a refusal."""
        self.rows += 1
        seen = [] if outcome.times is None else [simulate.nanoseconds(ps) for ps in outcome.times]
        if bool(words) != (outcome.status == 0) or seen[:len(words)] != words:
            self.wrong += 1
            print(f"{name}, {model}: expected {words}, got status {outcome.status} {seen}"
                  f" {outcome.message}")


def compare_all(check, tool, folder):
    """Every golden schedule, also those without golden times, in the default model."""
    fractional = {"L": "283.6", "o": "65", "g": "6.7", "G": "20.000003ps", "O": "0.5ps", "S": "1024"}
    for where in ("micro", "goal"):
        for file in sorted(os.listdir(os.path.join(folder, "loggops", where))):
            path = os.path.join(folder, "loggops", where, file)
            for texts in ({}, fractional):
                expected = backend.Reference().run(schedule.read(path), "pinwheel", texts)
                words = [simulate.nanoseconds(ps) for ps in expected.times]
                check.same(file, "pinwheel", tool.run_file(path, "pinwheel", texts), words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("document")
    parser.add_argument("--pinwheel")
    args = parser.parse_args()
    runner = backend.Tool(args.pinwheel) if args.pinwheel else backend.Reference()
    check, examples = Check(), Check()
    for name, path, model, texts, words in golden_cases(args.folder):
        if args.pinwheel:
            outcome = runner.run_file(path, model, texts)
        else:
            outcome = runner.run(schedule.read(path), model, texts)
        check.same(name, model, outcome, words)
        if outcome.times is not None and len(outcome.times) != len(words):
            check.same(name + " (number of ranks)", model, outcome, words + ["missing"])
    if args.pinwheel:
        compare_all(check, runner, args.folder)
    for name, ranks, model, texts, words in document_cases(args.document):
        examples.same(name, model, runner.run(ranks, model, texts), words)
    if check.rows < 2 * (31 + 23) or examples.rows < 24:
        print(f"only {check.rows} golden rows and {examples.rows} examples were found")
        return 1
    print(f"{runner.name}: {check.rows} golden rows, {check.wrong} wrong;"
          f" {examples.rows} examples, {examples.wrong} wrong")
    return check.wrong + examples.wrong > 0


if __name__ == "__main__":
    sys.exit(main())
