# SPDX-License-Identifier: BSD-3-Clause
"""Runs the one-sided tests of MPICH's suite with our windows preloaded, and judges them.

    suite.py SOURCE PROGRAMS openmpi|mpich LIBRARY [--selection FILE] [--only PATTERN]
             [--table FILE] [--outputs FOLDER] [--stock] [--expected FILE]

SOURCE is the unpacked mpich source, PROGRAMS the folder that build_suite.sh filled with the suite's
programs for that MPI, LIBRARY our preloadable library for it. A test is a line of a testlist:
program, processes, arguments. It passes if it says "No Errors", ends with status 0 and none of its
windows was the MPI's. With --stock those that do not pass run again without the library, too.

What does not pass has to stand in the file of expected outcomes, with its reason: MPI, TEST, REASON
with tabs between. Exit: 0 all as it must be; 1 not; 2 wrong use.
"""

import argparse
import collections
import fnmatch
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = (("rma", "testlist.in"), ("errors/rma", "testlist"))
SECONDS = 90
LAUNCH = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
    "mpich": ["mpiexec.hydra"],
}

Test = collections.namedtuple("Test", "name directory program processes arguments variables seconds")


def read_list(source, directory, name):
    with open(os.path.join(source, "test/mpi", directory, name), encoding="ascii") as file:
        lines = [line.split("#")[0].split() for line in file]
    for words in lines:
        if len(words) < 2 or words[0].startswith("@"):
            continue
        values = collections.defaultdict(list)
        for word in words[2:]:
            key, _, value = word.partition("=")
            values[key].append(value)
        seconds = max([SECONDS] + [int(value) for value in values["timeLimit"]])
        title = " ".join([f"{directory}/{words[0]}", words[1]] + values["arg"] +
                         [f"env={v}" for v in values["env"]])
        yield Test(title, directory, words[0], int(words[1]), values["arg"],
                   dict(v.split("=", 1) for v in values["env"]), seconds)


def run(test, options, library, scratch):
    """One test: (word, seconds, output)."""
    folder = os.path.join(options.programs, test.directory)
    if not os.access(os.path.join(folder, test.program), os.X_OK):
        return "not-built", 0, ""
    command = ["timeout", "-k", "5", str(test.seconds)] + LAUNCH[options.mpi] + \
        ["-n", str(test.processes)]
    if library:
        command += ["env", f"LD_PRELOAD={library}", "PINWHEEL_RMA_STATS=1"]
    command += ["./" + test.program] + test.arguments
    variables = {**os.environ, **test.variables, "OMPI_MCA_orte_tmpdir_base": scratch,
                 "OMPI_MCA_btl_base_warn_component_unused": "0"}
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    word = "fail"
    if done.returncode in (124, 128 + signal.SIGKILL, -signal.SIGKILL):
        word = "time"
    elif done.returncode == 0 and re.search(r"^ *No [Ee]rrors\s*$", output, re.M):
        word = "pass"
        if library and (re.search(r"calls of the MPI's windows: [1-9]", output) or
                        "is the MPI's" in output):
            word = "mpi"
    return word, time.monotonic() - start, output


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def expected_of(path, mpi):
    expected = {}
    for line in read_lines(path) if path else []:
        fields = line.split("\t")
        if len(fields) != 3:
            sys.exit(f"{path}: '{line}' is not MPI, TEST, REASON with tabs between")
        if fields[0] in (mpi, "both"):
            expected[fields[1]] = fields[2]
    return expected


def parse():
    parser = argparse.ArgumentParser(description="MPICH's one-sided tests with our windows")
    parser.add_argument("source")
    parser.add_argument("programs")
    parser.add_argument("mpi", choices=tuple(LAUNCH))
    parser.add_argument("library")
    parser.add_argument("--selection", help="a file of test names; only those run")
    parser.add_argument("--only", default="*", help="a pattern of test names")
    parser.add_argument("--table", help="a file for the outcome of every test")
    parser.add_argument("--outputs", help="a folder for what failing tests print")
    parser.add_argument("--expected", help="a file of tests that do not pass, with reasons")
    parser.add_argument("--stock", action="store_true",
                        help="what does not pass runs without the library, too")
    return parser.parse_args()


def main():
    options = parse()
    tests = [t for directory, name in LISTS for t in read_list(options.source, directory, name)]
    if options.selection:
        names = read_lines(options.selection)
        unknown = set(names) - {t.name for t in tests}
        if unknown:
            print(f"{options.selection}: the suite has no test '{unknown.pop()}'", file=sys.stderr)
            return 2
        tests = [t for t in tests if t.name in set(names)]
    tests = [t for t in tests if fnmatch.fnmatchcase(t.name, options.only)]
    expected = expected_of(options.expected, options.mpi)
    words, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="pw-rma-") as scratch, \
            open(options.table or os.devnull, "w", encoding="utf-8") as table:
        for test in tests:
            word, seconds, output = run(test, options, options.library, scratch)
            stock = "-"
            if word != "pass" and options.stock:
                stock = run(test, options, None, scratch)[0]
            good = word == "pass" or test.name in expected
            words[word] += 1
            wrong += not good
            print(test.name, word, f"{seconds:.1f}", stock, expected.get(test.name, ""), sep="\t",
                  file=table, flush=True)
            if not good:
                print(f"{test.name}: {word}, without our windows {stock}\n{output[-1500:]}",
                      flush=True)
            if options.outputs and word != "pass":
                name = re.sub(r"[^\w.=-]", "_", test.name) + ".txt"
                with open(os.path.join(options.outputs, name), "w", encoding="utf-8") as file:
                    file.write(output)
    print(f"{len(tests)} tests: " + ", ".join(f"{n} {w}" for w, n in sorted(words.items())) +
          f"; {wrong} not as they must be")
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
