#!/usr/bin/env python3
"""What figures 3, 7 and 8 of the Firehose paper are expected to be, from the algorithm as the paper
has it, in lists: usage firehose_figures.py FIGURE SIZE WAY. The costs are those of
bench/firehose/figure.h; the code knows nothing of the engine."""
import sys
from collections import OrderedDict

PAGE, MIB = 4096, 1 << 20
M, MAXVICTIM = 400 * MIB, 50 * MIB
US = 1000000  # ps
UNPIN, PIN, PIN_PAGE, MESSAGE, PUT = 6000 * US, 30 * US, 2 * US, 15 * US, 267500000
MASK = (1 << 64) - 1


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9e3779b97f4a7c15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
        return z ^ (z >> 31)


def figure_3(size, way):
    """Two nodes put 64 KiB to random places of each other: time of a put of the first. Places are
    whole puts, so what is pinned and replaced is counted in puts."""
    places, limit, victims_most = size * 16, M >> 16, MAXVICTIM >> 16
    warm, puts = places + 16384, 4000
    if way == "unpinned":
        return PUT + 2 * MESSAGE + PIN + 16 * PIN_PAGE + UNPIN
    if way == "kept":
        return "fails" if places > limit else PUT + 2 * MESSAGE
    random = Random(3)
    hoses = [OrderedDict(), OrderedDict()]    # by the time of their release
    victims = [OrderedDict(), OrderedDict()]  # at the other node: pinned, without a firehose
    time = 0
    for i in range(2 * (warm + puts)):
        place = i // 2 if i < 2 * places else random.next() % places
        mine, theirs, cost = hoses[i % 2], victims[i % 2], PUT
        if place in mine:
            mine.move_to_end(place)
        else:
            cost += 2 * MESSAGE
            if len(mine) == limit:
                theirs[mine.popitem(last=False)[0]] = True
            if place in theirs:
                del theirs[place]
            else:
                cost += PIN + 16 * PIN_PAGE
            if len(theirs) > victims_most:
                theirs.popitem(last=False)
                cost += UNPIN
            mine[place] = True
        time += cost if i % 2 == 0 and i >= 2 * warm else 0
    return time // puts


def figure_7(size, way):
    """GUPS by four threads: misses of a node."""
    nodes = 4 if way == "4x1" else 2
    table, part, each = size * MIB, size * MIB // nodes, 4 // nodes
    limit = M // PAGE // (nodes - 1)
    random = [Random(seed) for seed in (1, 2, 3, 4)]
    hoses = [[OrderedDict() for _ in range(nodes)] for _ in range(nodes)]
    misses = 0
    for _ in range(1 << 19):
        for t in range(4):
            at = random[t].next() % (table // 8) * 8
            if at // part == t // each:
                continue
            mine, page = hoses[t // each][at // part], at % part // PAGE
            if page in mine:
                mine.move_to_end(page)
                continue
            misses += 1
            if len(mine) == limit:
                mine.popitem(last=False)
            mine[page] = True
    return misses // nodes


def figure_8(size, way):
    """Time of a put of 32 KiB whose firehoses must be moved, to memory that is pinned: one puts
    after the other, however many threads there are."""
    return 2 * MESSAGE + PUT // 2


if __name__ == "__main__":
    print({"3": figure_3, "7": figure_7, "8": figure_8}[sys.argv[1]](int(sys.argv[2]), sys.argv[3]))
