#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Somebody who reads and sends packets, and has no key: attack.sh PROGRAM; see README.md.
program=$1
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 1
ports="2201 2202 2203"
peers="127.0.0.1:2201 127.0.0.1:2202 127.0.0.1:2203"
(umask 077; head -c 32 /dev/urandom >"$scratch/key")

# Three members put to each other while what they send, and answer, goes to each as from each. No
# session ends of it: each put arrives.
for i in 0 1 2; do
    # shellcheck disable=SC2086
    (
        net_in 1 env PINWHEEL_FABRIC=udp PINWHEEL_IFACES=lo PINWHEEL_JOB_KEY_FILE="$scratch/key" \
            timeout 120 "$program" watched "$i" $peers
        echo $? >"$scratch/code.$i"
    ) &
done
# shellcheck disable=SC2086
sent=$(net_in 1 timeout 60 python3 "$here/attack.py" spread 6 20000 $ports)
touch "$scratch/seen"
wait
[ "${sent:-0}" -ge 1000 ] || fail "only ${sent:-no} packets were sent by the attacker"
for i in 0 1 2; do
    echo "$i $(cat "$scratch/code.$i")"
done >"$scratch/codes"
expect_all "with $sent packets of somebody else" <"$scratch/codes"
finish "$sent packets of somebody without the key change nothing"
