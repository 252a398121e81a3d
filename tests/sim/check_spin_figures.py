# SPDX-License-Identifier: BSD-3-Clause
"""The calculator of the sPIN paper's figures against times that are computed by hand.

    check_spin_figures.py

Of the way between two hosts of a switch: two cables and a switch, W = 2 · 33.4 + 50 = 116.8 ns.
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference"))

from spin_machine import Machine, Message, NICS, packets_of  # noqa: E402
from spin_programs import Broadcast, Costs, PingPong, children, deposited  # noqa: E402

DISCRETE, INTEGRATED = NICS["discrete"], NICS["integrated"]
TEN = Costs(10000, 0)
CAST = Costs(10000, 4000)


def trip(size, way, nic=DISCRETE, **more):
    return PingPong(nic, size, way, TEN, **more).round_trip()


class Ways(unittest.TestCase):
    """Host 1 and others put to host 0 from NIC memory; times of the last byte's deposit."""

    def setUp(self):
        self.machine = Machine(DISCRETE, 4)
        self.came = []

    def message(self, source, size, to=0):
        return Message(source, to, size,
                       deposited(lambda: self.came.append((source, self.machine.now))))

    def ends(self):
        self.machine.run()
        return self.came

    def test_gap(self):
        # The second 8 B leave g = 6.7 ns later; 116.8 + 7 · 0.02 + 30 + 250 = 396.94.
        for _ in range(2):
            self.machine.hosts[1].put_from_device(self.message(1, 8))
        self.assertEqual(self.ends(), [(1, 396940), (1, 403640)])

    def test_slow_host_memory(self):
        # At 40 ps a byte of host memory 4096 B take the port for 163.84 ns.
        self.machine = Machine(DISCRETE._replace(dma_byte=40_000_000), 4)
        for _ in range(2):
            self.machine.hosts[1].put_from_device(self.message(1, 4096))
        self.ends()
        self.assertEqual(self.machine.hosts[1].port_free, 2 * 163840)

    def test_port_is_taken_message_by_message(self):
        # 8192 B take 163.84 ns, and 8 B come behind them, though ready at the same time. Last
        # bytes at 116.8 + 163.82 = 280.62 and 116.8 + 163.84 + 0.14 = 280.78. The packets are
        # ready at 116.8 + 81.9 + 30 = 228.7, 282.62, 310.78; the engine is taken for 63.898,
        # 63.898 and (8 · 15.6 ps) 0.125 from 228.7, 292.598, 356.496.
        self.machine.hosts[1].put_from_device(self.message(1, 8192))
        self.machine.hosts[1].put_from_device(self.message(1, 8))
        self.assertEqual(self.ends(), [(1, 292598 + 250000), (1, 356496 + 250000)])

    def test_shared_cable(self):
        # Both are at the switch at 33.4 + 50; rank 1's goes first for 4096 · 0.02 = 81.92 ns.
        # Ready at 116.8 + 81.9 + 30 = 228.7 and 310.62, when the engine is free again.
        for source in (1, 2):
            self.machine.hosts[source].put_from_device(self.message(source, 4096))
        self.assertEqual(self.ends(), [(1, 478700), (2, 560620)])

    def test_store_and_forward(self):
        # The switch waits for 99 bytes more: 116.8 + 2 · 99 · 0.02 + 30 + 250.
        self.machine = Machine(DISCRETE, 4, switching="store-and-forward")
        self.machine.hosts[1].put_from_device(self.message(1, 100))
        self.assertEqual(self.ends(), [(1, 400760)])

    def test_message_to_oneself(self):
        # 116.8 + 30 + 250: no bytes follow the first.
        self.machine.hosts[0].put_from_device(self.message(0, 0))
        self.assertEqual(self.ends(), [(0, 396800)])

    def test_busy_program(self):
        # Two calls, o = 65 ns each: at the port at 315 and 380; then as in test_gap().
        for _ in range(2):
            self.machine.hosts[1].put(self.message(1, 8))
        self.assertEqual(self.ends(), [(1, 711940), (1, 776940)])

    def test_three_levels(self):
        # 649 hosts; host 648 is in another subtree of 324: 5 switches, 6 cables: 450.4.
        self.machine = Machine(DISCRETE, 649)
        self.machine.hosts[648].put_from_device(self.message(648, 1))
        self.assertEqual(self.ends(), [(648, 730400)])


class Hpus(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(DISCRETE, 2)
        self.host = self.machine.hosts[0]
        self.ends = []

    def test_fifth_waits(self):
        def handler(time):
            yield self.host.spend(time)
            self.ends.append(self.machine.now)
        # The fifth gets HPU 0 at 100, the sixth the same at 150.
        for time in (100, 200, 300, 400, 50, 60):
            self.host.handle(handler(time))
        self.machine.run()
        self.assertEqual(self.ends, [100, 150, 200, 210, 300, 400])
        self.assertEqual(self.host.most_waiting, 2)

    def test_dma(self):
        # A read of 1000 B: 2 · 250 + 15.6 = 515.6, and the engine is taken until 15.6. A write
        # of 2000 B begins then, is taken by the engine at 46.8 and in memory at 296.8. A deposit
        # of 10 B at 40 waits for the engine: 46.8 + 250.
        def reader():
            yield self.host.dma_read(1000)
            self.ends.append(("read", self.machine.now))

        def writer():
            yield self.host.dma_write(2000, lambda: self.ends.append(("there", self.machine.now)))
            self.ends.append(("goes on", self.machine.now))
        self.host.handle(reader())
        self.host.handle(writer())
        self.machine.at(40000, lambda: self.host.deposit(
            10, lambda: self.ends.append(("deposit", self.machine.now))))
        self.machine.run()
        self.assertEqual(self.ends, [("goes on", 46800), ("there", 296800), ("deposit", 296800),
                                     ("read", 515600)])
        self.assertEqual((self.host.read, self.host.written), (1000, 2010))


class PingPongs(unittest.TestCase):
    def test_closed_forms(self):
        # 65 + 250 + W + 7 · 0.02 + 30 + 250; o at one end only; 868.88 is 65 + 250 + W + 0.14 +
        # 30 + 10 there and W + 0.14 + 30 + 250 back.
        self.assertEqual(trip(8, "rdma"), 2 * 711940)
        self.assertEqual(trip(8, "triggered"), 2 * 679440)
        self.assertEqual(trip(8, "streamed"), 2 * 434440)
        self.assertEqual(trip(8, "stored"), 2 * 434440)

    def test_integrated(self):
        # 4 · 200, 4 · 200 and 2 · 200 ns less a round trip.
        self.assertEqual(trip(8, "rdma", INTEGRATED), 2 * 311940)
        self.assertEqual(trip(8, "triggered", INTEGRATED), 2 * 279440)
        self.assertEqual(trip(8, "streamed", INTEGRATED), 2 * 234440)

    def test_engine_delays_the_second_packet(self):
        # Behind 65 + 250 + W = 431.8: ready at 81.9 + 30 = 111.9 and 163.82 + 2 = 165.82, but the
        # engine is taken from 111.9 to 175.798 (integrated: 139.343): 431.8 + 175.798 + 250.
        self.assertEqual(trip(8192, "rdma"), 2 * 857598)
        self.assertEqual(trip(8192, "rdma", INTEGRATED), 2 * (231800 + 165820 + 50000))

    def test_packets_in_order(self):
        # The last 4 B come at 81.98 and may not be ready before the first packet, at 111.9; their
        # deposit waits until 175.798.
        self.assertEqual(trip(4100, "rdma"), 2 * 857598)

    def test_stored(self):
        # There 431.8 + 165.82 + 10, and 500 for the way to memory and back; then W + 175.798 +
        # 250. When the handler waits for memory it starts at 857.598.
        self.assertEqual(trip(8192, "stored"), 431800 + 165820 + 510000 + 116800 + 425798)
        self.assertEqual(trip(8192, "stored", after_deposit=True),
                         857598 + 510000 + 116800 + 425798)

    def test_streamed(self):
        # The first packet leaves at 431.8 + 81.9 + 30 + 10 = 553.7, the second, handled at 607.62,
        # when the port is free: 553.7 + 81.92 = 635.62. Then W + 81.9 + 30 + 250: each packet is
        # a message of its own.
        self.assertEqual(trip(8192, "streamed"), 635620 + 116800 + 361900)

    def test_anchor(self):
        # "35% lower latency" (slides): discrete, 4 KiB.
        self.assertAlmostEqual(1 - trip(4096, "streamed") / trip(4096, "rdma"), 0.35, delta=0.05)


class Broadcasts(unittest.TestCase):
    def last(self, size, ranks, way, nic=DISCRETE, **more):
        return Broadcast(nic, size, ranks, way, CAST, **more).last()

    def test_tree(self):
        # The picture at the head of handlers/tree.h.
        self.assertEqual([children(place, 8) for place in range(8)],
                         [[4, 2, 1], [], [3], [], [6, 5], [], [7], []])
        self.assertEqual(children(4, 7), [6, 5])

    def test_four_ranks(self):
        # Rank 3 is last, behind rank 2. Two ping-pong ways; the second without o; streamed: 65 +
        # 250 + W + 0.14 + 30, 10 + 4 for the put, W + 0.14 + 30, 10, then the handler's DMA of
        # 8 · 15.6 = 125 ps and 250.
        self.assertEqual(self.last(8, 4, "rdma"), 2 * 711940)
        self.assertEqual(self.last(8, 4, "triggered"), 711940 + 646940)
        self.assertEqual(self.last(8, 4, "streamed"), 461940 + 14000 + 146940 + 10000 + 250125)

    def test_four_ranks_streamed(self):
        # 64 KiB, 32 packets of the root, the last but one (packet 15 to rank 2) leaves at 315 +
        # 30 · 81.92 = 2772.6, and is ready at + W + 81.9 + 30 = 3001.3. 14, then W + 81.9 + 30,
        # 10, 63.898 and 250. Rank 1's last one leaves at 2854.52 and has one hop less.
        self.assertEqual(self.last(65536, 4, "streamed"),
                         3001300 + 14000 + 228700 + 10000 + 313898)

    def test_handlers_of_the_library(self):
        # 8 B: the root's NIC reads them: 315 + W + 30 + 10 + 500.125 and 4, 24 B leave. They are
        # ready W + 0.46 + 30 = 147.26 later at rank 2, then 14; 147.26; 10 + 0.125 + 250.
        self.assertEqual(self.last(8, 4, "streamed", root="handler"),
                         975925 + 147260 + 14000 + 147260 + 260125)

    def test_puts_at_the_end(self):
        # Along 8, 12, 14, 15: 461.94 and handlers of 10 + 4 · 3, 10 + 4 · 2, 10 + 4, 10 between
        # three ways of 146.94; when each put leaves at its time, 14 three times.
        at_end = Broadcast(DISCRETE, 8, 16, "streamed", Costs(10000, 4000, True)).last()
        self.assertEqual(at_end, 461940 + 22000 + 18000 + 14000 + 3 * 146940 + 260125)
        self.assertEqual(self.last(8, 16, "streamed"), 461940 + 3 * (14000 + 146940) + 260125)

    def test_anchors(self):
        # "7% and 5% faster than RDMA and Portals 4 at 1,024", integrated; 64 KiB must be meant.
        rdma, triggered, streamed = (self.last(65536, 1024, way, INTEGRATED)
                                     for way in ("rdma", "triggered", "streamed"))
        self.assertAlmostEqual(1 - streamed / rdma, 0.07, delta=0.05)
        self.assertAlmostEqual(1 - streamed / triggered, 0.05, delta=0.05)


class Packets(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([packets_of(size) for size in (0, 1, 4096, 4097, 8192)],
                         [[1], [1], [4096], [4096, 1], [4096, 4096]])


if __name__ == "__main__":
    unittest.main()
