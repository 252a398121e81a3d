# SPDX-License-Identifier: BSD-3-Clause
"""Two ways to run a schedule with the same answer: the reference, and `pinwheel goal run`.

Both give an Outcome: the exit status, and if it is 0 the finish times in ps.
"""

import collections
import decimal
import json
import os
import subprocess
import tempfile

import parameters
import schedule
import simulate

Outcome = collections.namedtuple("Outcome", "status times message")


class Reference:
    name = "reference"

    def run(self, ranks, model, texts, binary=False):
        del binary
        try:
            return Outcome(0, simulate.finish_ps(ranks, model, texts), "")
        except parameters.ParameterError as error:
            return Outcome(2, None, str(error))
        except parameters.SimulationError as error:
            return Outcome(1, None, str(error))


class Tool:
    name = "pinwheel"

    def __init__(self, path, threads=None):
        self.path = path
        self.more = [] if threads is None else [f"--threads={threads}"]
        self.folder = tempfile.TemporaryDirectory(prefix="pinwheel-sim-")

    def command(self, file, model, texts):
        options = [word for name, text in texts.items()
                   for word in ("-" * (1 + (len(name) > 1)) + name, text)]
        return [self.path, "goal", "run", file, "--json", "--model=" + model] + self.more + options

    def run_file(self, file, model, texts):
        done = subprocess.run(self.command(file, model, texts), capture_output=True, timeout=60,
                              check=False)
        message = done.stderr.decode(errors="replace")
        if done.returncode != 0:
            if done.returncode in (1, 2) and not message.strip():
                message = "(nothing on stderr)"
                return Outcome(f"{done.returncode} without explanation", None, message)
            return Outcome(done.returncode, None, message)
        try:
            times = json.loads(done.stdout, parse_float=decimal.Decimal)["finish_ns"]
            times = [1000 * ns for ns in times]
        except (ValueError, KeyError, TypeError) as error:
            return Outcome(f"0 with bad JSON ({error})", None, done.stdout.decode(errors="replace"))
        return Outcome(0, [int(ps) if ps == int(ps) else ps for ps in times], message)

    def run(self, ranks, model, texts, binary=False):
        file = os.path.join(self.folder.name, "schedule.bin" if binary else "schedule.goal")
        data = schedule.write_binary(ranks) if binary else schedule.write_text(ranks).encode()
        with open(file, "wb") as out:
            out.write(data)
        return self.run_file(file, model, texts)
