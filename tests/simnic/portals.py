# SPDX-License-Identifier: BSD-3-Clause
"""Random schedules of Portals' operations, as text.

A schedule has rounds. What a round tests, or waits for to trigger, was counted by what the rounds
before it do for certain; so every schedule can finish, whatever the times are.
"""
SIZES = (0, 1, 8, 100, 4096, 4097, 9000, 20000)
MOVES = ("put", "put", "put", "get", "get", "atomic", "fetch", "swap", "cas")
WORDS = {"put": "to", "get": "from", "atomic": "to", "fetch": "from", "swap": "with", "cas": "with"}
ENTRY, COUNTED, HANDLED, ONCE = 1, 2, 3, 100  # tags of entries: that count nothing, that do, with handlers, use_once
TIME = "10ns"  # of a handler
PACKET = 4096


class Schedule:
    def __init__(self, rng, kinds):
        self.rng, self.kinds = rng, kinds
        self.ranks = rng.choice((1, 2, 2, 3, 4, 6))
        self.heads = [[] for _ in range(self.ranks)]  # appends: before all else
        self.lines = [[] for _ in range(self.ranks)]
        self.labels = [[] for _ in range(self.ranks)]
        self.counts = [{} for _ in range(self.ranks)]  # by counter: of the rounds before
        self.coming = [{} for _ in range(self.ranks)]  # of this round
        self.once = ONCE
        self.number = 0
        # by rank, for tags HANDLED and HANDLED + 1: [by header, payload, completion: what they do], ct
        self.handlers = [[self.some_handlers() for _ in range(2)] for _ in range(self.ranks)]

    def some_handlers(self):
        """What handlers of an entry do: None: there is none, or (text, counted, by packet)."""
        rng = self.rng
        made = []
        for word in ("hh", "ph", "ch"):
            deeds = []
            for _ in range(rng.randint(0, 3)):
                kind, peer = rng.choice(("put", "put", "hostput", "write", "count")), rng.randrange(self.ranks)
                size = rng.choice((0, 1, 8, 4096))
                small = "" if word == "ph" and rng.random() < 0.6 else f" {max(size, int(word == 'ph'))}b"
                if kind == "count":
                    deeds.append(("count 5 by 2", None, 5, 2))
                elif kind == "write":
                    deeds.append((f"write{small}", None, None, 0))
                else:
                    deeds.append((f"{kind}{small} to {peer} as {COUNTED}", peer, 8, 1))
            made.append((word, deeds) if rng.random() < 0.6 else None)
        if not any(made):
            made[1] = ("ph", [])
        return made, rng.choice((None, 6))

    def handled(self, peer, size):
        """A message to an entry with handlers: its tag; what they do is counted."""
        which = self.rng.randrange(2)
        made, counter = self.handlers[peer][which]
        for part in made:
            times = -(-size // PACKET) if part and part[0] == "ph" else 1
            for _, to, number, more in part[1] if part else ():
                if number is not None:
                    self.count(peer if to is None else to, number, times * more)
        if counter:
            self.count(peer, counter)
        return HANDLED + which

    def add(self, rank, text, after=()):
        self.number += 1
        label = f"l{self.number}"
        self.lines[rank].append(f"{label}: {text}")
        for other in after:
            self.lines[rank].append(f"{label} {self.rng.choice(('requires', 'requires', 'irequires'))} {other}")
        self.labels[rank].append(label)
        return label

    def count(self, rank, counter, more=1):
        self.coming[rank][counter] = self.coming[rank].get(counter, 0) + more

    def some_before(self, rank):
        labels = self.labels[rank][-6:]
        return self.rng.sample(labels, self.rng.randint(0, min(2, len(labels))))

    def counted(self, rank):
        """A counter and what it comes to for certain, before this round; None: none does."""
        known = [(c, n) for c, n in self.counts[rank].items() if n > 0]
        if not known:
            return None
        counter, most = self.rng.choice(known)
        return counter, self.rng.randint(1, most)

    def target(self, peer):
        """The tag of an entry at a rank that takes one message more."""
        kind = self.rng.random()
        if kind < 0.2:
            self.once += 1
            self.heads[peer].append(f"append 30000b allowed -1 tag {self.once} use_once ct 7")
            self.count(peer, 7)
            return self.once
        if kind < 0.7:
            self.count(peer, 8)
            return COUNTED
        return ENTRY

    def move(self, rank, after):
        rng = self.rng
        kind, peer = rng.choice(self.kinds), rng.randrange(self.ranks)
        size = rng.choice((1, 2, 4, 8)) if kind == "cas" else rng.choice((1, 8, 64, 4000)) \
            if kind in ("atomic", "fetch", "swap") else rng.choice(SIZES)
        when = self.counted(rank) if rng.random() < 0.3 else None
        handled = kind == "put" and rng.random() < 0.4
        tag = self.handled(peer, size) if handled else self.target(peer)
        text = f"{'t' if when else ''}{kind} {size}b {WORDS[kind]} {peer} tag {tag}"
        if when:
            text += f" when {when[0]} reaches {when[1]}"
        if rng.random() < 0.6:
            counter = rng.choice((1, 2))
            text += f" ct {counter}"
            self.count(rank, counter)
        self.add(rank, text, after)

    def message(self, rank, after):
        rng = self.rng
        peer, size = rng.randrange(self.ranks), rng.choice(SIZES)
        self.number += 1
        tag = self.number
        self.add(rank, f"send {size}b to {peer} tag {tag}", after)
        self.add(peer, f"recv {size}b from {rng.choice((rank, -1))} tag {tag}", self.some_before(peer) if peer != rank else ())

    def round(self):
        rng = self.rng
        for _ in range(rng.randint(1, 5 * self.ranks)):
            rank = rng.randrange(self.ranks)
            after = self.some_before(rank)
            known = self.counted(rank)
            choice = rng.random()
            if choice < 0.25 and known:
                self.add(rank, f"test {known[0]} for {known[1]}", after)
            elif choice < 0.35:
                self.add(rank, f"calc {rng.choice((0, 1, 20, 65, 300, 1000))}", after)
            elif choice < 0.45:
                more = rng.randint(0, 3)
                self.add(rank, f"count 3 by {more}", after)
                self.count(rank, 3, more)
            elif choice < 0.5 and known:
                self.add(rank, f"tcount 4 by 2 when {known[0]} reaches {known[1]}", after)
                self.count(rank, 4, 2)
            elif choice < 0.62:
                self.message(rank, after)
            else:
                self.move(rank, after)
        for known, more in zip(self.counts, self.coming):
            for counter, n in more.items():
                known[counter] = known.get(counter, 0) + n
            more.clear()

    def text(self):
        out = [f"num_ranks {self.ranks}"]
        for rank in range(self.ranks):
            out.append(f"rank {rank} {{")
            out.append(f"append {self.rng.choice((30000, 30000, 5000))}b allowed -1 tag {ENTRY}")
            out.append(f"append 30000b allowed -1 tag {COUNTED} ct 8")
            for which, (made, counter) in enumerate(self.handlers[rank]):
                parts = [f"{part[0]} {TIME} " + " ".join(deed[0] for deed in part[1]) for part in made if part]
                out.append(f"append 30000b allowed -1 tag {HANDLED + which} {' '.join(parts)}" +
                           (f" ct {counter}" if counter else ""))
            out += self.heads[rank] + self.lines[rank] + ["}"]
        return "\n".join(out) + "\n"


def make(rng, kinds=MOVES):
    """The text of a random schedule, and how many ranks it has."""
    s = Schedule(rng, kinds)
    for _ in range(rng.randint(1, 4)):
        s.round()
    return s.text(), s.ranks


def text_of(ranks):
    """A schedule of these lines of each rank."""
    return f"num_ranks {len(ranks)}\n" + "".join(
        f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines) + "}\n" for rank, lines in enumerate(ranks))


def children(rank, ranks):
    """In a binomial tree, the largest part first."""
    half, made = 1, []
    while half < ranks:
        half *= 2
    while half > 1:
        half //= 2
        if rank % (2 * half) == 0 and rank + half < ranks:
            made.append(rank + half)
    return made


def broadcast(ranks, size):
    """Payload handlers put each packet to the children; the root's program begins."""
    packets = max(1, -(-size // PACKET))
    made = [[f"put {size}b to {child} tag 1" for child in children(0, ranks)]]
    for rank in range(1, ranks):
        puts = " ".join(f"put to {child} as 1" for child in children(rank, ranks))
        # of a message of several packets the children get as many messages
        counted = packets if rank in children(0, ranks) else 0
        made.append([f"append {max(size, 1)}b allowed -1 tag 1 ph {TIME} {puts} write ct 1",
                     f"test 1 for {1 if counted else packets}"])
    return text_of(made)


def triggered_broadcast(ranks, size):
    """What has come triggers the puts to the children."""
    made = [[f"put {size}b to {child} tag 1" for child in children(0, ranks)]]
    for rank in range(1, ranks):
        made.append([f"append {size}b allowed -1 tag 1 ct 1"] +
                    [f"tput {size}b to {child} tag 1 when 1 reaches 1" for child in children(rank, ranks)] +
                    ["test 1 for 1"])
    return text_of(made)
