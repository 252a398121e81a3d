# SPDX-License-Identifier: BSD-3-Clause
"""Holds generated training steps against docs/goal.md.

    check_training.py PINWHEEL

Who sends how much to whom, for combinations of data, tensor, pipeline and expert parallel
ranks; that each bucket waits for its layers and for no others; the orders of the pipelines;
and times where they follow from a sum.
"""

import argparse
import sys
import tempfile

from check_patterns import Tool, want
from pattern_replay import calc_time, fail
from reference.schedule import CALC, RECV, SEND

STAGE = 1 << 31  # tags from here on are of messages between stages
SILENT = ["-L", 0, "-o", 0, "-g", 0, "-G", 0, "-S", 10**15]


def ring(ranks, size):
    """Bytes a rank of an allreduce sends."""
    return 2 * (ranks - 1) * size // ranks if ranks > 1 else 0


class Places:
    """rank = tensor + tp (data + dp stage)"""

    def __init__(self, dp, tp, pp, ep):
        self.dp, self.tp, self.pp, self.ep = dp, tp, pp, ep

    def of(self, rank):
        return rank % self.tp, rank // self.tp % self.dp, rank // self.tp // self.dp

    def kind(self, a, b):
        """What two ranks share work by; they differ in one coordinate."""
        differ = [i for i in range(3) if self.of(a)[i] != self.of(b)[i]]
        return ("tensor", "data", "stage")[differ[0]] if len(differ) == 1 else "nothing"


def check_combinations(tool):
    for dp, tp, pp, ep in ((1, 1, 1, 1), (4, 1, 1, 1), (1, 4, 1, 1), (1, 1, 4, 1), (4, 1, 1, 4),
                           (4, 1, 1, 2), (2, 2, 2, 1), (4, 2, 2, 2), (2, 4, 2, 2), (6, 2, 4, 3),
                           (3, 1, 2, 1)):
        for schedule in ("gpipe", "1f1b"):
            for microbatches in (1, 6):
                check_bytes(tool, Places(dp, tp, pp, ep), schedule, microbatches)


def check_bytes(tool, places, schedule, microbatches):
    dp, tp, pp, ep = places.dp, places.tp, places.pp, places.ep
    n, layers, steps, act, dense, experts, top = dp * tp * pp, 4, 2, 960, 2400, 1200, 2
    r = tool.make("training", ranks=n, tp=tp, pp=pp, ep=ep, layers=layers, schedule=schedule,
                  microbatches=microbatches, forward=11, backward=20, update=7, top=top,
                  iterations=steps, activations=act, gradients=dense, bucket=960,
                  expert_gradients=experts if ep > 1 else None)
    here = layers // pp
    for rank in range(n):
        sent = {"tensor": 0, "data": 0, "stage": 0}
        for op in r.ranks[rank]:
            if op.kind == SEND:
                sent[places.kind(rank, op.peer)] += op.size
            if op.kind != CALC or op.size > 0:
                want("cpu", op.cpu, int(op.kind != CALC), r.name)
        stage = places.of(rank)[2]
        items = here * microbatches
        expert = (ep - 1) * (act * top // ep) if ep > 1 else 0
        want("bytes to tensor ranks", sent["tensor"], steps * items * 4 * ring(tp, act), r.name)
        want("bytes to data ranks", sent["data"],
             steps * (items * 4 * expert + ring(dp, here * dense) +
                      (ring(dp // ep, here * experts) if ep > 1 else 0)), r.name)
        want("bytes to other stages", sent["stage"],
             steps * microbatches * act * ((stage > 0) + (stage < pp - 1)), r.name)
    want("computation", calc_time(r.ranks), [steps * (here * microbatches * 31 + 7)] * n, r.name)
    want("what each rank depends on", r.reached(), [set(range(n))] * n, r.name)
    tool.finish()
    # Nothing but computation: the pipeline fills and drains once a step.
    want("the last finish", max(tool.finish(*SILENT)),
         steps * ((microbatches + pp - 1) * here * 31 + 7), r.name)


def check_defaults(tool):
    """Bytes that follow from the sizes of a transformer."""
    for ep in (1, 2):
        r = tool.make("training", ranks=4, tp=2, ep=ep, layers=2, hidden=64, sequence=32, batch=3,
                      element=4, forward=10)
        act, parameters = 3 * 32 * 64 * 4, 64 * 64 * 4 // 2
        expected = 2 * (12 if ep == 1 else 4) * parameters
        exchange = 0 if ep == 1 else 2 * 4 * act // 2
        sent = [sum(op.size for op in r.ranks[0] if op.kind == SEND and op.peer == peer)
                for peer in (1, 2)]
        want("bytes to the tensor rank", sent[0], 2 * 4 * act, r.name)
        want("bytes to the data rank", sent[1], ring(2, expected) + exchange, r.name)
        want("computation", calc_time(r.ranks), [2 * 30] * 4, r.name)


def check_algorithms(tool):
    for name in ("ring", "recdoub", "rabenseifner", "swing_latency", "swing_bandwidth"):
        for dp, tp in ((5, 1), (4, 2), (1, 3)):
            for rate in (None, "0.5"):
                r = tool.make("training", ranks=dp * tp, tp=tp, layers=3, allreduce=name, bucket=999,
                              gradients=2000, activations=120, reduce_rate=rate, forward=5)
                want("what each depends on", r.reached(), [set(range(dp * tp))] * (dp * tp), r.name)
                reducing = sum(op.size for rank in r.ranks for op in rank
                               if op.kind == CALC and op.cpu == 1)
                if dp * tp > 1 and (reducing > 0) != (rate is not None):
                    fail(f"{r.name}: reducing takes {reducing}")
                tool.finish()


def check_buckets(tool):
    """Bucket b waits for the layers, last first, that fill it, and for no others."""
    layers, layer, bucket, forward, backward = 6, 1000, 1600, 10, 100
    for late in (None, True):
        r = tool.make("training", ranks=3, layers=layers, gradients=layer, bucket=bucket,
                      forward=forward, backward=backward, no_overlap=late)
        rank, total = r.ranks[0], layers * layer
        tags = sorted({op.tag for op in rank if op.kind == SEND})
        want("buckets", len(tags), -(-total // bucket), r.name)
        for b, tag in enumerate(tags):
            sends = [i for i, op in enumerate(rank) if op.kind == SEND and op.tag == tag]
            filled = -(-min((b + 1) * bucket, total) // layer)
            time = sum(op.size for j, op in enumerate(rank)
                       if op.kind == CALC and r.before[0][sends[0]] >> j & 1)
            want(f"computation before bucket {b}", time,
                 layers * forward + (layers if late else filled) * backward, r.name)
            if b > 0:
                last = [i for i, op in enumerate(rank) if op.kind == RECV and op.tag == tags[b - 1]][-1]
                if not r.before[0][sends[0]] >> last & 1:
                    fail(f"{r.name}: bucket {b} does not wait for the one before")


def check_overlap(tool):
    """Two ranks, a bucket a layer, 1 ns per byte: an allreduce takes 2 (half a layer - 1)."""
    layers, layer = 5, 2002
    for backward in (500, 5000):
        for late in (None, True):
            r = tool.make("training", ranks=2, layers=layers, gradients=layer, bucket=layer,
                          forward=70, backward=backward, no_overlap=late)
            allreduce = 2 * (layer // 2 - 1)
            expected = layers * 70 + (layers * (backward + allreduce) if late else
                                      backward + (layers - 1) * max(backward, allreduce) + allreduce)
            finish = tool.finish("-L", 0, "-o", 0, "-g", 0, "-G", 1, "-S", 10**9)
            want("the finish", finish, [expected] * 2, r.name)


def check_orders(tool):
    """How many microbatches a stage has begun and not ended: what it must remember."""
    pp, microbatches = 4, 7
    for schedule in ("gpipe", "1f1b"):
        r = tool.make("training", ranks=pp, pp=pp, layers=pp, schedule=schedule,
                      microbatches=microbatches, forward=10)
        for stage in range(pp):
            items = []
            for op in r.ranks[stage]:
                if op.kind != CALC and (op.kind == RECV) == (stage > 0):
                    if op.tag & 1 == 0:
                        items.append(op.tag - STAGE >> 1)  # forward; backward is its complement
                if op.kind != CALC and (op.kind == RECV) == (stage < pp - 1) and op.tag & 1:
                    items.append(~(op.tag - STAGE >> 1))
            want("microbatches", sorted(items), list(range(-microbatches, microbatches)), r.name)
            open_now = most = 0
            for item in items:
                open_now += 1 if item >= 0 else -1
                most = max(most, open_now)
            want(f"microbatches open at stage {stage}", most,
                 microbatches if schedule == "gpipe" else min(microbatches, pp - stage), r.name)
        backward = [~item for item in items if item < 0]
        want("backward order", backward,
             sorted(backward, reverse=schedule == "gpipe"), r.name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pinwheel")
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(parser.parse_args().pinwheel, folder)
        for check in (check_combinations, check_defaults, check_algorithms, check_buckets,
                      check_overlap, check_orders):
            check(tool)
    print(f"{tool.count} schedules are right")


if __name__ == "__main__":
    sys.exit(main())
