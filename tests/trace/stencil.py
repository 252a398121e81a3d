# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of a stencil on a grid of ranks, as `goal record` would write them."""
import os


def recording(folder, size, periodic):
    """A stencil of two dimensions: two steps of halos, a sum, a broadcast, on a communicator of all."""
    os.makedirs(folder)
    ranks = size[0] * size[1]
    for rank in range(ranks):
        x, y = divmod(rank, size[1])
        lines, now, request = [f"pinwheel-mpi-trace 1 {rank} {ranks}"], 0, 0

        def line(name, *numbers):
            nonlocal now
            lines.append(" ".join(map(str, (name, now, 5, *numbers))))
            now += 5 + 100 * (1 + (x == 0))  # what is computed depends on the class only

        line("Init", 0)
        line("Comm", 2, *range(ranks))
        for step in range(2):
            begun = []
            for tag, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
                for name, sign, bytes in (("Irecv", -1, 8), ("Isend", 1, 8 * (1 + tag))):
                    to = [x + sign * dx, y + sign * dy]
                    out = not (0 <= to[0] < size[0] and 0 <= to[1] < size[1])
                    if periodic:
                        to = [to[0] % size[0], to[1] % size[1]]
                    peer = -2 if out and not periodic else to[0] * size[1] + to[1]
                    bytes = 8 * (1 + tag)
                    line(name, request, peer, tag, bytes, 2)
                    begun.append((request, name, peer, tag, bytes))
                    request += 1
            line("Waitall", *(n for r, name, peer, tag, bytes in begun
                              for n in (r, -3 if name == "Isend" else peer, tag, bytes)))
            line("Allreduce", 0, 16)
        line("Bcast", 2, 0, 40)
        if rank == 0:
            line("Sendrecv", 0, 1, 4, 0, 1, 4, 1, 0, 1, 4)
        line("Finalize")
        with open(f"{folder}/rank-{rank}.trace", "w") as file:
            file.write("\n".join(lines) + "\n")
