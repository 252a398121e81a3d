#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# scapy.sh PINWHEEL UDP ICMP: scapy asks and checks each answer: of handlers, and of the kernel for
# what is the kernel's. As live.sh it needs privilege.
set -eu
pinwheel=$1 udp=$2 icmp=$3
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
python=
for command in python3 /usr/bin/python3; do
    $command -c 'import scapy.all' 2> /dev/null && python=$command
done
[ -n "$python" ] || skip "there is no python3-scapy"
pair mtu 1500
printf 'set e context udp { udp.dport = 7 }\nset p context icmp { icmp.type = echo }\n' > "$work/rules"
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
begin --rules "$work/rules" --context "udp=$udp" --context "icmp=$icmp"
a "$python" "$here/scapy_ask.py" veth \
    "$(ip -n "$tag-b" -o link show veth | sed 's/.*ether //; s/ .*//')" 10.77.0.1 10.77.0.2 ||
    fail "scapy"
end TERM
grep -A1 "^context icmp" "$work/counts" > "$work/pings"
grep -A1 "^context udp" "$work/counts" > "$work/datagrams"
# scapy asks again when it has waited for long
for kind in pings datagrams; do
    grep -qE "frames ([2-9][0-9]*): answered \1," "$work/$kind" || fail "$kind: $(cat "$work/$kind")"
done
