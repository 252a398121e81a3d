# SPDX-License-Identifier: BSD-3-Clause
"""Figures 3d, 4, 5b, 7a and 7c of the sPIN paper's calculator against times computed by hand.

    check_spin_uses.py

All discrete unless said otherwise. A put of n bytes by a program is ready at 65 + 250 + W +
(n-1) · 0.02 + 30 ns, where W = 2 · 33.4 + 50 = 116.8; what a NIC puts from its own memory takes
the same without 65 + 250.
"""

import contextlib
import io
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

import spin_figures  # noqa: E402
from spin_machine import Machine, NICS  # noqa: E402
from spin_uses import (Accumulate, Handler, LineRate, Memory, Raid, Rendezvous,  # noqa: E402
                       Strided, hpus_needed)

DISCRETE, INTEGRATED = NICS["discrete"], NICS["integrated"]
HOST = Memory(51000, 6_700_000)
TEN = Handler(10000, 4000)


class Hpus(unittest.TestCase):
    def test_who_waits_for_memory(self):
        # Two reads of 1000 B on one HPU: 515.6 each, one after the other; with threads the
        # second begins when the engine has the first one's bytes: 15.6 + 515.6.
        for threads, ends in ((False, [515600, 1031200]), (True, [515600, 531200])):
            machine = Machine(DISCRETE._replace(hpus=1, threads=threads), 2)
            host, found = machine.hosts[0], []

            def reader():
                yield host.dma_read(1000)
                found.append(machine.now)
            host.handle(reader())
            host.handle(reader())
            machine.run()
            self.assertEqual(found, ends)

    def test_back_from_memory_behind_others(self):
        # Its bytes are there at 515.6, but the HPU has another handler until 600.
        machine = Machine(DISCRETE._replace(hpus=1, threads=True), 2)
        host, found = machine.hosts[0], []

        def handler(until):
            yield until()
            found.append(machine.now)
        host.handle(handler(lambda: host.dma_read(1000)))
        host.handle(handler(lambda: host.spend(600000)))
        machine.run()
        self.assertEqual(found, [600000, 600000])

    def test_program_does_one_thing_at_a_time(self):
        machine, found = Machine(DISCRETE, 2), []
        for _ in range(2):
            machine.hosts[0].work(1000, lambda: found.append(machine.now))
        machine.run()
        self.assertEqual(found, [1000, 2000])

    def test_line_rate_of_eight(self):
        # 8 · 6.7 = 53.6 ns for up to 335 B, 8 · 81.92 = 655.36 for 4 KiB.
        nic = DISCRETE._replace(hpus=8)
        for size, call, kept in ((8, 53, True), (335, 53, True), (4096, 53, True), (8, 60, False),
                                 (335, 60, False), (4096, 640, True), (4096, 700, False)):
            self.assertEqual(LineRate(nic, size, 1000 * call).kept(), kept, (size, call))

    def test_apart(self):
        # Two HPUs of 200 ns, packets of 81.92 ns: 200 ns for two, and the second 81.92 behind.
        nic = DISCRETE._replace(hpus=2)
        self.assertEqual(LineRate(nic, 4096, 200000, 4).apart(), (200000 + 81920) / 3)
        self.assertEqual(LineRate(nic, 4096, 100000, 4).apart(), 81920)

    def test_memory_is_taken(self):
        # The program's 1000 B take 6667 ps of host memory, from 0 on; the NIC's transfer begins then,
        # and the program's next one behind that, 6667 later.
        machine, found = Machine(DISCRETE, 2), []
        host = machine.hosts[0]
        host.touch(51000, 6667, lambda: found.append(machine.now))
        host.deposit(1000, lambda: found.append(machine.now))
        host.touch(0, 100, lambda: found.append(machine.now))
        machine.run()
        self.assertEqual(found, [6667 + 51000, 57667 + 100, 6667 + 250000])

    def test_little(self):
        self.assertEqual([hpus_needed(DISCRETE, size, 53600) for size in (335, 336, 4096)],
                         [8, 8, 1])  # 336 B come every 6.72 ns
        self.assertEqual(hpus_needed(DISCRETE, 8, 53601), 9)


class Accumulates(unittest.TestCase):
    def run_one(self, *arguments):
        run = Accumulate(DISCRETE, *arguments)
        return run.run(), run.moved

    def test_program(self):
        # Ready at 462.1, in memory at 712.1, then 51 + 48 · 6.7 ps = 51.322.
        self.assertEqual(self.run_one(16, "rdma", TEN, HOST), (763422, 64))

    def test_handler(self):
        # 462.1 + 10, 500 + 0.25 to read 16 B, 16 · 100 ps to compute, 0.25 + 250 to write.
        byte = Handler(10000, 0, 100 * 10**6)
        self.assertEqual(self.run_one(16, "spin", byte, HOST), (462100 + 10000 + 500250 + 1600
                                                                + 250250, 32))

    def test_library(self):
        # Two handlers, and an atomic operation of 8 B, 500.125, before the read; one more after
        # the write.
        self.assertEqual(self.run_one(16, "spin", TEN, HOST, "library"),
                         (462100 + 20000 + 500125 + 500250 + 250250, 48))

    def test_half_the_bytes(self):
        for size in (16, 4096, 65536):
            self.assertEqual(self.run_one(size, "rdma", TEN, HOST)[1],
                             2 * self.run_one(size, "spin", TEN, HOST)[1])


class Strides(unittest.TestCase):
    def test_blocks_of_a_packet(self):
        # Ready at 543.7, 20 for the call, for each of 4 blocks 12 and 1024 · 15.6 ps = 15.974.
        call = Handler(20000, 0, 0, 12000)
        self.assertEqual(Strided(DISCRETE, 4096, 1024, "spin", call, HOST).run(),
                         543700 + 20000 + 4 * (12000 + 15974) + 250000)

    def test_blocks_across_packets(self):
        # Packet 0, ready at 543.7, writes 3000 and 1096 B, packet 1, ready at 597.62, the 1904 B
        # that block 1 still has, and 2192. In the engine from 575.7 to 622.5 (3000), 629.62 to
        # 659.322 (1904), to 676.42 (1096, wanted since 634.5), to 710.615 (2192, since 671.322).
        call = Handler(20000, 0, 0, 12000)
        self.assertEqual(Strided(DISCRETE, 8192, 3000, "spin", call, HOST).run(), 960615)

    def test_program(self):
        # In memory at 857.598 (check_spin_figures.py); 51 + 8192 · 94.3 ps = 772.506.
        self.assertEqual(Strided(DISCRETE, 8192, 64, "rdma", None, Memory(51000, 94_300_000)).run(),
                         857598 + 51000 + 772506)

    def test_knee(self):
        # Four HPUs have 327.68 ns a packet: at 256 B 20 + 16 · 12 + 27.4 = 239 ns, at 128 B
        # 20 + 32 · 12 + 27.4 = 431 and so 4 · 4096 B in 431 ns, 38 GB/s.
        call = Handler(20000, 0, 0, 12000)
        rates = [2**20 * 1000 / Strided(INTEGRATED, 2**20, block, "spin", call, HOST).run()
                 for block in (128, 256)]
        self.assertAlmostEqual(rates[0], 38, delta=1)
        self.assertGreater(rates[1], 43.6)


class Rendezvouses(unittest.TestCase):
    def run_one(self, size, early, way):
        run = Rendezvous(DISCRETE, size, 4096, early, 5000000, way, TEN, HOST)
        return run.run(), run.copies

    def test_short(self):
        # 711.94, and a header handler. Else the program is back at 5000 and copies: 51.054.
        self.assertEqual(self.run_one(8, True, "paper"), (721940, 0))
        for early, way in ((False, "paper"), (False, "library"), (True, "rdma"), (False, "rdma")):
            self.assertEqual(self.run_one(8, early, way), (5051054, 1))

    def test_long_by_programs(self):
        # From 5000: the request is ready at 65 + 250 + W + 30 = 461.8, the reply leaves 250 later;
        # of its two packets the second is in memory at W + 175.798 + 250.
        for early, way in ((True, "rdma"), (False, "rdma"), (False, "paper")):
            self.assertEqual(self.run_one(8192, early, way), (5461800 + 250000 + 542598, 0))
        # The library's clearance has 8 B, 0.14 more; then a handler, 14, and 250 more to memory.
        self.assertEqual(self.run_one(8192, False, "library"), (5461940 + 14000 + 500000 + 542598,
                                                                0))

    def test_long_by_handlers(self):
        # The announcement, 16 B, is ready at 462.1; 14; the get is ready after W + 30.
        self.assertEqual(self.run_one(8192, True, "paper"),
                         (476100 + 146800 + 250000 + 542598, 0))
        self.assertEqual(self.run_one(8192, True, "library"),
                         (476100 + 146940 + 14000 + 500000 + 542598, 0))


class Raids(unittest.TestCase):
    def run_one(self, size, way, nic=DISCRETE, **more):
        return Raid(nic, size, 4096, way, TEN, HOST, **more).run()

    def test_programs(self):
        # Four puts, two of 64 B (in memory at 713.06) and two acks of 1 B (711.8); 51 + 256 ·
        # 6.7 ps = 52.715 at the data server, 51 + 192 · 6.7 ps = 52.286 at the parity server.
        self.assertEqual(self.run_one(64, "rdma"), 2 * 713060 + 52715 + 52286 + 2 * 711800)
        self.assertEqual(self.run_one(64, "rdma", direct=True),
                         2 * 713060 + 52715 + 52286 + 711800)

    def test_handlers(self):
        # Ready at 463.06 and W + 1.26 + 30 = 148.06 later; each handler takes 10, 500.998 and
        # 0.998 for 64 B, 4 for its put. Acks: W + 30, a handler of 14, W + 30 + 250.
        two = 463060 + 148060 + 2 * (10000 + 500998 + 998 + 4000)
        self.assertEqual(self.run_one(64, "spin"), two + 146800 + 14000 + 396800)
        self.assertEqual(self.run_one(64, "spin", direct=True), two + 396800)

    def test_locks(self):
        # One server's packet waits for nobody; of two the second one waits at least until the first
        # has its read, 2 · 250 ns, and has looked again 20 ns later at most.
        self.assertEqual(self.run_one(4096, "spin", locks=True), self.run_one(4096, "spin"))
        longer = self.run_one(8192, "spin", locks=True) - self.run_one(8192, "spin")
        self.assertGreater(longer, 500000)
        self.assertLess(longer, 500000 + 2 * 4096 * 16 + 20000)

    def test_parts(self):
        run = Raid(DISCRETE, 22000, 4096, "spin", TEN, HOST)
        self.assertEqual(list(run.part.values()), [8192, 5616, 4096, 4096])
        self.assertEqual(run.acks, 4)
        self.assertEqual(Raid(DISCRETE, 5000, 4096, "spin", TEN, HOST).acks, 2)

    def test_every_way_ends(self):
        for size in (1, 5000, 100000):
            for way in ("rdma", "spin"):
                for direct in (False, True):
                    self.assertGreater(self.run_one(size, way, direct=direct), 463000)


class Command(unittest.TestCase):
    def rows(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            spin_figures.main([*words, "--json"])
        return json.loads(out.getvalue())["rows"]

    def test_every_figure(self):
        for figure in spin_figures.FIGURES:
            for row in self.rows(figure, "--sizes", "4096", "--ranks", "5"):
                self.assertGreater(min(v for k, v in row.items() if isinstance(v, float) and
                                       not k.endswith("waits")), 0)

    def test_options(self):
        # 10 ns more of handler are 5 ns more of half a round trip.
        one = self.rows("3c", "--sizes", "8", "--handler", "20")[0]
        self.assertEqual(one, {"bytes": 8, "rdma": 711.94, "triggered": 679.44, "stored": 439.44,
                               "streamed": 439.44})
        row = self.rows("4", "--sizes", "4096", "--times", "700")[0]
        self.assertAlmostEqual(row.pop("apart_700ns"), 87.5, delta=0.1)
        self.assertEqual(row,
                         {"bytes": 4096, "gap": 81.92, "million_per_s": 1e6 / 81920,
                          "budget": 655.36, "hpus_700ns": 9})


if __name__ == "__main__":
    unittest.main()
