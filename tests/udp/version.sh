#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A process meets one of version 1, which has the job's key: version.sh PROGRAM; see README.md.
program=$1
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 1
(umask 077; head -c 32 /dev/urandom >"$scratch/key")
line="127.0.0.2:2202 speaks version 1 of SLMP sessions and this process version 4.*install the same"

for how in answers asks; do
    rm -f "$scratch/there"
    net_in 1 timeout 60 python3 "$here/version.py" "$how" "$scratch/key" \
        >"$scratch/there" 2>"$scratch/said" &
    peer=$!
    for _ in $(seq 300); do
        [ -s "$scratch/there" ] && break
        sleep 0.1
    done
    net_in 1 env PINWHEEL_FABRIC=udp PINWHEEL_IFACES=lo PINWHEEL_UDP_SILENCE_MS=1000 \
        PINWHEEL_JOB_KEY_FILE="$scratch/key" \
        timeout 60 "$program" alone 0 127.0.0.1:2201 127.0.0.2:2202 2>"$scratch/log" ||
        fail "$how: the process ended with $?: $(cat "$scratch/log")"
    wait "$peer" || fail "$how: $(cat "$scratch/said")"
    [ "$(grep -c "$line" "$scratch/log")" = 1 ] ||
        fail "$how: not one line that names both versions: $(cat "$scratch/log")"
done
finish "a peer of version 1 is refused, and told of"
