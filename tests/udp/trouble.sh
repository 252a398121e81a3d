#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a network, a neighbour or a clock may do to processes on two hosts made of network
# namespaces: trouble.sh PROGRAM PINWHEEL CLOCK [LIBRARY]; LIBRARY is libportals with calls of libc's
# that CLOCK can stand before, if the other one's cannot be. See README.md.
program=$1
pinwheel=$2
clock=$3
library=${4:-}
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 2
net_processes

# The port of a PID is another program's: that PID is not to be had, any other one is.
ip netns exec "$tag-1" python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.1", 10201))
print("bound", flush=True)
time.sleep(60)' >"$scratch/bound" &
holder=$!
for _ in $(seq 500); do grep -q bound "$scratch/bound" && break; sleep 0.02; done
# shellcheck disable=SC2086
net_in 1 env PINWHEEL_IFACES=eth0 PINWHEEL_UDP_OPEN=1 PINWHEEL_LOG=info \
    "$program" taken 0 $peers 2>"$scratch/taken" || fail "a port that is taken: $(cat "$scratch/taken")"
grep -q "10.77.0.1:10201.*another process has the port" "$scratch/taken" ||
    fail "a port that is taken is not named: $(cat "$scratch/taken")"
kill "$holder"

# A neighbour who sends again what it sees, changes it, and sends garbage under the name of
# others: with the job's key that costs a counter. Then a link becomes narrow.
(umask 077; head -c 32 /dev/urandom >"$scratch/key")
processes watched PINWHEEL_JOB_KEY_FILE="$scratch/key" >"$scratch/watched" &
watched=$!
ip netns exec "$tag-b" python3 "$here/replay.py" v1 3 >"$scratch/sent" &
most=0
while [ "$most" = 0 ] && kill -0 "$watched" 2>/dev/null; do
    net_in 1 "$pinwheel" nic --json >"$scratch/json" && most=$(python3 - "$scratch/json" "$most" <<'END'
import json, sys
udp = [n["udp"] for n in json.load(open(sys.argv[1]))["nics"] if n["nid"] >> 16 == 0x0a4d]
wrong = [u for u in udp if u["forged"] > 0 and u["replayed"] > 0 and u["dropped"] >= u["forged"] + u["replayed"]
         and any(p["dropped"] > 0 for p in u["peers"])]
print(max(int(sys.argv[2]), len(wrong)))
END
    )
    sleep 0.1
done
ip -n "$tag-1" link set eth0 mtu 1280
sleep 1
touch "$scratch/seen"
wait
rm "$scratch/seen"
expect_all "a hostile neighbour" <"$scratch/watched"
[ "$most" -gt 0 ] || fail "pinwheel nic shows no forged and replayed packets; $(cat "$scratch/sent") were sent"
ip -n "$tag-1" link set eth0 mtu 1500

# A switch that drops what is long, without a word, from some time on.
(sleep 0.2; ip -n "$tag-b" link set v2 mtu 1280) &
processes all PINWHEEL_UDP_OPEN=1 >"$scratch/all"
expect_all "a path that becomes narrow" <"$scratch/all"
ip -n "$tag-b" link set v2 mtu 1500

# Clocks jump; nobody is taken for dead.
(sleep 1; touch "$scratch/jump"; sleep 2; touch "$scratch/seen") &
processes watched PINWHEEL_UDP_OPEN=1 LD_PRELOAD="$clock:$library" CLOCK_JUMP="$scratch/jump" >"$scratch/watched"
expect_all "clocks that jump" <"$scratch/watched"
[ -e "$scratch/jump.library" ] || fail "no clock jumped for the library"

# All processes are stopped for three times as long as a peer may be silent, while they meet and
# while they talk: who was stopped has not waited, and nobody is taken for dead.
stop_all()
{
    all=$(for h in 1 2; do ip netns pids "$tag-$h"; done)
    # shellcheck disable=SC2086 # at once, or some would wait for others that are stopped
    kill -STOP $all
    sleep 6
    # shellcheck disable=SC2086
    kill -CONT $all
}
rm -f "$scratch/seen"
(sleep 0.1; stop_all; sleep 1; stop_all; sleep 1; touch "$scratch/seen") &
processes watched PINWHEEL_UDP_OPEN=1 PINWHEEL_UDP_SILENCE_MS=2000 >"$scratch/watched"
expect_all "processes that are stopped" <"$scratch/watched"

# An interface vanishes, and comes back.
rm -f "$scratch"/met.* "$scratch"/cut.*
processes outage PINWHEEL_UDP_OPEN=1 PINWHEEL_UDP_SILENCE_MS=1000 >"$scratch/outage" &
marks()
{
    for _ in $(seq 1200); do
        [ "$(find "$scratch" -name "$1.*" | wc -l)" = 4 ] && return
        sleep 0.05
    done
    fail "$1: $(ls "$scratch")"
}
marks met
mac=$(net_in 2 cat /sys/class/net/eth0/address)
ip -n "$tag-2" link del eth0
marks cut
ip -n "$tag-b" link add v2 type veth peer name eth0 address "$mac" netns "$tag-2"
ip -n "$tag-b" link set v2 master br0 up
ip -n "$tag-2" addr add 10.77.0.2/24 dev eth0
ip -n "$tag-2" link set eth0 up
touch "$scratch/back"
wait
expect_all "an interface that vanishes" <"$scratch/outage"

finish "trouble on $hosts hosts"
