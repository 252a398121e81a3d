#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Somebody who reads and sends packets, and has no key: attack.sh PROGRAM LOSING-PROGRAM [LIBRARY];
# LIBRARY is libportals with calls of libc's, which the second program needs (weather.c). See
# README.md.
program=$1
losing=$2
library=${3-}
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 1
ports="2201 2202 2203"
(umask 077; head -c 32 /dev/urandom >"$scratch/key")

# members PROGRAM MODE COUNT [VARIABLE=VALUE...]: begins so many processes over loopback
members()
{
    what=$1
    mode=$2
    peers=$(echo "$ports" | tr ' ' '\n' | head -n "$3" | sed 's/^/127.0.0.1:/')
    count=$3
    shift 3
    rm -f "$scratch"/code.* "$scratch/met.0" "$scratch/go" "$scratch/begun.0" "$scratch/on"
    for i in $(seq 0 $((count - 1))); do
        # shellcheck disable=SC2086
        (
            net_in 1 env PINWHEEL_FABRIC=udp PINWHEEL_IFACES=lo "$@" \
                timeout 120 "$what" "$mode" "$i" $peers
            echo $? >"$scratch/code.$i"
        ) &
    done
}

# expect_members WHAT: waits for them, and for the attacker; all have ended well
expect_members()
{
    wait
    for i in $(seq 0 $((count - 1))); do
        echo "$i $(cat "$scratch/code.$i")"
    done >"$scratch/codes"
    expect_all "$1" <"$scratch/codes"
}

# await FILE: a process has made it, or all are gone
await()
{
    for _ in $(seq 600); do
        [ -e "$scratch/$1" ] || [ -e "$scratch/code.0" ] && return
        sleep 0.1
    done
}

# attack HOW SECONDS MOST RATE: prints how many packets it sent
attack()
{
    # shellcheck disable=SC2086
    net_in 1 timeout 60 python3 "$here/attack.py" "$@" $ports
}

# Three members put to each other while what they send, and answer, goes to each as from each. No
# session ends of it: each put arrives.
members "$program" watched 3 PINWHEEL_JOB_KEY_FILE="$scratch/key"
sent=$(attack spread 6 20000 20000)
touch "$scratch/seen"
expect_members "with ${sent:-no} packets of somebody else"
[ "${sent:-0}" -ge 1000 ] || fail "only ${sent:-no} packets were sent by the attacker"

# A stream on a network that loses one packet of fifty, while what was seen of it, some seconds
# old at first, comes again and again: 12,000 puts arrive, one after the other. Without a key, then
# with one.
for key in "" PINWHEEL_JOB_KEY_FILE="$scratch/key"; do
    # shellcheck disable=SC2086
    members "$losing" puts 2 TEST_WEATHER=2,0,0,0,7 ${library:+LD_PRELOAD="$library"} $key
    await met.0
    ATTACK_UNTIL="$scratch/code.0" attack again 40 400000 10000 >"$scratch/sent" &
    touch "$scratch/go"
    await begun.0
    sleep 1
    touch "$scratch/on"
    expect_members "a stream that is replayed, ${key:-without a key}"
    [ "$(cat "$scratch/sent")" -ge 2000 ] || fail "only $(cat "$scratch/sent") packets were sent again"
done
finish "packets of somebody without the key change nothing"
