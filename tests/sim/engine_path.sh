#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal run --critical-path`, and what --trace refuses, with the golden times that docs/loggops-model.md
# derives by hand. check_path.py holds it against random schedules.
# Usage: engine_path.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

# path NAME PARTS STEPS: the sums, and "time:why:step:rank.operation" of each step.
path() {
    "$pinwheel" goal run --json --critical-path "$golden/micro/$1.goal" >out
    python3 - out "$2" "$3" <<'END' || fail "$1"
import json, sys
path = json.load(open(sys.argv[1]))["critical_path"]
parts = " ".join(f"{k[:-3]}={v}" for k, v in path.items() if k not in ("steps", "end_ns") and v)
steps = " ".join(f"{s['time_ns']}:{s['why']}:{s['step']}:{s['rank']}.{s['operation']}".replace(" ", "_")
                 for s in path["steps"])
for got, expected in ((parts, sys.argv[2]), (steps, sys.argv[3])):
    if got != expected:
        sys.exit(f"{got}\nis not {expected}")
END
}

# A chain of two messages; a recv that is late, with a handshake; sends that wait for a nic;
# messages that wait for one; a cpu that two sends need, with the bytes on two nics.
path 01_pingpong 'o=6000 G=1188 L=5000' '0:at_once:send:0.0 4000:message:in:1.0 4594:last_byte:take:1.0 6094:after_end:send:1.1 10094:message:in:0.1 10688:last_byte:take:0.1'
path 03_late_recv_rndv 'o=4500 G=599994 L=5000 calc=2000007' '0:at_once:calc:1.0 2000000:after_end:post:1.1 2000000:posted:reply:1.1 2004000:message:data:0.0 2008000:message:in:1.1 2607994:last_byte:take:1.1 2609494:after_end:calc:1.2'
path 08_gap_limited 'o=3000 g=2000 G=17982 L=2500 wait=13988' '0:at_once:send:0.0 6994:nic_free:send:0.1 13988:nic_free:send:0.2 17988:message:in:1.1 23982:last_byte:take:1.1'
path 12_incast 'o=3000 g=2000 G=17982 L=2500 wait=13988' '0:at_once:send:1.0 4000:message:in:0.0 10994:nic_free:in:0.1 17988:nic_free:in:0.2 23982:last_byte:take:0.2'
path 14_two_nics 'o=4500 G=59994 L=2500 wait=1500' '0:at_once:send:0.0 1500:cpu_free:send:0.1 5500:message:in:1.1 65494:last_byte:take:1.1'
path 13_calc_delays_recv 'o=1500 calc=1000000 wait=1000000' '0:at_once:calc:1.1 1000000:cpu_free:take:1.0'

# For people: the sums, and of a long path both ends.
"$pinwheel" goal run --critical-path "$golden/micro/08_gap_limited.goal" >out
grep -qx 'critical path of 5 steps, 25482 ns' out || fail "$(cat out)"
grep -qx '  wait  *13988 ns  *54.9 %' out || fail "$(cat out)"
grep -q '^ *6994  nic free     send     rank 0, operation 1 (l2, line 4 of' out || fail "$(cat out)"
"$pinwheel" goal gen pipelinedring --ranks 64 -o long.bin
"$pinwheel" goal run --critical-path long.bin >out
steps=$(sed -n 's/^critical path of \([0-9]*\) steps.*/\1/p' out)
grep -qF "($((steps - 40)) more steps; --json has all)" out || fail "$(cat out)"
[ "$(sed -n '/because of/,$p' out | wc -l)" -eq 42 ] || fail "$(cat out)"

# No operation: no path. A schedule that cannot finish has none either.
printf 'num_ranks 1\nrank 0 {\n}\n' >empty.goal
"$pinwheel" goal run --critical-path empty.goal | grep -qx 'critical path of 0 steps, 0 ns' || fail empty
printf 'num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\n}\n' >stuck.goal
refuse_run 1 'without a partner' --critical-path stuck.goal
refuse_run 2 '--model=pinwheel does' --critical-path --model loggopsim empty.goal
refuse_run 2 '--critical-path: --sweep prints' --critical-path --sweep L=0:1:2 empty.goal

# Timelines (check_trace.py) have a limit, which is found before the run.
"$pinwheel" goal gen binomialtreebcast --ranks 500002 -o large.bin
refuse_run 1 '--trace: large.bin has 1000002 operations; a timeline can have at most 1000000' --trace t.json large.bin
[ ! -e t.json ] || fail "a trace nobody can read"
refuse_run 1 '--timeline: large.bin has 500002 ranks and 1000002 operations; a picture can have at most 64 and 2000' --timeline t.svg large.bin
refuse_run 1 '--timeline nowhere/t.svg: No such file' --timeline nowhere/t.svg empty.goal
refuse_run 2 '--timeline: --model=loggopsim keeps no record' --model loggopsim --timeline t.svg empty.goal
refuse_run 1 '--trace nowhere/t.json: No such file' --trace nowhere/t.json empty.goal
refuse_run 1 '--trace /dev/full: No space left' --trace /dev/full empty.goal

# The picture: what was taken and when, an arrow for the request, the reply and the data; also of
# nothing, and together with the other results of a record.
"$pinwheel" goal run --timeline t.svg --trace t.json --critical-path "$golden/micro/03_late_recv_rndv.goal" >out
[ -s t.json ] || fail "three at once: no trace"
grep -q '^critical path of 7 steps' out || fail "three at once"
"$pinwheel" goal run --timeline empty.svg empty.goal >out
python3 - t.svg empty.svg <<'END' || fail "the picture"
import sys, xml.dom.minidom
picture = xml.dom.minidom.parse(sys.argv[1])
hints = sorted(t.firstChild.data for t in picture.getElementsByTagName("title") if t.parentNode.tagName == "rect")
expected = """rank 0, operation 0: data, 2004000 to 2005500 ns
rank 0, operation 0: data, 2004000 to 2604994 ns
rank 0, operation 0: request, 0 to 1500 ns
rank 0, operation 1: calc, 2605494 to 2605544 ns
rank 1, operation 0: calc, 0 to 2000000 ns
rank 1, operation 1: recv, 2008000 to 2608994 ns
rank 1, operation 1: recv, 2607994 to 2609494 ns
rank 1, operation 1: reply, 2000000 to 2001500 ns
rank 1, operation 2: calc, 2609494 to 2609501 ns"""
assert "\n".join(hints) == expected, hints
assert len(picture.getElementsByTagName("polygon")) == 3, "arrows"
xml.dom.minidom.parse(sys.argv[2])
END
