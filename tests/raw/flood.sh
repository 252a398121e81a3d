#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# flood.sh PINWHEEL BAD ICMP OTHER: too much for one context, and one message on several queues; tags
# that the interface has taken off; another XDP program. BAD and ICMP are images of handlers/bad.c
# and examples/raw/icmp_echo.c, OTHER is other.c. As live.sh it needs privilege.
set -eu
pinwheel=$1 bad=$2 icmp=$3 other=$4
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
command -v ethtool > /dev/null || skip "there is no ethtool"
pair numtxqueues 4 numrxqueues 4 mtu 1500

# Many times what one context can handle: it alone loses frames, and each ping is answered.
printf 'set slow context slow { udp.dport = 7 }\nset ping context echo { icmp.type = echo }\n' \
    > "$work/rules"
begin --rules "$work/rules" --context "slow=$bad:slow,priority=1,share=1" \
    --context "echo=$icmp,priority=0"
a python3 "$here/bad.py" flood 10.77.0.2 100000 &
flood=$!
pings 100
wait $flood || fail "flood"
pings 20
end TERM
grep -A2 "^context slow" "$work/counts" > "$work/slow"
grep -A2 "^context echo" "$work/counts" > "$work/echo"
handled=$(sed -n 's/.*frames \([0-9]*\):.*/\1/p' "$work/slow")
lost=$(sed -n 's/.*before they were read //p' "$work/slow")
has "$work/echo" "frames 120: answered 120"
has "$work/echo" "before they were read 0"
[ "$lost" -gt $((10 * handled)) ] || fail "$handled handled, $lost lost: that is no flood"

# One message, each frame of another flow, so on another queue: it is one all the same.
printf 'set m { slmp\n end slmp.flags & end = end\n message ip.src, slmp.id }\n' > "$work/rules"
begin --rules "$work/rules" --context "x=$bad:spread"
a python3 "$here/bad.py" spread 10.77.0.2 || fail "spread"
queues=$(b python3 "$here/frames.py" queues)
end TERM
has "$work/counts" "messages 20: ended 20, aged out 0"
[ "$queues" -ge 2 ] || fail "the flows have used $queues queue"

# A tag that is beside the frame is not seen: the frame counts as untagged, and the start says so.
# In the frame it is. The sender's program puts tags on all that leaves, where cards do.
hold() # NAMESPACE COMMAND: somebody else's program, until descriptor 9 is closed
{
    rm -f "$work/hold"
    mkfifo "$work/hold"
    # shellcheck disable=SC2086  # two words
    ip netns exec $1 < "$work/hold" > "$work/other" 2>&1 &
    held=$!
    exec 9> "$work/hold"
    until_true grep -q attached "$work/other"
}
tagged() # TAGGED UNTAGGED: how many of three pings count as what
{
    begin --rules "$work/rules" --context "tag=$bad:echo" --context "none=$bad:echo" --frames 3
    has "$work/log" "a tag that veth takes off a frame is not seen"
    a ping -q -c 3 -i 0.05 -W 0.1 10.77.0.2 > "$work/ping" || true
    wait "$running" || fail "three pings"
    running=
    grep -A1 "^context tag" "$work/counts" > "$work/tag"
    grep -A1 "^context none" "$work/counts" > "$work/none"
    has "$work/tag" "frames $1: answered $1"
    has "$work/none" "frames $2: answered $2"
}
ip -n "$tag-a" neigh replace 10.77.0.2 dev veth \
    lladdr "$(ip -n "$tag-b" -o link show veth | sed 's/.*ether //; s/ .*//')"
printf 'set t context tag { vlan 5; icmp.type = echo }\n%s\n' \
    'set u context none priority 1 { icmp.type = echo }' > "$work/rules"
hold "$tag-a $other veth 5"
tagged 0 3
a ethtool -K veth txvlan off > "$work/ethtool" || fail "ethtool"
tagged 3 0
exec 9>&-
wait "$held" || fail "other"

# Another XDP program is there: it stays, and is named; when it has gone there is room.
hold "$tag-b $other veth"
refused "another XDP program is there" --image "$icmp" --rules icmp-echo
ip -n "$tag-b" link show veth | grep -q xdp || fail "the other program has gone"
exec 9>&-
wait "$held" || fail "other"
begin --image "$icmp" --rules icmp-echo
pings 3
end TERM
