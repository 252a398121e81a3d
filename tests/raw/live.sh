#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# live.sh PINWHEEL ICMP UDP COUNT: handlers on the frames of a veth pair between two network
# namespaces of its own. It needs the right to make these, CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW;
# without, it says so and is skipped (77).
set -eu
pinwheel=$1 icmp=$2 udp=$3 count=$4
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
pair mtu 1500

# Only the handlers answer; ARP is the kernel's.
begin --image "$icmp" --rules icmp-echo
for size in 0 1 16 56 1416 1472; do
    pings 20 $size
done
end TERM
has "$work/counts" "frames 120: answered 120, kept 0, passed on 0"
has "$work/counts" "before they were read 0"
! ip -n "$tag-b" link show veth | grep -q xdp || fail "the program is still there"

# Killed: the interface is clean, and the kernel answers.
begin --image "$icmp" --rules icmp-echo --mode skb
pings 20
has "$work/log" "skb"
ip -n "$tag-b" link show veth | grep -q xdp || fail "no program is there"
if b "$pinwheel" raw run --iface veth --image "$icmp" --rules icmp-echo 2> "$work/second"; then
    fail "a second program on the interface"
fi
grep -qE "another (process|XDP program)" "$work/second" || fail "$(cat "$work/second")"
end KILL
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
for _ in $(seq 100); do
    ip -n "$tag-b" link show veth | grep -q xdp || break
    sleep 0.05
done
! ip -n "$tag-b" link show veth | grep -q xdp || fail "the program is still there"
pings 5
b sh -c 'echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all'

# Datagrams are answered while a connection goes on.
b python3 "$here/frames.py" serve "$work/ready" &
server=$!
for _ in $(seq 600); do
    [ -e "$work/ready" ] && break
    sleep 0.05
done
begin --image "$udp" --rules udp-echo --spin
a python3 "$here/frames.py" ask 10.77.0.2 || fail "datagrams"
wait $server || fail "the connection"
end INT
has "$work/counts" "frames 6: answered 6"

# Rules are swapped under traffic, and no ping is lost; wrong rules change nothing.
printf 'set p { icmp.type = echo }\n' > "$work/rules"
begin --image "$icmp" --rules "$work/rules"
a python3 "$here/frames.py" pings 10.77.0.2 20000 56 &
pinger=$!
for round in 1 2 3 4 5 6 7 8; do
    printf 'set other%d { udp.dport = %d }\nset p { icmp.type = echo }\n' $round $round \
        > "$work/rules"
    kill -HUP "$running"
    for _ in $(seq 600); do
        [ "$(grep -c "are in place" "$work/log")" -ge $round ] && break
        sleep 0.05
    done
done
echo wrong > "$work/rules"
kill -HUP "$running"
wait $pinger || fail "pings under rules that are swapped"
end TERM
has "$work/log" "the rules before stay"

# Two contexts; what one of them passes on is answered by the kernel.
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
printf 'set big context echo { icmp.type = echo; ip.length = 500..2000 }\n%s\n' \
    'set small context pass priority 1 { icmp.type = echo }' > "$work/rules"
begin --rules "$work/rules" --context "echo=$icmp" --context "pass=$count:pass,priority=1"
pings 10 1000
a ping -q -c 10 -i 0.05 -W 1 10.77.0.2 > "$work/ping" || true
has "$work/ping" "10 packets transmitted, 5 received"
# the interface goes down and comes back; then it is gone
ip -n "$tag-b" link set veth down
ip -n "$tag-b" link set veth up
pings 10 1000
ip -n "$tag-b" link del veth
for _ in $(seq 600); do
    kill -0 "$running" 2> /dev/null || break
    sleep 0.05
done
! wait "$running" || fail "it does not notice that its interface is gone"
running=
has "$work/log" "the interface is gone"
has "$work/counts" "frames 20: answered 20"
has "$work/counts" "kept 5, passed on 5"
