#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# firewall.sh PINWHEEL FIREWALL RULES TABLES FRAMES: sets that pass and drop give each frame the
# verdict of nftables; counters and rules are swapped without loss; examples/raw/firewall.rules with
# the handlers of firewall.c and clients that nobody here wrote. As live.sh it needs privilege.
set -eu
pinwheel=$1 image=$2 rules=$3 tables=$4 frames=$5
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
PATH=$PATH:/usr/sbin:/sbin
for tool in nft ethtool; do
    command -v $tool > /dev/null || skip "there is no $tool"
done
pair mtu 1500
# the kernels' own frames would be counted
for side in a b; do
    $side sh -c 'echo 1 > /proc/sys/net/ipv6/conf/veth/disable_ipv6'
done
count() # SET: its frames, by the last counts
{
    sed -n "s/^set $1: .*frames \([0-9]*\),.*/\1/p" "$work/counts" | tail -n 1
}

in_place() # COUNT: so often have the rules been read again
{
    [ "$(grep -c "are in place" "$work/log")" -ge "$1" ]
}

python3 "$here/verdicts.py" "$pinwheel" "$tag-a" "$tag-b" "$tables" "$frames" || fail "verdicts"

# Rules are swapped under traffic: each datagram is passed, and counted once by the set of its
# name; one more says that these were all.
table() # NUMBER: other sets before and behind, each time at another place
{
    [ $(($1 % 2)) = 0 ] || printf 'set other%d drop { udp.dport = %d }\n' "$1" "$1"
    printf 'set wanted pass { udp.dport = 9 }\nset end%d drop { icmp6 }\n' "$1"
} > "$work/rules"
table 100
begin --rules "$work/rules"
has "$work/log" "no handlers"
b python3 "$here/frames.py" sink 9 "$work/ready" > "$work/sink" &
sink=$!
until_true [ -e "$work/ready" ]
a python3 "$here/frames.py" source 10.77.0.2 9 20000 &
source=$!
for round in $(seq 10); do
    table $((100 + round))
    kill -HUP "$running"
    until_true in_place "$round"
done
wait $source || fail "datagrams"
wait $sink
has "$work/sink" "20000 datagrams"
end TERM
[ "$(count wanted)" = 20001 ] || fail "$(count wanted) of 20001 are counted"

# A packet socket counts and drops the same.
printf 'set no drop { udp.dport = 10 }\nset yes pass { udp.dport = 9 }\n' > "$work/rules"
begin --rules "$work/rules" --by packet
rm "$work/ready"
b python3 "$here/frames.py" sink 9 "$work/ready" > "$work/sink" &
sink=$!
until_true [ -e "$work/ready" ]
a python3 "$here/frames.py" source 10.77.0.2 10 50
a python3 "$here/frames.py" source 10.77.0.2 9 100
wait $sink
has "$work/sink" "100 datagrams"
end TERM
[ "$(count no)/$(count yes)" = 50/101 ] || fail "$(cat "$work/counts")"
refused "with --observe the kernel handles them all" --rules "$work/rules" --by packet --observe

# The example: connections and pings of one source are limited, the rest is dropped.
[ -e "$image" ] || fail "there is no $image"
# a segment that handlers pass on has the checksum that its sender has made
a ethtool -K veth tx off > /dev/null
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
begin --rules "$rules" --image "$image" --yes
a ping -q -c 200 -i 0.002 -W 1 10.77.0.2 > "$work/ping" || true
received=$(sed -n 's/.* \([0-9]*\) received.*/\1/p' "$work/ping")
b timeout 60 python3 "$here/frames.py" listen 80 "$work/listens" > /dev/null &
listener=$!
until_true [ -e "$work/listens" ]
a python3 "$here/frames.py" connect 10.77.0.2 80 50 || fail "no connection to port 80"
wait $listener
! a python3 "$here/frames.py" connect 10.77.0.2 81 1 || fail "port 81 is open"
kill -USR1 "$running"
until_true grep -q "^xdp:" "$work/counts"
end TERM
dropped=$(sed -n 's/.*by handlers \([0-9]*\),.*/\1/p' "$work/counts" | tail -n 1)
[ "$(count ping)" = 200 ] || fail "$(count ping) pings"
# the bucket holds 20, and gets ten a second more
[ "$received" -ge 20 ] || fail "$received of 200 pings are answered"
[ "$received" -le 190 ] || fail "$received of 200 pings are answered"
[ "$dropped" = $((200 - received)) ] || fail "$dropped dropped, $received answered"
[ "$(count begin-web)" -ge 1 ] || fail "the connection has not begun"
[ "$(count begun)" -ge 3 ] || fail "the connection"
[ "$(count rest)" -ge 1 ] || fail "port 81"
