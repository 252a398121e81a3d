#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Hosts made of network namespaces: hosts.sh PROGRAM PINWHEEL N; see README.md.
program=$1
pinwheel=$2
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make "$3"
net_processes

bytes()
{
    net_in 1 cat "/sys/class/net/$1/statistics/tx_bytes"
}

# Everybody to everybody. Of host 1 leave 2 MiB (a put, and what another one gets) for each pair
# of processes that has its other end elsewhere; its own two talk past the network.
processes all PINWHEEL_UDP_OPEN=1 >"$scratch/all"
expect_all "everybody to everybody" <"$scratch/all"
least=$((2 * 2 * (hosts - 1) * 2 * 1048576))
[ "$(bytes eth0)" -ge "$least" ] || fail "only $(bytes eth0) bytes left through eth0, not $least"
[ "$(bytes lo)" -lt 1000000 ] || fail "$(bytes lo) bytes went through lo: shared memory was not used"

# A link becomes narrow under way, and stays so.
(sleep 0.1; ip -n "$tag-1" link set eth0 mtu 1280) &
processes all PINWHEEL_UDP_OPEN=1 >"$scratch/all"
expect_all "with a narrow link" <"$scratch/all"

# Who looks on at host 1 sees the peers of other hosts, with their round trips, and no others.
processes watched PINWHEEL_UDP_OPEN=1 >"$scratch/watched" &
watched=$!
seen=0
while kill -0 "$watched" 2>/dev/null; do
    net_in 1 "$pinwheel" nic --json >"$scratch/json"
    python3 - "$scratch/json" $((2 * hosts)) <<'EOF' && seen=1 && break
import json, sys
nics = [n for n in json.load(open(sys.argv[1]))["nics"] if n["nid"] >> 16 == 0x0a4d]
peers = [(n["nid"], p) for n in nics for p in n["udp"]["peers"]]
all_seen = len(peers) == len(nics) * (int(sys.argv[2]) - 2) > 0
sys.exit(not (all_seen and all(p["rtt_ns"] > 0 and p["nid"] != nid for nid, p in peers)))
EOF
    sleep 0.1
done
touch "$scratch/seen"
wait
[ "$seen" = 1 ] || fail "pinwheel nic shows no peers over UDP, or wrong ones: $(cat "$scratch/json")"
expect_all "watched" <"$scratch/watched"

# The last one is killed: the others hear of it.
processes victim PINWHEEL_UDP_OPEN=1 PINWHEEL_UDP_SILENCE_MS=2000 >"$scratch/victim"
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
processes all PINWHEEL_JOB_KEY_FILE="$scratch/key" >"$scratch/all"
expect_all "with a key" <"$scratch/all"

# Whoever has another key is nobody: each host has its own.
strange="$scratch/other"
processes alone >"$scratch/keys" 2>"$scratch/keys.log"
strange=''
expect_all "with keys of two kinds: $(cat "$scratch/keys.log")" <"$scratch/keys"
grep -q "peer at 10.77.0.[0-9]*:[0-9]* are dropped: it cannot prove that it has this job's key" "$scratch/keys.log" ||
    fail "nobody said that a peer has another key: $(cat "$scratch/keys.log")"
[ "$(grep -c "this job's key" "$scratch/keys.log")" -le $((20 * 2 * hosts)) ] || fail "too many lines"

# Closed to others, as by default: nobody is reached, and the remedy is named.
processes alone >"$scratch/alone" 2>"$scratch/alone.log"
expect_all "alone: $(cat "$scratch/alone.log")" <"$scratch/alone"
grep -q "PINWHEEL_UDP_OPEN=1" "$scratch/alone.log" || fail "nobody named PINWHEEL_UDP_OPEN=1"

finish "$((2 * hosts)) processes on $hosts hosts"
