# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPICH's test suite over Open MPI's stock transport and over Portals, and compares.

    mpich_suite.py SOURCE PROGRAMS PLUGINS [--selection FILE] [--only PATTERN]
                   [--stock all|failures] [--table FILE [--resume]] [--outputs FOLDER]
                   [--scale N] [--places N]

SOURCE is the unpacked mpich source, PROGRAMS the folder that build_mpich.sh filled, PLUGINS
the one that build_openmpi.sh filled. A test is one line of a testlist of the suite: program,
processes, arguments. What passes over the stock transport must pass over Portals. A test that
fails over both must stand in mpich_expected.tsv, with its reason; so must one whose failure
over Portals is not Portals' own.

With `--stock failures` a test runs over the stock transport only if it failed over Portals
and that is not what is expected of it: what passes over Portals needs no comparison.

Tests run side by side, as many as have a place for each of their processes; one of more
processes than there are places runs alone. A test that took too long beside others runs again
alone at the end, and that counts; the summary names it.

The table (FILE) has a line a test, in the order in which they ended: its name, outcome and
seconds over each transport, and what that means. With `--resume` what it already has is kept,
and what it lacks or has as wrong runs. Standard output has the summary. Exit: 0 all as it must
be; 1 not; 2 wrong use.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DIRECTORIES = ("attr", "comm", "datatype", "pt2pt", "coll", "rma")
GENERATED = ("attr", "pt2pt", "coll")  # of these, data type tests; why not rma's: README.md
TRANSPORTS = ("portals", "stock")
SECONDS = 60  # of one test, and 3 a process; a testlist's timeLimit replaces it when longer
SECONDS_LISTED = 15  # of a test that is expected to fail: some never end, so it is not scaled
PLACES = min(2 * os.cpu_count(), 16)  # processes at a time: they wait more than they compute
TIMES_SLOW = 5  # the limit of one that is listed as slow
EXPECTED = ("both", "portals", "unsteady", "slow", "not-built")

Test = collections.namedtuple("Test", "name program processes arguments seconds")
Outcome = collections.namedtuple("Outcome", "word seconds output")
NOT_RUN = Outcome("-", 0, "")


def read_testlist(path, directory):
    """The tests of one directory, less those for large memory or beyond the MPI standard. Lines
    that set variables of MPICH are repetitions over another MPI, and are left out too."""
    with open(path, encoding="ascii") as file:
        lines = [line.split("#")[0].split() for line in file]
    for words in lines:
        if not words or words[0].startswith("@"):
            continue
        values = collections.defaultdict(list)
        for word in words[2:]:
            key, _, value = word.partition("=")
            values[key].append(value)
        if values["env"] or "false" in (value.lower() for value in values["strict"]):
            continue
        seconds = max([SECONDS + 3 * int(words[1])] +
                      [int(value) for value in values["timeLimit"]])
        program = f"{directory}/{words[0]}"
        name = " ".join([program, words[1]] + values["arg"])
        yield Test(name, program, int(words[1]), values["arg"], seconds)


def wrong_use(text):
    print(f"mpich_suite.py: {text}", file=sys.stderr)
    sys.exit(2)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def read_expected(path):
    """Test name -> (word of EXPECTED, reason). A name that ends with * stands for many."""
    expected = {}
    for line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in EXPECTED or not fields[2]:
            wrong_use(f"{path}: '{line}' is not TEST, one of {', '.join(EXPECTED)}, REASON "
                      "with tabs between")
        expected[fields[0]] = (fields[1], fields[2])
    return expected


def expectation(expected, name):
    for pattern, entry in expected.items():
        if name == pattern or pattern.endswith("*") and name.startswith(pattern[:-1]):
            return entry
    return None


def choose(options):
    """The tests to run, in the suite's order; a name of the selection must be one of the suite."""
    tests = {}
    for directory in DIRECTORIES:
        paths = [os.path.join(options.source, "test/mpi", directory, "testlist.in")]
        if directory in GENERATED:
            paths.append(os.path.join(options.programs, directory, "testlist.dtp"))
        tests.update((t.name, t) for path in paths for t in read_testlist(path, directory))
    if options.selection:
        names = read_lines(options.selection)
        unknown = [name for name in names if name not in tests]
        if unknown:
            wrong_use(f"{options.selection}: the suite has no test '{unknown[0]}'")
        tests = {name: test for name, test in tests.items() if name in set(names)}
    chosen = [test for name, test in tests.items() if fnmatch.fnmatchcase(name, options.only)]
    if not chosen:
        wrong_use(f"no test is called '{options.only}'")
    return chosen


def environment(transport, plugins, scratch):
    """Open MPI reads our parameter files and no others; its programs may run as root."""
    files = [os.path.join(HERE, name) for name in (f"{transport}.conf", "openmpi.conf")]
    installed = subprocess.run(["mpicc.openmpi", "--showme:libdirs"], capture_output=True,
                               text=True, check=True).stdout.split()[0]
    result = {key: value for key, value in os.environ.items() if not key.startswith("OMPI_")}
    result.update(OMPI_MCA_mca_base_param_files=",".join(files),
                  OMPI_MCA_mca_base_component_path=f"{plugins}:{installed}/openmpi3",
                  OMPI_MCA_orte_tmpdir_base=scratch,
                  OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  MALLOC_PERTURB_="255")  # README.md, defects of Open MPI
    return result


def run(test, seconds, programs, variables):
    """One test over one transport. It passes if it says so and ends with status 0."""
    directory, program = test.program.split("/")
    if not os.access(os.path.join(programs, directory, program), os.X_OK):
        return Outcome("not-built", 0, "")
    # timeout(1) ends mpirun, which ends its processes, even if this script is gone by then.
    command = ["timeout", "-k", "10", f"{seconds:.0f}", "mpirun.openmpi", "-n",
               str(test.processes), f"./{program}"] + test.arguments
    start = time.monotonic()
    # Of two mpirun that share a folder one removes what the other is about to make.
    with tempfile.TemporaryFile() as file, tempfile.TemporaryDirectory(
            dir=variables["OMPI_MCA_orte_tmpdir_base"], ignore_cleanup_errors=True) as own:
        status = subprocess.run(command, cwd=os.path.join(programs, directory),
                                env={**variables, "OMPI_MCA_orte_tmpdir_base": own},
                                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                check=False).returncode
        file.seek(0)
        output = file.read().decode(errors="replace")
    word = "pass" if status == 0 and re.search(r"^ ?No [Ee]rrors\s*$", output, re.M) else "fail"
    if status in (124, 128 + signal.SIGKILL, -signal.SIGKILL):
        word = "time"
    return Outcome(word, time.monotonic() - start, output)


def judge(entry, outcomes):
    """What the outcomes mean: (is it as it must be, words for people)."""
    ours, stock = outcomes["portals"].word, outcomes["stock"].word
    word = entry[0] if entry else None
    if ours == "pass":
        if word in ("both", "portals", "not-built"):
            return True, "passes, though it is listed"
        return True, "right"
    if ours == "not-built":
        if word == "not-built":
            return True, "listed: not built"
        return False, "NOT BUILT, and not listed"
    if word == "unsteady":
        return True, "listed: unsteady"
    if word == "portals":
        return True, "listed: fails over Portals, not by Portals"
    if stock == "pass":
        return False, "WRONG: passes over the stock transport" + (
            ", listed as failing there" if word == "both" else "")
    if word == "both":
        return True, "listed: fails over both"
    return False, "fails over both, and is not listed"


def needs_stock(entry, ours, stock):
    """Is the outcome over the stock transport asked for, after that over Portals (word ours)?"""
    return stock == "all" or ours != "pass" and not (entry and entry[0] in ("portals", "unsteady"))


def limit(test, entry, scale):
    """The seconds that a test may take."""
    kind = entry[0] if entry else "right"
    seconds = {"right": test.seconds * scale, "slow": test.seconds * scale * TIMES_SLOW,
               "unsteady": SECONDS_LISTED * scale}
    return seconds.get(kind, SECONDS_LISTED)


def run_both(test, entry, options, variables):
    """The outcomes over both transports; files of what failing tests printed."""
    seconds = limit(test, entry, options.scale)
    outcomes = dict.fromkeys(TRANSPORTS, NOT_RUN)
    for transport in TRANSPORTS:
        if transport == "stock" and not needs_stock(entry, outcomes["portals"].word,
                                                    options.stock):
            break
        outcome = run(test, seconds, options.programs, variables[transport])
        outcomes[transport] = outcome
        if options.outputs and outcome.word in ("fail", "time"):
            name = re.sub(r"[^\w.=-]", "_", f"{transport}-{test.name}") + ".txt"
            with open(os.path.join(options.outputs, name), "w", encoding="utf-8") as file:
                file.write(outcome.output)
    return outcomes


def side_by_side(tests, places, work):
    """Yields (test, was it alone, work(test)) of every test as it ends. Those of many processes
    come first, so that those of few, which run beside each other, are not held up by them."""
    def takes(test):
        return min(test.processes, places)
    waiting = collections.deque(sorted(tests, key=takes, reverse=True))
    running, free = {}, places
    with concurrent.futures.ThreadPoolExecutor(places) as pool:
        while waiting or running:
            while waiting and takes(waiting[0]) <= free:
                test = waiting.popleft()
                free -= takes(test)
                running[pool.submit(work, test)] = test
            ended, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                test = running.pop(future)
                free += takes(test)
                yield test, takes(test) == places, future.result()


class Table:
    """The rows (test, outcomes, as it must be?, meaning) of a run, and the file that has a line
    of each of them at any moment."""

    def __init__(self, path, expected):
        self.rows, self.expected = [], expected
        self.file = open(path or os.devnull, "w", encoding="utf-8")
        print("# test", *(f"{t}\tseconds" for t in TRANSPORTS), "meaning", sep="\t",
              file=self.file)

    def add(self, test, outcomes, again=False):
        good, meaning = judge(expectation(self.expected, test.name), outcomes)
        if again and meaning == "right":
            meaning = "right alone, took too long beside others"
        self.rows.append((test, outcomes, good, meaning))
        cells = [f"{outcomes[t].word}\t{outcomes[t].seconds:.1f}" for t in TRANSPORTS]
        print(test.name, *cells, meaning, sep="\t", file=self.file, flush=True)
        if not good:
            print(f"{test.name}: {meaning}; over Portals it printed:\n"
                  f"{outcomes['portals'].output[-2000:]}", flush=True)


def read_table(path):
    """Test name -> outcomes, of an earlier run."""
    if not os.path.exists(path):
        return {}
    earlier = {}
    for line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 2 * len(TRANSPORTS) + 2:
            wrong_use(f"{path}: '{line}' is no line of a table of outcomes; without --resume the "
                      "file is written anew")
        cells = zip(fields[1:-1:2], fields[2:-1:2])
        earlier[fields[0]] = {t: Outcome(word, float(seconds), "")
                              for t, (word, seconds) in zip(TRANSPORTS, cells)}
    return earlier


def run_all(tests, earlier, table, options, variables):
    """Fills the table: from the earlier outcomes those that are as they must be, then the rest."""
    left = []
    for test in tests:
        entry = expectation(table.expected, test.name)
        if test.name in earlier and judge(entry, earlier[test.name])[0]:
            table.add(test, earlier[test.name])
        else:
            left.append(test)

    def work(test):
        return run_both(test, expectation(table.expected, test.name), options, variables)

    slow = []
    for test, alone, outcomes in side_by_side(left, options.places, work):
        too_long = "time" in (o.word for o in outcomes.values())
        if too_long and not alone and not judge(expectation(table.expected, test.name),
                                                outcomes)[0]:
            slow.append(test)
        else:
            table.add(test, outcomes)
        progress(len(table.rows), len(tests), test.name)
    for test in slow:
        table.add(test, work(test), again=True)
        progress(len(table.rows), len(tests), test.name)
    table.rows.sort(key=lambda row: tests.index(row[0]))


def progress(done, total, name):
    """A line of its own on a terminal, nothing in a log."""
    if sys.stderr.isatty():
        print(f"\r\033[K[{done}/{total}] {name}", end="" if done < total else "\r\033[K",
              file=sys.stderr, flush=True)


def summarize(rows, seconds):
    """Counts of each directory, then every test that is not plainly right."""
    print(f"{'':9} {'tests':>5}  " + "  ".join(f"{'over ' + t:>29}" for t in TRANSPORTS))
    words = f"{'pass':>7} {'fail':>6} {'time':>6} {'no run':>7}"
    print(f"{'':16}" + "  ".join(words for _ in TRANSPORTS))
    for directory in DIRECTORIES + ("all",):
        of = [r for r in rows if directory in ("all", r[0].program.split("/")[0])]
        if not of:
            continue
        cells = []
        for transport in TRANSPORTS:
            words = collections.Counter(r[1][transport].word for r in of)
            cells.append(f"{words['pass']:7} {words['fail']:6} {words['time']:6} "
                         f"{words['-'] + words['not-built']:7}")
        print(f"{directory:9} {len(of):5}  " + "  ".join(cells))
    meanings = collections.defaultdict(list)
    for test, outcomes, good, meaning in rows:
        if meaning != "right":
            meanings[(good, meaning)].append(test.name)
    for (_, meaning), names in sorted(meanings.items(), reverse=True):
        print(f"{meaning} ({len(names)}):")
        for name in names:
            print(f"    {name}")
    wrong = sum(not r[2] for r in rows)
    print(f"{len(rows)} tests in {seconds:.0f} s: " +
          (f"{wrong} not as they must be" if wrong else "all as they must be"))
    return wrong


def parse():
    parser = argparse.ArgumentParser(description="MPICH's tests over Portals and without")
    parser.add_argument("source")
    parser.add_argument("programs")
    parser.add_argument("plugins")
    parser.add_argument("--selection", help="a file of test names; only those run")
    parser.add_argument("--only", default="*", help="a pattern of test names")
    parser.add_argument("--stock", choices=("all", "failures"), default="failures")
    parser.add_argument("--portals", default="portals", metavar="NAME",
                        help="NAME.conf is the way over Portals: portals, collectives, btl")
    parser.add_argument("--table", help="a file for the outcome of every test")
    parser.add_argument("--resume", action="store_true",
                        help="keep what the table has, run what it lacks or has as wrong")
    parser.add_argument("--outputs", help="a folder for what failing tests print")
    parser.add_argument("--scale", type=float, default=1, help="multiplies every time limit")
    parser.add_argument("--places", type=int, default=PLACES,
                        help=f"most processes at a time, here {PLACES}; 1: one test at a time")
    options = parser.parse_args()
    if options.resume and not options.table:
        wrong_use("--resume goes on with a table: name it with --table")
    if options.places < 1 or options.scale <= 0:
        wrong_use(f"--places {options.places} --scale {options.scale:g}: at least one place, and "
                  "a scale above 0")
    return options


def main():
    options = parse()
    tests = choose(options)
    expected = read_expected(os.path.join(HERE, "mpich_expected.tsv"))
    if options.outputs:
        os.makedirs(options.outputs, exist_ok=True)
    earlier = read_table(options.table) if options.resume else {}
    start = time.monotonic()
    table = Table(options.table, expected)
    with tempfile.TemporaryDirectory(prefix="pw-mpi-") as scratch, table.file:
        plugins = os.path.abspath(options.plugins)
        variables = {"portals": environment(options.portals, plugins, scratch),
                     "stock": environment("stock", plugins, scratch)}
        run_all(tests, earlier, table, options, variables)
    return 1 if summarize(table.rows, time.monotonic() - start) else 0


if __name__ == "__main__":
    sys.exit(main())
