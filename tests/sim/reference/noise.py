# SPDX-License-Identifier: BSD-3-Clause
"""Noise, from "Noise" in docs/loggops-model.md: detours of the cpus of a rank, one by one."""

import math

import parameters
from parameters import PS, ParameterError

U64 = 2**64 - 1
KEYS = {"uniform": ("period", "low", "high"), "normal": ("period", "mean", "deviation"),
        "exponential": ("period", "mean")}


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & U64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & U64
    return z ^ (z >> 31)


def draw(key, count):
    return mix((mix(key) + (count + 1) * 0x9E3779B97F4A7C15) & U64)


def below(bits, highest):
    return bits * (highest + 1) >> 64


def fraction(bits):
    return ((bits >> 12) + 0.5) / 2**52


def picoseconds(text):
    return parameters.parse_time("L", text) // PS


class Noise:
    def __init__(self, text, seed):
        self.seed = seed
        self.kind, colon, rest = text.partition(":")
        if not colon:
            self.kind = "trace"
            with open(text, encoding="ascii") as file:
                lines = [line.split("#")[0].split() for line in file]
            self.detours = [tuple(map(picoseconds, words)) for words in lines if words]
            self.period = sum(self.detours[-1])
            return
        values = dict(item.split("=") for item in rest.split(","))
        if set(values) != set(KEYS[self.kind]):
            raise ParameterError(f"--noise {text}")
        for name, value in values.items():
            setattr(self, name, picoseconds(value))

    def length(self, key, i):
        bits = draw(key, 3 * i + 1)
        if self.kind == "uniform":
            return self.low + below(bits, self.high - self.low)
        if self.kind == "exponential":
            return int(max(0, -self.mean * math.log(fraction(bits))))
        turn = math.cos(6.283185307179586 * fraction(draw(key, 3 * i + 2)))
        return int(max(0, self.mean + self.deviation * math.sqrt(-2 * math.log(fraction(bits))) * turn))

    def detour(self, key, i):
        """Begin and length of the i-th detour of a rank, in its own time."""
        if self.kind == "trace":
            turn, place = divmod(i, len(self.detours))
            return turn * self.period + self.detours[place][0], self.detours[place][1]
        return i * self.period + below(draw(key, 3 * i), self.period - 1), self.length(key, i)

    def end(self, rank, begin, work):
        """When a cpu that is taken at `begin` for `work` is free again."""
        if work == 0:
            return begin
        key = draw(self.seed, rank)
        phase = below(draw(key, 0), self.period - 1) if self.kind == "trace" else 0
        now = begin + phase
        # One a period; in a trace, as many as it has.
        i = now // self.period * (len(self.detours) if self.kind == "trace" else 1)
        while self.detour(key, i)[0] < now:
            i += 1
        end = now + work
        if i > 0:
            end += max(0, sum(self.detour(key, i - 1)) - now)
        while self.detour(key, i)[0] < end:
            if end - phase > parameters.TIME_LIMIT:
                break
            end += self.detour(key, i)[1]
            i += 1
        return end - phase
