# SPDX-License-Identifier: BSD-3-Clause
"""LogGOPS parameters: exact decimals, kept as integers of 1e-18 s (1e-6 ps)."""

import re

PS = 10**6  # units in a picosecond
NS = 10**9
UNITS = {"ps": PS, "ns": NS, "us": 10**12, "ms": 10**15, "s": 10**18}
TIME_LIMIT = 2**63 - 1  # ps
DEFAULTS = {"L": "2500", "o": "1500", "g": "1000", "G": "6", "O": "0", "S": "65535"}


class ParameterError(Exception):
    """A parameter cannot be used; the text says which and why."""


class SimulationError(Exception):
    """The schedule has no finish times; the text says why."""


def parse_time(name, text):
    """A time, or for G and O a time per byte, in units of 1e-6 ps."""
    per_byte = name in "GO"
    found = re.fullmatch(r"([0-9]+)(?:\.([0-9]+))?(ps|ns|us|ms|s)?" +
                         ("(?:/B)?" if per_byte else ""), text)
    if not found:
        raise ParameterError(f"-{name} {text}: not a number with an optional unit")
    whole, fraction, unit = found.group(1), found.group(2) or "", UNITS[found.group(3) or "ns"]
    scaled = int(whole + fraction) * unit
    value, rest = divmod(scaled, 10 ** len(fraction))
    if rest or (not per_byte and value % PS):
        raise ParameterError(f"-{name} {text}: finer than {'1e-6 ' if per_byte else ''}ps")
    if value >= 2**64:
        raise ParameterError(f"-{name} {text}: too large")
    return value


def parse(texts):
    """All six parameters from a dictionary of texts over the defaults."""
    values = {}
    for name, text in {**DEFAULTS, **texts}.items():
        if name != "S":
            values[name] = parse_time(name, text)
        elif re.fullmatch("[0-9]+", text) and int(text) < 2**64:
            values[name] = int(text)
        else:
            raise ParameterError(f"-S {text}: not a number of bytes")
    return values
