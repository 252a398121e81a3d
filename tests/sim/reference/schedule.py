# SPDX-License-Identifier: BSD-3-Clause
"""GOAL schedules: what they are, and how to read and write their two formats.

A schedule is a list of ranks, a rank a list of operations in the order of their
definition. An operation knows how many dependency lines it waits for (`waits`) and who
waits for it: `after_end` for `requires`, `after_start` for `irequires`, each in the
order of the lines, with repetitions.

The binary format is little endian, positions count from byte 8 on:

    u64 cookie = 4223
    u32 ranks, u8 highest cpu, u8 highest nic, ranks x (u64 begin, u64 end)
    at each begin: u32 operations, u32 roots, roots x u32,
                   operations x 39 bytes, then u32 successors to the end
"""

import re
import struct

SEND, RECV, CALC = 1, 2, 3
ANY = 0xFFFFFFFF
COOKIE = 4223
NODE = struct.Struct("<IBIQIBBIIII")  # waits, kind, peer, size, tag, cpu, nic, then two (count, first)


class ScheduleError(Exception):
    """The file is not a schedule; the text says why."""


class Operation:
    """One send, recv or calc. `size` is the length in ns of a calc, else bytes."""

    __slots__ = ("kind", "size", "peer", "tag", "cpu", "nic", "waits", "after_end", "after_start")

    def __init__(self, kind, size, peer=0, tag=0, cpu=0, nic=0):
        self.kind, self.size, self.peer, self.tag = kind, size, peer, tag
        self.cpu, self.nic = cpu, nic
        self.waits = 0
        self.after_end, self.after_start = [], []

    def clone(self):
        other = Operation(self.kind, self.size, self.peer, self.tag, self.cpu, self.nic)
        other.waits = self.waits
        other.after_end, other.after_start = list(self.after_end), list(self.after_start)
        return other


def matches(recv, source, tag):
    """Whether a recv takes a message of this source and tag; ANY agrees with all."""
    return recv.peer in (ANY, source) and (recv.tag == tag or ANY in (recv.tag, tag))


def require(rank, later, earlier, on_start=False):
    """Makes operation `later` of a rank wait for the end, or the start, of `earlier`."""
    (rank[earlier].after_start if on_start else rank[earlier].after_end).append(later)
    rank[later].waits += 1


def has_cycle(rank):
    """Whether some operations of a rank wait for each other."""
    waits = [op.waits for op in rank]
    ready = [i for i, n in enumerate(waits) if n == 0]
    done = 0
    while ready:
        op = rank[ready.pop()]
        done += 1
        for successor in op.after_start + op.after_end:
            waits[successor] -= 1
            if waits[successor] == 0:
                ready.append(successor)
    return done < len(rank)


# --- text ---------------------------------------------------------------------------

INT = r"[ \t]*([0-9]+)[ \t]*"
LABEL = r"([A-Za-z][A-Za-z0-9_]*)"
PLACE = r"(?:cpu" + INT + r")?(?:nic" + INT + r")?"
ATTRIBUTES = r"(?:tag[ \t]*(-1|[0-9]+)[ \t]*)?" + PLACE
OPERATION = re.compile(
    r"(?:" + LABEL + r"[ \t]*:)?[ \t]*(?:"
    r"(send)" + INT + r"b[ \t]*to" + INT + ATTRIBUTES + "|"
    r"(recv)" + INT + r"b[ \t]*from[ \t]*(-1|[0-9]+)[ \t]*" + ATTRIBUTES + "|"
    r"(calc)" + INT + r"(?:cpu" + INT + r")?)$")
DEPENDENCY = re.compile(LABEL + r"[ \t]+(i?requires)[ \t]+" + LABEL + r"[ \t]*$")


def number(text, limit, what):
    value = ANY if text == "-1" else int(text or 0)
    if value > limit:
        raise ScheduleError(f"{what} {text} is above {limit}")
    return value


def parse_operation(found):
    """The operation of a line that OPERATION found, and its label or None."""
    (label, send, sent, to, stag, scpu, snic, recv, got, source, rtag, rcpu, rnic,
     _, length, ccpu) = found.groups()
    size = number(sent or got or length, 2**64 - 1, "size")
    if send:
        peer, tag, cpu, nic, kind = to, stag, scpu, snic, SEND
    elif recv:
        peer, tag, cpu, nic, kind = source, rtag, rcpu, rnic, RECV
    else:
        peer, tag, cpu, nic, kind = None, None, ccpu, None, CALC
    return label, Operation(kind, size, number(peer, ANY, "rank"), number(tag, ANY, "tag"),
                            number(cpu, 255, "cpu"), number(nic, 255, "nic"))


def parse_line(line, rank, labels):
    found = DEPENDENCY.match(line)
    if found:
        later, word, earlier = found.groups()
        for label in (later, earlier):
            if label not in labels:
                raise ScheduleError(f"label {label} is not defined")
        require(rank, labels[later], labels[earlier], word == "irequires")
        return
    found = OPERATION.match(line)
    if not found:
        raise ScheduleError(f"cannot read: {line}")
    label, op = parse_operation(found)
    if label is not None:
        labels.setdefault(label, len(rank))
    rank.append(op)


def read_text(text):
    """The schedule in a GOAL text."""
    # A comment may stand only where a line may start.
    text = re.sub(r"^[ \t]*(/\*.*?\*/|//[^\n]*)", "", text, flags=re.M | re.S)
    head = re.match(r"\s*num_ranks[ \t]*([0-9]+)", text)
    if not head:
        raise ScheduleError("no num_ranks")
    ranks, rest = [], text[head.end():]
    for block in re.finditer(r"\s*rank[ \t]*([0-9]+)\s*\{([^}]*)\}|\s*(\S[^\n]*)", rest):
        if block.group(3):
            raise ScheduleError(f"expected a rank, found: {block.group(3)}")
        if int(block.group(1)) != len(ranks):
            raise ScheduleError(f"rank {block.group(1)} stands where {len(ranks)} belongs")
        rank, labels = [], {}
        for line in block.group(2).split("\n"):
            if line.strip():
                parse_line(line.strip(), rank, labels)
        ranks.append(rank)
    if len(ranks) != int(head.group(1)):
        raise ScheduleError(f"{len(ranks)} ranks of {head.group(1)}")
    return ranks


def write_text(ranks):
    """A GOAL text of the schedule, dependencies after the operations they name."""
    def value(n):
        return -1 if n == ANY else n

    out = [f"num_ranks {len(ranks)}"]
    for number_, rank in enumerate(ranks):
        out.append(f"rank {number_} {{")
        for i, op in enumerate(rank):
            if op.kind == CALC:
                out.append(f"l{i}: calc {op.size} cpu {op.cpu}")
            else:
                verb = "send" if op.kind == SEND else "recv"
                way = "to" if op.kind == SEND else "from"
                out.append(f"l{i}: {verb} {op.size}b {way} {value(op.peer)} tag {value(op.tag)}"
                           f" cpu {op.cpu} nic {op.nic}")
        for i, op in enumerate(rank):
            out += [f"l{j} requires l{i}" for j in op.after_end]
            out += [f"l{j} irequires l{i}" for j in op.after_start]
        out.append("}")
    return "\n".join(out) + "\n"


# --- binary -------------------------------------------------------------------------

def read_binary(data):
    """The schedule in a binary GOAL file."""
    try:
        body = memoryview(data)[8:]
        nranks, _, _ = struct.unpack_from("<IBB", body)
        return [read_rank(body, *struct.unpack_from("<QQ", body, 6 + 16 * r))
                for r in range(nranks)]
    except (struct.error, IndexError) as error:
        raise ScheduleError(f"truncated binary schedule: {error}") from error


def read_rank(body, begin, end):
    count, nroots = struct.unpack_from("<II", body, begin)
    first_node = begin + 8 + 4 * nroots
    first_successor = first_node + count * NODE.size
    if not first_successor <= end <= len(body):
        raise ScheduleError("a rank does not fit its range")
    successors = [s for (s,) in struct.iter_unpack("<I", body[first_successor:end])]
    rank = []
    for i in range(count):
        waits, kind, peer, size, tag, cpu, nic, ndeps, dep, nstart, start = \
            NODE.unpack_from(body, first_node + i * NODE.size)
        if kind not in (SEND, RECV, CALC):
            raise ScheduleError(f"operation {i} has the unknown type {kind}")
        op = Operation(kind, size, peer, tag, cpu, nic)
        op.waits = waits
        op.after_end = successors[dep:dep + ndeps]
        op.after_start = successors[start:start + nstart]
        rank.append(op)
    return rank


def write_binary(ranks):
    """The schedule as bytes of the binary format."""
    bodies = []
    for rank in ranks:
        nodes, successors = b"", []
        for op in rank:
            dep = len(successors)
            start = dep + len(op.after_end)
            successors += op.after_end + op.after_start
            nodes += NODE.pack(op.waits, op.kind, op.peer, op.size, op.tag, op.cpu, op.nic,
                               len(op.after_end), dep, len(op.after_start), start)
        roots = [i for i, op in enumerate(rank) if op.waits == 0]
        bodies.append(struct.pack(f"<II{len(roots)}I", len(rank), len(roots), *roots) + nodes +
                      struct.pack(f"<{len(successors)}I", *successors))
    everything = [op for rank in ranks for op in rank]
    at = 6 + 16 * len(ranks)
    ranges = b""
    for body in bodies:
        ranges += struct.pack("<QQ", at, at + len(body))
        at += len(body)
    return struct.pack("<QIBB", COOKIE, len(ranks), max((op.cpu for op in everything), default=0),
                       max((op.nic for op in everything), default=0)) + ranges + b"".join(bodies)


# --- either -------------------------------------------------------------------------

def read(path):
    """The schedule in a file of either format."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] == struct.pack("<Q", COOKIE):
        ranks = read_binary(data)
    else:
        ranks = read_text(data.decode("ascii"))
    for number_, rank in enumerate(ranks):
        for i, op in enumerate(rank):
            if op.kind != CALC and op.peer >= len(ranks) and not (op.kind == RECV and op.peer == ANY):
                raise ScheduleError(f"rank {number_} operation {i}: no rank {op.peer}")
    return ranks
