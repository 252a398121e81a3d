#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Packets that come in any order: routes.sh CASE PINWHEEL FOLDER-OF-PROGRAMS FOLDER-OF-EXAMPLES KIND-OF-HPUS.
# Times are computed by hand from docs/sim-nic.md and docs/network-model.md.
# shellcheck disable=SC2317  # each case is a function, called by the name that it was given
set -u
case=$1 pinwheel=$2 programs=$3 examples=$4 kind=${5:-native}
# shellcheck source=tests/simnic/kit.sh
. "$(dirname "$0")/kit.sh"

# A put of rank 0 to rank 2, under another leaf, at 20 us: its packet i is at the egress port 315 ns and
# i times 81.92 later, and enters the leaf 83.4 ns after that, at 20398.4, 20480.32, 20562.24 ns. The
# static way is by spine 0. Links are down so that one packet takes it, which then waits there until 30
# us, while the others take the other spine. It is at its target 83.4 ns (a cable and a switch) + 33.4
# + 81.9 (4,095 bytes) later, at 30198.7; as the first one it is ready at 30228.7, as another one at
# 30200.7.
away="link spine0-leaf1 down 20.3us..30us"
first="link leaf0-spine0 down 20.4us..30us; $away"
second="link leaf0-spine0 down 20.3us..20.45us; link leaf0-spine0 down 20.49us..30us; $away"

routes() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # on WANTED OPTION...: of the program `simnic_routes`
    on() {
        same "${*:2}" "$1" "$(sim -n 3 --quiet --network fattree:radix=4,levels=2 "${@:2}" 2>&1 | xargs)"
    }
    p=$programs/simnic_routes
    # Alone: 315 + 2 * 81.92 + 283.6 of three switches and four cables + 81.9 + 2 of the CAM + 250.
    on 1096340 "$p" plain 3
    on 1096340 --routing adaptive "$p" plain 3
    # With static routes all of them wait at the spine: 30198.7 + 2 * 81.92 + 2 + 250.
    on 10614540 --fault "$away" "$p" plain 3
    # The first one last: the engine then writes all at once. Or the second: its event is the message's.
    on 10478700 --routing adaptive --fault "$first" "$p" plain 3
    on 10450700 --routing adaptive --fault "$second" "$p" plain 3
    # Header handler, payload handlers on three HPUs, completion handler, 10 ns each, 250 to tell.
    on "10508700 0 4096 8192" --routing adaptive --fault "$first" "$p" handlers 3 0
    # Those of the first and third packet have run before the second one comes.
    on "10470700 0 8192 4096" --routing adaptive --fault "$second" "$p" handlers 3 0
    # On one HPU: header 30238.7, three packets, completion.
    on "10528700 0 4096 8192" --hpus 1 --routing adaptive --fault "$first" "$p" handlers 3 0
    # Behind a user header of 40 bytes the third packet is whole before the others are; behind one of 64
    # packets are those of the network.
    on "10470700 8192 0 4096" --routing adaptive --fault "$second" "$p" handlers 3 40
    on "10470700 0 8128 4032" --routing adaptive --fault "$second" "$p" handlers 3 64
    # Messages of a pair are matched in the order in which they were sent: 30116.94 + 30 + 250, and the
    # second one's deposit waits until that of 8 bytes has left the engine.
    on "1 10396940 2 10397065" --routing adaptive --fault "$first" "$p" pair
    on "1 878740 2 943740" --routing adaptive "$p" pair
    # Packets that wait for the first one have buffers.
    printf '%s\n' 'base = "discrete"' 'buffers = 2' > "$work/2.toml"
    printf '%s\n' 'base = "discrete"' 'buffers = 3' > "$work/3.toml"
    on "DROPPED 0" --nic "$work/2.toml" --routing adaptive --fault "$first" "$p" flow 3
    on "OK 12288" --nic "$work/3.toml" --routing adaptive --fault "$first" "$p" flow 3
    on "OK 12288" --nic "$work/2.toml" --routing adaptive "$p" flow 3
}

# Every handler example, with what is given beside.
all_examples() {
    for ranks in 2 4; do
        for e in accumulate allreduce chain condread ftbcast graph hello_broadcast pspin rendezvous strided; do
            sim -n "$ranks" --quiet "$@" "$examples/$e" > /dev/null || { echo "$e on $ranks, $*" >&2; status=1; }
        done
    done
    for e in pingpong textscan hello_handler kvstore; do
        sim -n 2 --quiet "$@" "$examples/$e" > /dev/null || { echo "$e, $*" >&2; status=1; }
    done
    for ranks in 3 5; do
        for e in raid txlog; do
            [ ! -x "$examples/$e" ] || sim -n "$ranks" --quiet "$@" "$examples/$e" > /dev/null ||
                { echo "$e on $ranks, $*" >&2; status=1; }
        done
    done
    for e in accumulate allreduce strided kvstore; do # device code, if there is any
        PINWHEEL_HPU=$kind sim -n 2 --quiet "$@" "$examples/$e" > /dev/null ||
            { echo "$e, $kind, $*" >&2; status=1; }
    done
}

# They check their own results.
shuffled() {
    all_examples --shuffle 1
    # On a narrow ring, with little room in its switches.
    all_examples --network torus:6 --routing adaptive --buffer 4096 --switching store-and-forward
    # Shuffled packets do come in another order.
    for user in 0 40 64; do
        found=$(sim -n 3 --quiet --shuffle 3 "$programs/simnic_routes" handlers 12 "$user")
        order=$(cut -d' ' -f2- <<< "$found" | tr ' ' '\n')
        same "user header of $user: sorted" yes "$(sort -n <<< "$order" | cmp -s - <(echo "$order") || echo yes)"
        same "user header of $user: right" 0 "$(grep -c wrong <<< "$found")"
    done
}

# again OPTION...: what a job came to, and its output, is the same in every run.
again() {
    for ((i = 0; i < ${RUNS:-20}; i++)); do
        said=$(MORE=$(printf '%0*d' $((i % 2 * 100)) 0) sim -j $((i / 2 % 2 + 1)) --json --stats=json "$@" 2>&1 |
            cksum)
        [ "$i" = 0 ] && first=$said
        same "$*, run $i" "$first" "$said"
    done
}

routes_again() {
    again -n 5 --shuffle 5 "$programs/simnic_scale" alltoall 20000
    again -n 8 --network torus:3x3 --routing adaptive --buffer 4096 "$programs/simnic_scale" alltoall 20000
    again -n 4 --shuffle 9 "$examples/accumulate"
}

# Two ranks on a host. A packet of 4,096 B takes the port 81.92 ns, and is counted 65 + 250 + 116.8 +
# 81.9 + 30 + 250 = 793.7 ns after its put.
hosts_shared() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # on WANTED OPTION...
    on() {
        same "${*:2}" "$1" "$(sim --quiet "${@:2}" 2>&1 | xargs)"
    }
    p=$programs/simnic_mates
    on "2 793700 3 793700" -n 4 "$p" plain 4096 0:2 1:3
    # The second one waits for the port, and comes behind the first one.
    on "2 793700 3 875620" -n 4 --per-host 2 "$p" plain 4096 0:2 1:3
    # From two hosts: they come 81.92 ns apart, and the engine has the first one for 163.84.
    printf '%s\n' 'base = "discrete"' 'dma_byte = "40ps"' > "$work/slow.toml"
    on "4 793700 5 793700" -n 6 --nic "$work/slow.toml" "$p" plain 4096 0:4 2:5
    on "4 793700 5 957540" -n 6 --per-host 2 --nic "$work/slow.toml" "$p" plain 4096 0:4 2:5
    # 8 B are ready at 461.94, and those of rank 1 6.7 later. One HPU: the second call waits.
    on "2 1711940 3 1718640" -n 4 --per-host 2 --hpus 2 --handler 1us "$p" handlers 8 0:2 1:3
    on "2 1711940 3 2711940" -n 4 --per-host 2 --hpus 1 --handler 1us "$p" handlers 8 0:2 1:3
    on "2 1711940 3 1711940" -n 4 --hpus 1 --handler 1us "$p" handlers 8 0:2 1:3
    # Ranks of a host reach each other as others do.
    on "1 711940" -n 2 --per-host 2 "$p" plain 8 0:1
    # One that dies at 21 us gives back the HPU that it has; the other's call takes 1 us from then on.
    on "3 2250000" -n 4 --per-host 2 --hpus 1 --handler 1us --fault "rank 2 dies at 21us" "$p" handlers 8 0:2 1:3
    on "2 793700" -n 4 --per-host 2 --fault "rank 1 dies at 1us" "$p" plain 4096 0:2
    same "what limits" 1 "$(sim -n 4 --per-host 2 --hpus 1 --handler 100us "$p" handlers 8 0:2 1:3 2>&1 |
        grep -c 'limited by HPUs of host 1: HPUs 9')"
    for e in accumulate allreduce chain graph hello_broadcast rendezvous strided; do
        sim -n 4 --per-host 2 --quiet "$examples/$e" > /dev/null || { echo "$e" >&2; status=1; }
    done
    RUNS=10 again -n 6 --per-host 3 "$programs/simnic_scale" alltoall 20000
    RUNS=10 again -n 4 --per-host 2 "$examples/accumulate"
}

$case
exit $status
