#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # what the trap calls is reached
# Hosts made of network namespaces: hosts.sh PROGRAM PINWHEEL N; see README.md.
set -u
program=$1
pinwheel=$2
hosts=$3
tag=pw$$
failed=0
scratch=$(mktemp -d /dev/shm/pinwheel-test-XXXXXX)
export PINWHEEL_SHM_DIR="$scratch"

skip()
{
    echo "skipped: $1"
    rm -rf "$scratch"
    exit 77
}

clean_up()
{
    for h in $(seq "$hosts"); do
        ip netns pids "$tag-$h" 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del "$tag-$h" 2>/dev/null
    done
    ip netns del "$tag-b" 2>/dev/null
    rm -rf "$scratch"
}

fail()
{
    echo "FAILED: $1"
    failed=1
}

command -v ip >/dev/null || skip "there is no ip command (package iproute2)"
ip netns add "$tag-b" 2>/dev/null || skip "network namespaces may not be made here (CAP_SYS_ADMIN is needed)"
trap clean_up EXIT
trap 'exit 1' INT TERM
ip -n "$tag-b" link add br0 type bridge 2>/dev/null || skip "this kernel has no bridges"
ip -n "$tag-b" link set br0 up
for h in $(seq "$hosts"); do
    ip netns add "$tag-$h"
    ip -n "$tag-b" link add "v$h" type veth peer name eth0 netns "$tag-$h" 2>/dev/null ||
        skip "this kernel has no veth pairs"
    ip -n "$tag-b" link set "v$h" master br0 up
    ip -n "$tag-$h" addr add "10.77.0.$h/24" dev eth0
    ip -n "$tag-$h" link set lo up
    ip -n "$tag-$h" link set eth0 up
done

# Two processes a host; 201 is a PID that has its port from PINWHEEL_UDP_PORT_BASE.
peers=""
for h in $(seq "$hosts"); do
    peers="$peers 10.77.0.$h:201 10.77.0.$h:2202"
done

strange='' # set: the keys of the hosts, which differ
# run MODE [VARIABLE=VALUE...]: all processes; prints their numbers and codes.
run()
{
    mode=$1
    shift
    index=0
    for h in $(seq "$hosts"); do
        for _ in 1 2; do
            # shellcheck disable=SC2086
            (
                ip netns exec "$tag-$h" env PINWHEEL_IFACES=eth0 "$@" \
                    ${strange:+PINWHEEL_JOB_KEY_FILE="$strange.$h"} "$program" "$mode" "$index" $peers
                echo $? >"$scratch/$mode.$index"
            ) &
            index=$((index + 1))
        done
    done
    wait
    for i in $(seq 0 $((index - 1))); do
        echo "$i $(cat "$scratch/$mode.$i")"
    done
}

bytes()
{
    ip netns exec "$tag-1" cat "/sys/class/net/$1/statistics/tx_bytes"
}

# Everybody to everybody. Of host 1 leave 2 MiB (a put, and what another one gets) for each pair
# of processes that has its other end elsewhere; its own two talk past the network.
run all PINWHEEL_UDP_OPEN=1 | while read -r index code; do
    [ "$code" = 0 ] || echo "process $index ended with $code"
done >"$scratch/all"
[ -s "$scratch/all" ] && fail "$(cat "$scratch/all")"
least=$((2 * 2 * (hosts - 1) * 2 * 1048576))
[ "$(bytes eth0)" -ge "$least" ] || fail "only $(bytes eth0) bytes left through eth0, not $least"
[ "$(bytes lo)" -lt 1000000 ] || fail "$(bytes lo) bytes went through lo: shared memory was not used"

# A link becomes narrow under way, and stays so.
(sleep 0.1; ip -n "$tag-1" link set eth0 mtu 1280) &
run all PINWHEEL_UDP_OPEN=1 | while read -r index code; do
    [ "$code" = 0 ] || echo "with a narrow link process $index ended with $code"
done >"$scratch/all"
[ -s "$scratch/all" ] && fail "$(cat "$scratch/all")"

# Who looks on at host 1 sees the peers of other hosts, with their round trips, and no others.
run watched PINWHEEL_UDP_OPEN=1 >"$scratch/watched" &
seen=0
for _ in $(seq 100); do
    ip netns exec "$tag-1" "$pinwheel" nic --json >"$scratch/json"
    python3 - "$scratch/json" $((2 * hosts)) <<'EOF' && seen=1 && break
import json, sys
nics = [n for n in json.load(open(sys.argv[1]))["nics"] if n["nid"] >> 16 == 0x0a4d]
peers = [(n["nid"], p) for n in nics for p in n["udp"]["peers"]]
all_seen = len(peers) == len(nics) * (int(sys.argv[2]) - 2) > 0
sys.exit(not (all_seen and all(p["rtt_ns"] > 0 and p["nid"] != nid for nid, p in peers)))
EOF
    sleep 0.1
done
wait
[ "$seen" = 1 ] || fail "pinwheel nic shows no peers over UDP, or wrong ones: $(cat "$scratch/json")"
while read -r index code; do
    [ "$code" = 0 ] || fail "process $index, watched, ended with $code"
done <"$scratch/watched"

# The last one is killed: the others hear of it.
run victim PINWHEEL_UDP_OPEN=1 PINWHEEL_UDP_SILENCE_MS=2000 >"$scratch/victim"
last=$((2 * hosts - 1))
while read -r index code; do
    if [ "$index" = "$last" ]; then
        [ "$code" = 137 ] || fail "the victim ended with $code"
    else
        [ "$code" = 0 ] || fail "process $index did not hear of the death: it ended with $code"
    fi
done <"$scratch/victim"

# With the job's key packets prove where they are from, and nothing else need be opened.
for name in key $(seq -f other.%g "$hosts"); do
    (umask 077; head -c 32 /dev/urandom >"$scratch/$name")
done
run all PINWHEEL_JOB_KEY_FILE="$scratch/key" | while read -r index code; do
    [ "$code" = 0 ] || echo "with a key process $index ended with $code"
done >"$scratch/all"
[ -s "$scratch/all" ] && fail "$(cat "$scratch/all")"

# Whoever has another key is nobody: each host has its own.
strange="$scratch/other"
run alone >"$scratch/keys" 2>"$scratch/keys.log"
strange=''
while read -r index code; do
    [ "$code" = 0 ] || fail "process $index, with keys of two kinds, ended with $code: $(cat "$scratch/keys.log")"
done <"$scratch/keys"

# Closed to others, as by default: nobody is reached, and the remedy is named.
run alone >"$scratch/alone" 2>"$scratch/alone.log"
while read -r index code; do
    [ "$code" = 0 ] || fail "process $index, alone, ended with $code: $(cat "$scratch/alone.log")"
done <"$scratch/alone"
grep -q "PINWHEEL_UDP_OPEN=1" "$scratch/alone.log" || fail "nobody named PINWHEEL_UDP_OPEN=1"

[ "$failed" = 0 ] && echo "ok: $((2 * hosts)) processes on $hosts hosts"
exit "$failed"
