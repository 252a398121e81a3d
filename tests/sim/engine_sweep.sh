#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal run --sweep`: tables, JSON, pictures, refusals. The times are those of
# docs/loggops-model.md: an eager message of 100 bytes takes 2o + L + 99 (G + 2 O), and there are two.
# Usage: engine_sweep.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

# sweep EXPECTED ARGUMENT...: "value finish" pairs of the JSON.
sweep() {
    expected=$1
    shift
    "$pinwheel" goal run --json "$@" >out
    got=$(tr -d ' \n' <out | sed 's/},{/ /g; s/"value"://g; s/,"finish_ns":/=/g; s/,"last_rank":[0-9]*//g; s/[][{}]//g')
    [ "$got" = "$expected" ] || fail "$*: $got, not $expected"
}

pingpong=$golden/micro/01_pingpong.goal

# Twice 2o + L + 99 G, each parameter in its turn; G down; S from rendezvous (4o + 3L) to eager.
sweep '0=7188 2500=12188 5000=17188' --sweep L=0:5us:3 "$pingpong"
sweep '0=6188 1000=10188' --sweep o=0:1us:2 "$pingpong"
sweep '6=12188 4=11792 2=11396 0=11000' --sweep G=6:0:4 "$pingpong"
sweep '98=28188 99=28188 100=12188' --sweep S=98:100:3 "$pingpong"
sweep '0.02=11003.96 0.04=11007.92' --sweep G=20ps:40ps:2 "$pingpong"
sweep '0=12188 3=12782' --sweep O=0:3:2 "$pingpong"

# Values that round to the same are run once; fractions are held exactly.
sweep '0=28188 1=28188' --sweep S=0:1:4 "$pingpong"
sweep '0=7188 0.333=7188.666 0.666=7189.332 1=7190' --sweep L=0:1:4 "$pingpong"
sweep '0=7188 1=7190' --model loggopsim --sweep L=0:1:3 "$pingpong"

# As a table, and as a picture that is XML.
"$pinwheel" goal run --sweep g=0:1us:2 --svg sweep.svg "$pingpong" >out
grep -qx ' *g (ns)  *finish (ns)  *last rank' out || fail "$(cat out)"
grep -qx ' *1000  *12188  *0' out || fail "$(cat out)"
python3 -c 'import xml.dom.minidom as x; d = x.parse("sweep.svg")
assert len(d.getElementsByTagName("circle")) == 2, "a mark for each value"'
printf 'g (µs),last finish (µs)\n0,12.188\n1,12.188\n' | cmp - sweep.csv || fail "$(cat sweep.csv)"

refuse_run 2 'must be like L=0:10us:11' --sweep L=0:1 "$pingpong"
refuse_run 2 'must be like L=0:10us:11' --sweep l=0:1:2 "$pingpong"
refuse_run 2 'must be how many values' --sweep L=0:1:1 "$pingpong"
refuse_run 2 'must be how many values' --sweep L=0:1:2x "$pingpong"
refuse_run 2 '-G x: must be a time per byte' --sweep G=x:1:2 "$pingpong"
refuse_run 2 'smallest step is 1 ps' --sweep L=0:0.0001:2 "$pingpong"
refuse_run 2 'whole nanoseconds' --model loggopsim --sweep L=0:0.5:2 "$pingpong"
refuse_run 2 '--sweep is missing' --svg sweep.svg "$pingpong"
refuse_run 2 '--sweep prints the last finish' --ranks --sweep L=0:1:2 "$pingpong"
refuse_run 1 '--svg nowhere/sweep.svg: No such file' --sweep L=0:1:2 --svg nowhere/sweep.svg "$pingpong"

# A value with which the schedule cannot finish is named.
cat >rendezvous.goal <<'END'
num_ranks 2
rank 0 {
a: send 100b to 1
b: recv 100b from 1
b requires a
}
rank 1 {
a: send 100b to 0
b: recv 100b from 0
b requires a
}
END
refuse_run 1 'that was the run of --sweep S=100:90:3 with S 95 B' --sweep S=100:90:3 rendezvous.goal
