#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# replay.sh PINWHEEL UDP COUNT ICMP: clients that nobody here wrote. tcpreplay sends captures to the
# interface, and for each rule the handlers get as many frames as tshark's filter for it counts.
# Then ping -f is answered by handlers while arping and iperf3 have the kernel. As live.sh it needs
# privilege.
set -eu
pinwheel=$1 udp=$2 count=$3 icmp=$4
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
for tool in tcpreplay tshark arping iperf3; do
    command -v $tool > /dev/null || skip "there is no $tool"
done
pair mtu 9000

# rules that take ARP leave none to the kernel
ip -n "$tag-a" neigh add 10.77.0.2 dev veth \
    lladdr "$(ip -n "$tag-b" -o link show veth | sed 's/.*ether //; s/ .*//')"
python3 "$here/frames.py" make mixed "$work/mixed"
while IFS='|' read -r rule filter; do
    # the last set is asked when all was sent: its answers come behind the frames before
    printf 'set x priority 1 context all { %s }\nset last context echo { udp.dport = 7 }\n' \
        "$rule" > "$work/rules"
    wanted=$(tshark -r "$work/mixed" -Y "$filter" 2> "$work/tshark" | wc -l)
    [ "$wanted" -gt 0 ] || fail "tshark finds no frame of $filter: $(cat "$work/tshark")"
    begin --rules "$work/rules" --context "all=$count:pass" --context "echo=$udp,priority=1"
    a tcpreplay -q -i veth --pps 20000 "$work/mixed" > "$work/replay" 2>&1 ||
        fail "$(cat "$work/replay")"
    for _ in 1 2 3 4 5; do
        a python3 "$here/frames.py" ask-one 10.77.0.2 || fail "the last frame"
    done
    end TERM
    grep -A2 "^context all" "$work/counts" > "$work/all"
    has "$work/all" "frames $wanted:"
    has "$work/all" "before they were read 0"
    tested=$((${tested:-0} + 1))
done << 'END'
arp|arp
udp.dport = 9330|udp.dstport == 9330
tcp.flags & 2 = 2|tcp.flags.syn == 1
ip.src = 10.0.0.9|ip.src == 10.0.0.9 && !vlan
vlan 5|vlan.id == 5 && !ieee8021ad
udp6|ipv6 && udp
END
[ "$tested" = 6 ] || fail "$tested rules"

begin --image "$icmp" --rules icmp-echo
b iperf3 -s -1 --forceflush > "$work/server" 2>&1 &
server=$!
until_true grep -q listening "$work/server"
a iperf3 -c 10.77.0.2 -n 20M > "$work/iperf3" 2>&1 &
client=$!
a ping -f -q -c 1000 10.77.0.2 > "$work/ping" || fail "ping -f: $(cat "$work/ping")"
a arping -q -I veth -c 3 -w 60 10.77.0.2 || fail "arping"
wait $client || fail "$(cat "$work/iperf3")"
wait $server
pings 100
end TERM
answered=$(sed -n 's/.*: answered \([0-9]*\),.*/\1/p' "$work/counts")
[ "$answered" -ge 1100 ] || fail "$answered pings are answered"
