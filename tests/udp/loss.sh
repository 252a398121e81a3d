#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Messages of 1 MiB where packets are lost: loss.sh STREAM [COUNT [ROUNDS]]; see README.md. Between two
# hosts joined by veth pairs, and on the loopback of one, packets of 1472 bytes, the kernel loses
# so many of a thousand when they are apart: none, 10, 100; then none, with the job's key.
stream=$1
count=${2:-100}
rounds=${3:-3}
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 2
(umask 077; head -c 32 /dev/urandom >"$scratch/key")

# lose HOST DEVICE THOUSANDTHS: of the packets that come in there. The program of four
# instructions draws a number of 32 bits and drops the packet (2) if that is small.
lose()
{
    tc -n "$tag-$1" qdisc del dev "$2" clsact 2>/dev/null
    tc -n "$tag-$1" qdisc add dev "$2" clsact &&
        tc -n "$tag-$1" filter add dev "$2" ingress bpf da bytecode \
            "4,32 0 0 4294963256,53 1 0 $(($3 * 4294967 + 1)),6 0 0 2,6 0 0 4294967295"
}

# pass FROM-HOST TO-HOST FROM TO DEVICE [VARIABLE=VALUE...]: the bytes in a nanosecond
pass()
{
    from=$1 to=$2 one=$3 other=$4 device=$5
    shift 5
    net_in "$to" env PINWHEEL_FABRIC=udp PINWHEEL_IFACES="$device" PINWHEEL_UDP_PACKET=1472 "$@" \
        timeout 300 "$stream" to "$count" "$one" "$other" &
    receiver=$!
    net_in "$from" env PINWHEEL_FABRIC=udp PINWHEEL_IFACES="$device" PINWHEEL_UDP_PACKET=1472 "$@" \
        timeout 300 "$stream" from "$count" "$one" "$other" || fail "$*: the sender ended with $?"
    wait "$receiver" || fail "$*: the receiver ended with $?"
}

ip -n "$tag-1" link set lo gso_max_segs 1 || skip "packets are not taken apart before they get lost"
for h in 1 2; do
    ip -n "$tag-$h" link set eth0 gso_max_segs 1
done
lose 1 lo 0 || skip "this kernel has no filters of packets (tc, clsact, bpf)"

for _ in $(seq "$rounds"); do
    for thousandths in 0 10 100; do
        lose 1 eth0 "$thousandths"
        lose 2 eth0 "$thousandths"
        lose 1 lo "$thousandths"
        echo "veth $thousandths $(pass 1 2 10.77.0.1:2201 10.77.0.2:2202 eth0 PINWHEEL_UDP_OPEN=1)"
        echo "lo $thousandths $(pass 1 1 127.0.0.1:2201 127.0.0.1:2202 lo)"
    done
    for h in 1 2; do lose "$h" eth0 0; done
    lose 1 lo 0
    echo "veth key $(pass 1 2 10.77.0.1:2201 10.77.0.2:2202 eth0 PINWHEEL_JOB_KEY_FILE="$scratch/key")"
    echo "lo key $(pass 1 1 127.0.0.1:2201 127.0.0.1:2202 lo PINWHEEL_JOB_KEY_FILE="$scratch/key")"
done >"$scratch/rates"

python3 - "$scratch/rates" <<'END'
import statistics, sys
rates = {}
for line in open(sys.argv[1]):
    words = line.split()
    if len(words) == 3:
        rates.setdefault((words[0], words[1]), []).append(float(words[2]))
for (where, how), found in rates.items():
    ratio = statistics.median(a / b for a, b in zip(found, rates[where, "0"]))
    name = "with the key" if how == "key" else "%.0f %% lost" % (int(how) / 10)
    print("%-5s %-12s %.2f GB/s  %.2f" % (where, name, statistics.median(found), ratio))
END
finish "$((rounds * 8)) streams of $count messages"
