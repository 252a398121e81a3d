#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ways.sh PINWHEEL ICMP UDP COUNT: the ways in which frames come: several queues, large frames in
# pieces, the modes of the program, sleeping and spinning, packet sockets, and what is refused on an
# interface with the default route. As live.sh it needs privilege.
set -eu
pinwheel=$1 icmp=$2 udp=$3
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
command -v ethtool > /dev/null || skip "there is no ethtool"
pair numtxqueues 4 numrxqueues 4 mtu 9000

# Four queues, frames of up to five pages, which come in pieces and leave so.
begin --image "$icmp" --rules icmp-echo
has "$work/log" "4 queues, native, copy, in pieces"
for size in 56 1472 3456 3500 4000 8100 8972; do
    pings 10 $size
done
end TERM
has "$work/counts" "frames 70: answered 70"
has "$work/counts" "no room to send 0"

# Flows are spread over the queues, and each answer is right; a burst is answered to its last frame.
begin --image "$udp" --rules udp-echo
a python3 "$here/frames.py" flows 10.77.0.2 32 || fail "flows"
queues=$(b python3 "$here/frames.py" queues)
end TERM
has "$work/counts" "before they were read 0"
[ "$queues" -ge 2 ] || fail "the flows have used $queues queue"

# A process that sleeps sleeps; one that spins never does.
asleep()
{
    [ "$(sed 's/.*) //; s/ .*//' "/proc/$running/stat")" = S ]
}
begin --image "$icmp" --rules icmp-echo --mode native
has "$work/log" "native"
until_true asleep
pings 3
end TERM
begin --image "$icmp" --rules icmp-echo --mode skb --spin
has "$work/log" "skb, copy"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! asleep || fail "it sleeps although it is to spin"
done
pings 3 8972
end TERM

# The default route: slow mode, no ARP, no ssh, also by a reload, unless the user says yes.
ip -n "$tag-b" route add default via 10.77.0.1
printf 'set p { icmp.type = echo }\n' > "$work/rules"
begin --image "$icmp" --rules "$work/rules"
has "$work/log" "skb"
pings 3
printf 'set a { arp }\nset p { icmp.type = echo }\n' > "$work/rules"
kill -HUP "$running"
until_true grep -q "the rules before stay" "$work/log"
has "$work/log" "take ARP from it"
pings 3
end TERM
refused "take ARP from it" --image "$icmp" --rules all
refused "--mode skb, or --yes" --image "$icmp" --rules icmp-echo --mode native
printf 'set s { tcp.dport = 22 }\n' > "$work/rules"
refused "take ssh from it" --image "$icmp" --rules "$work/rules"
refused "take ssh from it" --image "$icmp" --rules "$work/rules" --by packet
printf 'set s { ip.dst = 10.0.0.0/8\nip.src = 192.168.7.7\ntcp.dport = 20..30 }\n' > "$work/rules"
refused "take ssh from it" --image "$icmp" --rules "$work/rules"
begin --image "$icmp" --rules all --yes --mode native
has "$work/log" "native"
end TERM
ip -n "$tag-b" route del default

# A packet socket: only handlers answer what matches; ARP and a connection are the kernel's.
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
begin --image "$icmp" --rules icmp-echo --by packet
has "$work/log" "packet socket"
for size in 0 56 1472 8972; do
    pings 10 $size
done
printf 'set p { icmp.type = echo }\n' > "$work/rules"
end TERM
has "$work/counts" "frames 40: answered 40"
has "$work/counts" "before they were read 0"
begin --image "$icmp" --rules icmp-echo --by packet --observe
a ping -q -c 10 -i 0.01 -W 20 10.77.0.2 > "$work/ping" || fail "observe"
has "$work/ping" " duplicates"
end KILL
# killed: the kernel has the frames
begin --image "$udp" --rules icmp-echo --by packet
a ping -q -c 1 -W 0.2 10.77.0.2 > "$work/ping" && fail "answered by the wrong handler"
end KILL
until_true a ping -q -c 1 -W 1 10.77.0.2 > "$work/ping"
b sh -c 'echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all'

# All capabilities are given up: frames go on, rules stay.
printf 'set p { icmp.type = echo }\n' > "$work/rules"
begin --image "$icmp" --rules "$work/rules" --drop
for kind in Eff Prm Inh Bnd Amb; do
    has "/proc/$running/status" "Cap$kind:	0000000000000000"
done
has "/proc/$running/status" "NoNewPrivs:	1"
pings 10
kill -HUP "$running"
until_true grep -q "the rules stay" "$work/log"
pings 10 8000
end TERM
has "$work/counts" "frames 20: answered 20"
has "$work/counts" "before they were read 0"
# stopped: what the kernel cannot keep is counted, and the rest is answered when it goes on
begin --image "$udp" --rules udp-echo --drop
kill -STOP "$running"
a python3 "$here/frames.py" flood 10.77.0.2 8000
kill -CONT "$running"
a python3 "$here/frames.py" ask-one 10.77.0.2 || fail "no answer after it was stopped"
end TERM
answered=$(sed -n 's/.*: answered \([0-9]*\),.*/\1/p' "$work/counts")
lost=$(sed -n 's/.*before they were read //p' "$work/counts")
[ "$lost" -gt 0 ] || fail "none of 8001 frames was lost"
[ $((answered + lost)) -eq 8001 ] || fail "8001 frames were sent"

# What is too large, or is a contradiction.
ip -n "$tag-b" link set veth mtu 9100
refused "9000 is the most" --image "$icmp" --rules all
refused "--by is for --iface" --image "$icmp" --rules all --observe
