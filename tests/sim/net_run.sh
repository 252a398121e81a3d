#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal run --network` as its users call it: the times of L where nothing is
# in the way, what congestion does, what is printed, what is refused.
# Usage: net_run.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

finish() {
    "$pinwheel" goal run --json "$@" | sed -n '/"finish_ns"/,/]/p' | tr -d ','
}

# A message alone takes what L takes, eager or not, with every cost there is.
for schedule in "$golden"/micro/01_*.goal "$golden"/micro/02_*.goal "$golden"/micro/03_*.goal \
    "$golden"/micro/04_*.goal "$golden"/micro/05_*.goal "$golden"/micro/10_*.goal "$golden"/micro/11_*.goal \
    "$golden"/micro/13_*.goal "$golden"/micro/15_*.goal; do
    for parameters in "" "-S 0" "-o 200 -g 5000 -G 2 -O 3" "-o 0 -g 0 -G 0.02 -O 0.5"; do
        # shellcheck disable=SC2086
        finish $parameters -L 116.8 "$schedule" >by_latency
        # shellcheck disable=SC2086
        finish $parameters --network fattree:radix=4 "$schedule" >by_packets
        cmp by_latency by_packets || fail "$schedule with $parameters"
    done
done

# To oneself there is no way at all; far away it is longer by switches and cables.
"$pinwheel" goal run --ranks --network torus:2 "$golden"/micro/16_self_send.goal >out
grep -q '^finish  *3042 ns' out || fail "$(cat out)"
cat >pair.goal <<'END'
num_ranks 2
rank 0 {
send 8192b to 1
}
rank 1 {
recv 8192b from 0
}
END
printf '0\n36\n' >far
"$pinwheel" goal run --ranks --parameters spin --network torus:8x8 --placement far pair.goal >out
# o, 9 switches, 10 cables, 8191 bytes, o
grep -q '^rank 1  *1077.82$' out || fail "$(cat out)"
"$pinwheel" goal run --ranks --parameters spin --network torus:8x8 --placement far \
    --switching store-and-forward --hop-latency 0 --cable-latency 1ns --link-rate 200Gbit/s pair.goal >out
# o, 10 cables, 8191 bytes of 40 ps and 9 times 4095, o
grep -q '^rank 1  *1941.84$' out || fail "$(cat out)"

# Two messages share the last cable, and the summary says so.
cat >two.goal <<'END'
num_ranks 3
rank 0 {
recv 1000000b from 1
recv 1000000b from 2
}
rank 1 {
send 1000000b to 0
}
rank 2 {
send 1000000b to 0
}
END
"$pinwheel" goal run --ranks --parameters spin -g 0 -S 1000000 --network fattree:radix=36,levels=1 two.goal >out
# o, way (116.8), 2 MB: 40181.78. The other's last byte is there 576 bytes earlier, its take ends at
# 40235.26, and then the second one begins.
grep -q '^rank 0  *40300.26$' out || fail "$(cat out)"
grep -q 'switch 0 of level 1 to host 0' out || fail "$(cat out)"
"$pinwheel" goal run --json --parameters spin -S 1000000 --network fattree:radix=36,levels=1 two.goal >out
grep -q '"packets": 490' out || fail "$(cat out)"
grep -q '"mean_hops": 2' out || fail "$(cat out)"
grep -q '"busiest_channel": "switch 0 of level 1 to host 0"' out || fail "$(cat out)"

# A rendezvous' sender is held by a cable that others use.
"$pinwheel" goal run --ranks --parameters spin -S 0 --buffer 4096 --network torus:3 two.goal >out
awk '/^rank 1/ { exit !($3 > 30000) }' out || fail "$(cat out)"

# The same bytes again, whatever is drawn by lot; another seed is another run.
"$pinwheel" goal gen linear_alltoall --ranks 60 --order shuffled --size 20000 -o big.bin
for network in fattree:radix=8 torus:4x4x4 dragonfly:a=4,h=2,p=2; do
    for i in 1 2; do
        "$pinwheel" goal run --json --network $network --routing adaptive --placement random --seed 3 big.bin |
            grep -v seconds >out.$i
    done
    cmp out.1 out.2
    "$pinwheel" goal run --json --network $network --routing adaptive --placement random --seed 4 big.bin |
        grep -v seconds >out.3
    ! cmp -s out.1 out.3 || fail "$network: the seed changes nothing"
done

# A network of a file, with names in the summary.
cat >net.dot <<'END'
graph { H0 -- left; H1 -- right; H2 -- right; left -- right; }
END
"$pinwheel" goal run --network net.dot two.goal >out
grep -q '3 hosts, 2 switches' out || fail "$(cat out)"
grep -Eq 'most, .*(left to H0|right to left)' out || fail "$(cat out)"
"$pinwheel" goal run --network net.dot --sweep G=1:3:3 two.goal >out
test "$(wc -l <out)" -eq 4 || fail "$(cat out)"

# What the last finish waited for, by hand: 2 o, 9 switches and 10 cables, the bytes; no contention.
"$pinwheel" goal run --critical-path --parameters spin --network torus:8x8 --placement far pair.goal >out
grep -qx '  way  *784 ns  *72.7 %' out || fail "$(cat out)"
grep -qx '  bytes  *0 ns  *0.0 %' out || fail "$(cat out)"
grep -qx '  G  *163.82 ns  *15.2 %' out || fail "$(cat out)"
grep -qx '  contention  *0 ns  *0.0 %' out || fail "$(cat out)"
! grep -q '^  L ' out || fail "$(cat out)"
"$pinwheel" goal run --json --critical-path --parameters spin --network torus:8x8 --placement far \
    --switching store-and-forward --hop-latency 0 --cable-latency 1ns --link-rate 200Gbit/s pair.goal >out
# 10 cables, 8191 bytes of 40 ps and 9 times 4095
grep -q '"path_ns": 10,' out || fail "$(cat out)"
grep -q '"serialisation_ns": 1801.84,' out || fail "$(cat out)"
grep -q '"queueing_ns": 0,' out || fail "$(cat out)"
# Two messages over the last cable (above): a packet of the one waits for each of the other, and
# besides that the cpu takes the other one first.
"$pinwheel" goal run --json --critical-path --parameters spin -g 0 -S 1000000 --network fattree:radix=36,levels=1 two.goal >out
python3 - out <<'END' || fail "$(cat out)"
import json, sys
path = json.load(open(sys.argv[1]))["critical_path"]
parts = {key[:-3]: value for key, value in path.items() if key != "steps" and value}
assert abs(sum(parts.values()) - parts["wait"] - 2 * 40300.26) < 1e-6, parts
assert parts["path"] == 116.8 and parts["o"] == 3 * 65 and parts["queueing"] > 19000, parts
END
"$pinwheel" goal run --network torus:3 --timeline two.svg --trace two.json two.goal >out
grep -q 'rank 1, operation 0: ' two.svg || fail "no picture"
grep -q '"process_name","args":{"name":"network"}' two.json || fail "no network"

# Bad usage, and what cannot be.
refuse_run 2 'must be fattree:' --network cube two.goal
refuse_run 2 '"radix=x" must be radix=2 to 4096' --network fattree:radix=x two.goal
refuse_run 2 'must be static or adaptive' --network torus:4 --routing random two.goal
refuse_run 2 'must be cut-through or store-and-forward' --network torus:4 --switching fast two.goal
refuse_run 2 'whole number from 1' --network torus:4 --packet 0 two.goal
refuse_run 2 'no room for a packet of 4096 bytes' --network torus:4 --buffer 4095 two.goal
refuse_run 2 'must be a rate, such as 400Gbit/s' --network torus:4 --link-rate 400 two.goal
refuse_run 2 'must be a time' --network torus:4 --hop-latency fast two.goal
refuse_run 2 '--network is missing' --routing adaptive two.goal
refuse_run 2 'takes its place' --network torus:4 -L 5 two.goal
refuse_run 2 'takes its place' --network torus:4 --sweep L=1:2:2 two.goal
refuse_run 2 'give --link-rate' --network torus:4 -G 0 two.goal
refuse_run 2 'knows L alone' --network torus:4 --model loggopsim two.goal
refuse_run 2 'one thread' --network torus:4 --threads 2 two.goal
refuse_run 1 '2 hosts, too few for 3 ranks' --network torus:2 two.goal
refuse_run 1 'No such file' --network nowhere.dot two.goal
refuse_run 1 'has hosts for 2 ranks; there are 3' --network torus:8x8 --placement far two.goal
printf 'graph { H0 -- a; H1 -- a; H2 -- b }' >cut.dot
refuse_run 1 'no way leads from H2 to H0' --network cut.dot two.goal
# A schedule that cannot finish says why, as without a network.
printf 'num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n' >extra.goal
refuse_run 1 'never received: rank 0, operation 0' --network torus:2 extra.goal
printf 'num_ranks 2\nrank 0 {\nsend 900000000000000000b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n' >huge.goal
refuse_run 1 '106 days' --network torus:2 -G 18s -S 18446744073709551615 huge.goal
printf 'num_ranks 2\nrank 0 {\na: calc 9223372036000000\nb: send 8b to 1\nb requires a\n}\nrank 1 {\nrecv 8b from 0\n}\n' >late.goal
refuse_run 1 'rank 0, operation 1 (b, line 4 of late.goal): send of 8 bytes to rank 1, tag 0: the time of a packet of its message would pass' \
    --network torus:2 --hop-latency 18s late.goal
