#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SIM: programs of tests/portals, tests/process and tests/handlers as simulated jobs of one rank.

  suites.py run PINWHEEL LIST PROGRAMS NAME [OPTION-OF-PINWHEEL-SIM]...
      runs all cases of a program but those of LIST
  suites.py count LIST PROGRAMS
      counts the cases of all programs, and those of LIST; more than 5 % are too many
  suites.py listed PINWHEEL LIST PROGRAMS [NAME]...
      runs each case of LIST alone: one that passes does not belong there

A line of PROGRAMS (Suites.cmake) is NAME PATH [VARIABLE=VALUE]..., a setting of a program; one of
LIST is NAME PATTERN-OF-CASES REASON. A line of LIST that fits no case is an error."""

import collections
import fnmatch
import os
import re
import subprocess
import sys

MOST_PERCENT = 5
ALL_LISTED = 77  # exit status: skipped
PROCESSES = 256  # that a rank may have forked: of the largest case
CASE_S = 20  # real time that a case of the list has to pass; it takes far less

Program = collections.namedtuple("Program", "name path environment")


def lines_of(path):
    with open(path, encoding="utf-8") as text:
        return [line.strip() for line in text if line.strip() and not line.startswith("#")]


def read_programs(path):
    found = {}
    for line in lines_of(path):
        name, file, *environment = line.split()
        found[name] = Program(name, file, dict(e.split("=", 1) for e in environment))
    return found


def cases_of(program):
    """Names of cases: `name: rule` of tests/portals, `name` of the others."""
    portals = program.name.startswith("portals_")
    said = subprocess.run([program.path, "--list" if portals else "-l"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    names = [line.split(": ")[0] for line in said.splitlines()]
    if not names:
        sys.exit(f"{program.name}: no cases")
    return names


def split_cases(program, listing):
    """The cases of a program, and those of them that are left out, with the reason of each."""
    cases, left = cases_of(program), {}
    for line in lines_of(listing):
        words = line.split(None, 2)
        if words[0] != program.name:
            continue
        if len(words) < 3:
            sys.exit(f"{listing}: {line}: NAME PATTERN REASON are needed")
        fits = fnmatch.filter(cases, words[1])
        if not fits:
            sys.exit(f"{listing}: {words[0]} {words[1]}: no such case")
        left.update((case, words[2]) for case in fits)
    return cases, left


def simulate(pinwheel, program, cases, options):
    """The command that runs cases, and its environment."""
    return ([pinwheel, "sim", "--quiet", "--processes", str(PROCESSES), *options, program.path, *cases],
            {**os.environ, **program.environment})


def run(pinwheel, listing, programs, name, *options):
    program = read_programs(programs)[name]
    cases, left = split_cases(program, listing)
    wanted = [case for case in cases if case not in left]
    if not wanted:
        print(f"{name}: all {len(left)} cases are on the list", file=sys.stderr)
        return ALL_LISTED
    print(f"{name}: {len(wanted)} cases, {len(left)} on the list of those that are not simulated",
          flush=True)
    command, environment = simulate(pinwheel, program, wanted if left else [], options)
    os.execve(command[0], command, environment)


def count(listing, programs):
    known = read_programs(programs)
    for line in lines_of(listing):
        if line.split()[0] not in known:
            sys.exit(f"{listing}: {line}: no such program")
    total, out = collections.Counter(), collections.Counter()
    for program in known.values():
        suite = program.name.split("_")[0].replace("ptest", "process")
        cases, left = split_cases(program, listing)
        total[suite] += len(cases)
        out[suite] += len(left)
        reasons = collections.Counter(left.values())
        for reason, n in reasons.items():
            print(f"{program.name}: {n} of {len(cases)}: {reason}")
    for suite in total:
        print(f"{suite}: {out[suite]} of {total[suite]} cases are not simulated, "
              f"{100 * out[suite] / total[suite]:.2f} %")
    n, of = sum(out.values()), sum(total.values())
    print(f"in all: {n} of {of} cases are not simulated, {100 * n / of:.2f} %")
    return n * 100 > MOST_PERCENT * of


def passes(pinwheel, program, case):
    command, environment = simulate(pinwheel, program, [case], ["--timeout", str(CASE_S)])
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.returncode == 0 and not re.search(r"[1-9][0-9]* skipped", done.stdout)


def listed(pinwheel, listing, programs, *names):
    status = 0
    for program in read_programs(programs).values():
        if names and program.name not in names:
            continue
        for case in split_cases(program, listing)[1]:
            if passes(pinwheel, program, case):
                print(f"{listing}: {program.name} {case} passes", file=sys.stderr, flush=True)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit({"run": run, "count": count, "listed": listed}[sys.argv[1]](*sys.argv[2:]))
