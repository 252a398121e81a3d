#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The reports of `pinwheel sim`: reports.py CASE PINWHEEL FOLDER-OF-PROGRAMS FOLDER-OF-EXAMPLES.

Numbers are computed by hand from the table of docs/sim-nic.md; the machine is `discrete` unless a
case says otherwise.
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

case, pinwheel, programs, examples = sys.argv[1:5]
wrong = 0


def same(what, wanted, found):
    global wrong
    if wanted != found:
        print(f"{what}: wanted {wanted!r}, found {found!r}", file=sys.stderr)
        wrong += 1


def sim(*arguments, status=0):
    run = subprocess.run([pinwheel, "sim", "--timeout", "100", *map(str, arguments)],
                         capture_output=True, text=True)
    same(f"status of {arguments}", status, run.returncode)
    return run


def stats_of(*arguments, status=0):
    out = sim("-n", 2, "--quiet", "--stats=json", *arguments, status=status).stdout
    return json.loads(out[out.index("{\n"):])


def stats():
    """A put of eight packets, 81.92 ns apart, of which the first is matched in 30 ns and the others
    in 2 ns; handlers take 1 us, and four can run. So the fifth waits 1,030 - 2 - 4 * 81.92 ns, and
    the other three 1,000 - 4 * 81.92 ns, for the HPU of the packet four before; there is always one
    that waits until the last begins, and when the fifth begins four do."""
    fifth, others = 1030000 - 2000 - 4 * 81920, 1000000 - 4 * 81920
    found = stats_of("--handler", "1us", f"{programs}/simnic_burst", 8)
    sender, target = found["by_rank"][1], found["by_rank"][0]
    [handler] = target["handlers"]
    same("handler", ("burst_packet", 8, 8 * 2500, 8000000, fifth + 3 * others, fifth),
         tuple(handler[k] for k in ("name", "calls", "cycles", "taken_ps", "waited_ps",
                                    "longest_wait_ps")))
    same("HPUs", [2000000] * 4, target["hpu_ps"])
    same("HPU queue", (fifth + 3 * others, 4), (target["hpu_queue"]["waited_ps"], target["hpu_queue"]["most"]))
    same("shortage", 1000000 + 3 * 81920 - 4 * 81920, found["shortage_ps"])
    same("egress", (8 * 81920, 0), (sender["egress_ps"], target["egress_ps"]))
    same("links", (8 * 81920, 8 * 81920), (sender["link_out_ps"], target["link_in_ps"]))
    same("DMA", 0, found["sum"]["dma_queue"]["waited_ps"])
    same("messages", (1, 1, 1, 0), (sender["messages"], target["requests"], target["matched"],
                                    target["dropped"]))
    # With as many HPUs as packets nobody waits, and one more gains nothing.
    found = stats_of("--handler", "1us", "--hpus", 8, f"{programs}/simnic_burst", 8)
    same("shortage of 8 HPUs", 0, found["shortage_ps"])
    same("limit of 8 HPUs", True, found["limit"].endswith("a 9th HPU gains nothing: no call waited for one"))
    # 8,192 bytes: the second packet's transfer waits until the first, issued 81,920 - 28,000 ps
    # before, has left the engine after 4,096 * 15.6 ps.
    found = stats_of(f"{programs}/simnic_pingpong", "rdma", 8192)
    queue = found["by_rank"][0]["dma_queue"]
    same("DMA queue", (10 * (63898 - 53920), 1), (queue["waited_ps"], queue["most"]))
    same("looks", True, found["sum"]["looks"] == 0 and found["sum"]["skipped_ps"] == 0)
    found = stats_of(f"{programs}/simnic_scenes", "polls", 100000)
    same("skipped", True, found["by_rank"][0]["skipped_ps"] > 0 and found["by_rank"][0]["looks"] >= 64)


def limit():
    """What limits a run is said without an option."""
    said = sim("-n", 2, f"{programs}/simnic_pingpong", "rdma", 8).stderr
    same("ping-pong", True, "limited by latency, nothing is full: " in said and "no handler ran" in said)
    said = sim("-n", 2, "--handler", "1us", "--hpus", 1, f"{programs}/simnic_burst", 500).stderr
    same("burst", True, "limited by HPUs of rank 0: HPUs 9" in said
         and "a 2nd HPU gains 49.9 % (" in said)
    # One message of 16 packets, whose calls are of different lengths.
    if os.path.exists(f"{examples}/hello_handler_hello_capitals.elf"):
        os.environ["PINWHEEL_HPU"] = "rv32"
        runs = json.loads(sim("-n", 2, "--json", "--sweep", "hpus=1:6", f"{examples}/hello_handler").stdout)
        for one, more in zip(runs, runs[1:]):
            share = (one["time_ps"] - more["time_ps"]) / one["time_ps"]
            same(f"gain behind {one}", True, abs(one["gain_ps"] / one["time_ps"] - share) < 0.002)


def hosts():
    """Hosts: what calls and declared compute took; to wait is not to compute. Rank 1 computes, and
    puts, which takes o; the rest it sleeps."""
    found = stats_of(f"{programs}/simnic_works", 91000, 9000)
    same("host", [0, 91000000 + 65000], [r["host_ps"] for r in found["by_rank"]])
    same("host memory", [8 * 6667 // 1000, 0], [r["memory_ps"] for r in found["by_rank"]])
    same("ranks", [(0, 0), (1, 0)], [(r["rank"], r["process"]) for r in found["by_rank"]])
    share = 100 * 91065000 / found["time_ps"]
    same("limit", True, found["limit"].startswith(f"limited by host of rank 1: host {share:.1f} %, "))
    same("use", 1, found["use"]["host"]["rank"])
    said = sim("-n", 2, f"{programs}/simnic_works", 9000, 91000).stderr
    same("who sleeps", True, "limited by latency, nothing is full: host 9." in said)
    # It dies when it has computed from the end of the barrier, 233.6 ns, on.
    found = stats_of("--fault", "rank 1 dies at 10us", f"{programs}/simnic_works", 900000000, 0, status=3)
    same("host until it dies", 10000000 - 233600, found["by_rank"][1]["host_ps"])
    said = sim("-n", 1, "true").stderr
    same("without a NIC", (True, False), ("1 ranks, " in said, "limited" in said))


def timeline():
    """Who took what when, by hand: the sender calls after the barrier, 233.6 ns; its packets leave
    o + L_dma later and 81.92 ns apart, come W + 81.9 ns later, are matched in 30, then 2 ns."""
    with tempfile.TemporaryDirectory() as folder:
        svg, data, trace = (f"{folder}/t.{end}" for end in ("svg", "csv", "json"))
        program = ("--handler", "300ns", f"{programs}/simnic_burst", 8)
        plain = sim("-n", 2, *program).stderr
        same("the run without spans", plain,
             sim("-n", 2, "--timeline", svg, "--trace", trace, *program).stderr)
        rows = [line.split(",") for line in open(data).read().splitlines()]
        same("columns", "rank,resource,what,from (ps),to (ps),peer,message,offset,bytes",
             ",".join(rows[0]))
        wanted = [["1", "CPU", "call", 233600, 298600, "", "", "", "0"]]
        for i in range(8):
            leaves = 233600 + 65000 + 250000 + i * 81920
            comes = leaves + 116800 + 4095 * 20
            ready = comes + (30000 if i == 0 else 2000)
            begins = ready if i < 4 else max(ready, hpu[i - 4])
            hpu = (hpu if i else []) + [begins + 300000]
            packet = ["0", str(i * 4096), "4096"]
            wanted += [["1", "NIC out", "packet out", leaves, leaves + 81920, "0", *packet],
                       ["0", "NIC in", "match", comes, ready, "1", *packet],
                       ["0", f"HPU {i % 4}", "burst_packet", begins, begins + 300000, "", "", "", "0"]]
        same("spans", sorted([str(c) for c in row] for row in wanted), sorted(rows[1:]))
        picture = xml.etree.ElementTree.parse(svg).getroot()
        arrows = [e for e in picture.iter() if e.get("class") == "arrow"]
        same("lines between ranks", 8, len(arrows))
        same("all of them slanted", True, all(float(e.get("x2")) > float(e.get("x1")) for e in arrows))
        events = json.load(open(trace))["traceEvents"]
        same("events", (25, 8, 8), tuple(sum(e["ph"] == p for e in events) for p in "Xsf"))
        lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        same("lanes", {"CPU", "NIC out", "NIC in", "DMA", "HPU 0", "HPU 1", "HPU 2", "HPU 3"}, lanes)
        begun = {e["id"]: e for e in events if e["ph"] == "s"}
        same("flows", True, all(begun[e["id"]]["ts"] < e["ts"] for e in events if e["ph"] == "f"))
        # What does not fit is counted, and told.
        said = sim("-n", 2, "--spans", 3, "--timeline", svg, *program).stderr
        same("missed", True, "19 of 25 spans had no room in --spans 3 and are left out" in said)
        same("kept", 7, len(open(data).readlines()))
        # A rank that is killed leaves its spans.
        sim("-n", 2, "--timeline", svg, f"{programs}/simnic_burst", 8, "dies", status=137)
        same("of a killed rank", 8, sum(row.startswith("1,NIC out") for row in open(data)))
        said = sim("-n", 65, "--timeline", svg, "true", status=2).stderr
        same("too many ranks", True, "65 ranks are more than can be read in a picture, 64" in said)
        said = sim("-n", 1, "--timeline", "/nowhere/t.svg", "true", status=1).stderr
        same("no such folder", True, "--timeline /nowhere/t.svg: No such file" in said)


def phases():
    """Rank 1 computes, sleeps and puts, each in a phase, the last of which lasts until its end."""
    begin, computes, sleeps = 233600, 5000000, 3000000
    with tempfile.TemporaryDirectory() as folder:
        svg, data, trace, file = (f"{folder}/t.{end}" for end in ("svg", "csv", "json", "stats.json"))
        sim("-n", 2, f"--stats={file}", "--timeline", svg, "--trace", trace,
            f"{programs}/simnic_works", 5000, 3000)
        found = json.load(open(file))
        odd = 'sleep, "long"'
        end = found["by_rank"][1]["time_ps"]
        wanted = [("compute", 1, 1, begin, computes, 0), (odd, 1, 1, begin + computes, sleeps, 0),
                  ("put", 1, 1, begin + computes + sleeps, end - begin - computes - sleeps, 1)]
        keys = ("name", "ranks", "begun", "first_ps", "time_ps", "messages")
        for where in (found["sum"], found["by_rank"][1]):
            same("phases", wanted, [tuple(p[k] for k in keys) for p in where["phases"]])
        same("phases of rank 0", [], found["by_rank"][0]["phases"])
        same("the put", (8, 1, 6700), tuple(found["sum"]["phases"][2][k]
                                            for k in ("bytes", "packets", "egress_ps")))
        rows = [row.split(",") for row in open(data).read().splitlines() if ",phase," in row]
        same("rows", [["1", "phase", name.replace(",", " ").replace('"', " "), str(first),
                       str(first + time), "", "", "", "0"] for name, _, _, first, time, _ in wanted],
             rows)
        events = json.load(open(trace))["traceEvents"]
        same("trace", [p[0] for p in wanted],
             [e["name"] for e in events if e["ph"] == "X" and e["tid"] == 0])
        same("lane", True, any(e["name"] == "thread_name" and e["args"]["name"] == "phase"
                               for e in events))
        same("key", True, ">phase</text>" in open(svg).read())
        xml.etree.ElementTree.parse(svg)
    said = sim("-n", 2, "--stats", f"{programs}/simnic_works", 5000, 3000).stderr
    same("table", True, any(line.split()[:5] == ["compute", "1", "1", "0.23360", "5.00000"]
                            for line in said.splitlines()))


def profile():
    """Cycles by source line: all those that statistics count, and a run that is looked into so takes
    the same time. The first line of hello_capitals.c that is one of a loop has most of them."""
    program = f"{examples}/hello_handler"
    if os.path.exists(f"{program}_hello_capitals.elf"):
        os.environ["PINWHEEL_HPU"] = "rv32"
        out = sim("-n", 2, "--json", "--stats=json", "--profile", program).stdout
        begin = out.index('{"ranks"')
        found, end = json.JSONDecoder().raw_decode(out[begin:])
        counted = json.loads(out[begin + end:])
        plain = json.loads("".join(sim("-n", 2, "--json", program).stdout.partition('{"ranks"')[1:]))
        same("time", plain["time_ps"], found["time_ps"])
        spent = {}
        for row in found["profile"]:
            spent[row["handler"]] = spent.get(row["handler"], 0) + row["cycles"]
        same("cycles", {h["name"]: h["cycles"] for h in counted["sum"]["handlers"]}, spent)
        first = found["profile"][0]
        same("order", sorted((row["cycles"] for row in found["profile"]), reverse=True),
             [row["cycles"] for row in found["profile"]])
        # 64,000 bytes: each has its turn of the loop.
        same("line", ("capitals", True, True), (first["function"], first["instructions"] >= 64000,
                                                first["file"].endswith("hello_capitals.c")))
        said = sim("-n", 2, "--profile", program).stderr
        same("table", True, f"hello_capitals.c:{first['line']}\n" in said)
        del os.environ["PINWHEEL_HPU"]
    said = sim("-n", 2, "--profile", f"{programs}/simnic_burst", 8).stderr
    same("native code", True, "no handler of RV32 code ran" in said)


def again():
    """All that is reported is the same, byte by byte, in every run: one rank at a time, two, as many as
    there are, and with a longer environment."""
    runs = [("-n", 2, "--handler", "1us", f"{programs}/simnic_burst", 40),
            ("-n", 2, f"{programs}/simnic_works", 5000, 3000),
            ("-n", 6, "--nic", "integrated", f"{programs}/simnic_scale", "broadcast", 20000),
            ("-n", 4, f"{programs}/simnic_lines", "order"),
            ("-n", 2, f"{examples}/hello_handler")]
    for run in runs:
        first = None
        if os.path.exists(f"{examples}/hello_handler_hello_capitals.elf"):
            os.environ["PINWHEEL_HPU"] = "rv32" if "hello" in str(run[-1]) else "native"
        for how in ((), ("-j", 1), ("-j", 2), ()):
            with tempfile.TemporaryDirectory() as folder:
                here = os.getcwd()
                os.chdir(folder)
                out = sim(*how, "--stats=s.json", "--timeline", "t.svg", "--trace", "t.json",
                          "--profile", "--json", *run)
                table = sim(*how, "--stats", "--profile", *run)
                files = {name: open(name, "rb").read() for name in sorted(os.listdir("."))}
                os.chdir(here)
            found = (out.stdout, out.stderr, table.stdout, table.stderr, files)
            same(f"files of {run}", ["s.json", "t.csv", "t.json", "t.svg"], list(files))
            first = first or found
            for what, wanted, is_now in zip(("JSON", "stderr", "output", "tables", "files"), first, found):
                same(f"{what} of {run} with {how}", True, wanted == is_now)
            os.environ["MORE"] = os.environ.get("MORE", "") + 100 * "x"
    del os.environ["MORE"]


def compare():
    """What differs between two runs: a rank that computes where it slept; another machine."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/a.json", f"{folder}/b.json"]
        for file, times in zip(files, ((91000, 9000), (9000, 91000))):
            sim("-n", 2, f"--stats={file}", f"{programs}/simnic_works", *times)
        found = {f["figure"]: (f["a"], f["b"])
                 for f in json.loads(sim("--compare", "--json", *files).stdout)}
        same("host", (91065000, 9065000), found["sum.host_ps"])
        same("of a rank", (91065000, 9065000), found["by_rank[1].host_ps"])
        same("by phase", (91000000, 9000000), found["sum.phases[compute].time_ps"])
        same("time", False, "time_ps" in found or "sum.messages" in found)
        same("exactly what differs", found, {
            path: (a, b) for (path, a), (_, b) in zip(*(flat(json.load(open(f))) for f in files))
            if a != b})
        lines = sim("--compare", *files).stdout.splitlines()
        same("line", ["sum.host_ps", "91.06500", "us", "9.06500", "us", "-90.05", "%"],
             [line.split() for line in lines if line.startswith("sum.host_ps")][0])
        same("same", True, sim("--compare", files[0], files[0]).stdout.startswith("nothing differs"))
        for text in ("", "{}", "{\n \"sum\": {\"egress_ps\": }}", "[" * 10000, "{\n \"a"):
            with open(files[1], "w") as file:
                file.write(text)
            said = sim("--compare", *files, status=1).stderr
            same(f"{text[:20]}", True, "b.json: no output of --stats=json: byte" in said)
        sim("--compare", files[0], f"{folder}/none", status=1)
    sim("--compare", "true", status=2)
    sim("--compare", "--sweep", "hpus=1:3", "true", status=2)
    # The way of one put: the DMA's latency at either end.
    program = (f"{programs}/simnic_works", 1000, 0)
    found = {f["figure"]: f["a"] - f["b"] for f in json.loads(
        sim("-n", 2, "--nic", "discrete,integrated", "--compare", "--json", *program).stdout)}
    same("machines", 2 * 200000, found["time_ps"])


def flat(value, path=""):
    """The numbers in JSON, each with its path."""
    if isinstance(value, dict):
        for name, of in value.items():
            yield from flat(of, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for i, of in enumerate(value):
            name = of.get("name", of.get("rank", i)) if isinstance(of, dict) else i
            yield from flat(of, f"{path}[{name}]")
    elif not isinstance(value, str):
        yield path, value


def sweep():
    """The runs of a sweep are the runs that one makes by hand; one HPU more gains what was said, also
    where calls differ in length; with as many HPUs as packets nobody waits, and the NICs differ by L_dma before the put."""
    program = ("--handler", "1us", f"{programs}/simnic_burst", 8)
    with tempfile.TemporaryDirectory() as folder:
        found = json.loads(sim("-n", 2, "--json", "--nic", "discrete,integrated", "--sweep",
                               "hpus=1:9", "--svg", f"{folder}/s.svg", *program).stdout)
        same("runs", [(nic, n) for nic in ("discrete", "integrated") for n in range(1, 10)],
             [(run["nic"], run["hpus"]) for run in found])
        for run in found:
            alone = stats_of("--nic", run["nic"], "--hpus", run["hpus"], *program)
            same(f"time of {run}", alone["time_ps"], run["time_ps"])
            same(f"shortage of {run}", alone["shortage_ps"], run["shortage_ps"])
        for one, more in zip(found[:8], found[1:9]):
            same(f"gain behind {one}", one["time_ps"] - more["time_ps"], one["gain_ps"])
        same("nobody waits", 0, found[7]["shortage_ps"])
        same("NICs", 200000, found[7]["time_ps"] - found[16]["time_ps"])
        rows = [line.split(",") for line in open(f"{folder}/s.csv").read().splitlines()]
        same("head of the data", "nic,hpus,time (ps),link,egress,HPUs,DMA,host,host memory", ",".join(rows[0]))
        picture = open(f"{folder}/s.svg").read()
        same("axis", (True, False), (">hpus</text>" in picture, "hpus (" in picture))
        same("data", [[f'"{run["nic"]}"', str(run["hpus"]), str(run["time_ps"])] for run in found],
             [row[:3] for row in rows[1:]])
        xml.etree.ElementTree.parse(f"{folder}/s.svg")
    found = json.loads(sim("-n", 2, "--json", "--sweep", "dma_latency=50ns:250ns:3",
                           f"{programs}/simnic_pingpong", "rdma", 8).stdout)
    same("values", [50000, 150000, 250000], [run["dma_latency"] for run in found])
    # Twenty ways, each with the latency before and behind it.
    same("differences", [20 * 2 * 100000] * 2,
         [after["time_ps"] - run["time_ps"] for run, after in zip(found, found[1:])])
    for wrong, says in (("hpu=1:4", "hpu is no parameter"), ("hpus=1:99", "hpus=99: must be"),
                        ("hpus", "must be like hpus=1:16"), ("hpus=4", ""), ("o=1ns:2ns:1", "1 values")):
        if says:
            said = sim("-n", 2, "--sweep", wrong, "true", status=2).stderr
            same(wrong, True, says in said)
    sim("-n", 2, "--sweep", "hpus=1:2", f"{programs}/simnic_scenes", "forgets", status=3)
    sim("-n", 2, "--sweep", "hpus=1:2", "--stats", "true", status=2)


{name: f for name, f in globals().items() if name in ("stats", "limit", "hosts", "timeline", "sweep", "phases", "compare", "profile", "again")}[case]()
sys.exit(wrong != 0)
