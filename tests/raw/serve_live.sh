#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# serve_live.sh PINWHEEL ICMP UDP: an owner of a veth's end by AF_XDP, and users of other numbers
# who have no capability. As live.sh it needs privilege.
# shellcheck disable=SC2154  # user() assigns the number of a process to its name
set -eu
pinwheel=$1 icmp=$2 udp=$3
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
command -v setpriv > /dev/null || skip "there is no setpriv"
pair numtxqueues 2 numrxqueues 2 mtu 1500
chmod 777 "$work"
owner_is= # who begins it: root
socket=$work/socket
clean_all()
{
    # shellcheck disable=SC2046  # numbers of processes
    kill -9 $(jobs -p) 2> /dev/null || true
    clean
}
trap clean_all EXIT
xdp()
{
    ip -n "$tag-b" link show veth | grep -q xdp
}
no_xdp()
{
    ! xdp
}
as() # NUMBER COMMAND...: in b, as that user, who has no capability
{
    local number=$1
    shift
    exec ip netns exec "$tag-b" setpriv --reuid "$number" --regid "$number" --clear-groups \
        --bounding-set=-all "$@"
}
(as 1001 test -x "$pinwheel" -a -r "$udp") || skip "other users may not read $pinwheel"
said() # NAME TEXT
{
    until_true grep -qF -- "$2" "$work/$1.log"
}
times() # NAME TEXT COUNT: it has said that so often
{
    [ "$(grep -cF -- "$2" "$work/$1.log")" -ge "$3" ]
}
own() # begins the owner
{
    # shellcheck disable=SC2086  # words
    ip netns exec "$tag-b" $owner_is "$pinwheel" raw serve --iface veth --policy "$work/policy" \
        --socket "$socket" 2> "$work/owner.log" &
    running=$!
    said owner "users connect to"
}
user() # NAME NUMBER RULES IMAGE ARGUMENT...
{
    local name=$1 number=$2 image=$4
    echo "$3" > "$work/$name.rules"
    shift 4
    (as "$number" "$pinwheel" raw run --serve "$socket" --image "$image" \
        --rules "$work/$name.rules" "$@") > "$work/$name.out" 2> "$work/$name.log" &
    eval "$name=$!"
    said "$name" "a queue of"
}
echoes() # PORT COUNT
{
    a python3 "$here/frames.py" echoes 10.77.0.2 "$1" "$2" || fail "echoes $*"
}
cat > "$work/policy" << 'EOF'
allow user 1001 { udp.dport = 5000..5999; send udp.sport = 5000..5999 }
allow group 1002 { icmp.type = echo; send icmp }
EOF

# The owner has no capability, who puts rules into the kernel has two.
own
for kind in Eff Prm Inh Bnd Amb; do
    has "/proc/$running/status" "Cap$kind:	0000000000000000"
done
installer=$(pgrep -P "$running")
has "/proc/$installer/status" "CapEff:	0000008000001000"
has "/proc/$installer/status" "CapPrm:	0000008000001000"

# Two users at once; what is not theirs is the kernel's.
user alice 1001 'set a { udp.dport = 5000 }' "$udp" --again
user carol 1002 'set c { icmp.type = echo }' "$icmp"
pings 200
echoes 5000 500
pings 20 1472
(as 1003 "$pinwheel" raw run --serve "$socket" --image "$udp" --rules udp-echo) \
    > "$work/refused" 2>&1 && fail "a user whom the policy does not name"
has "$work/refused" "the policy of veth has no line for user 1003"
(as 1001 "$pinwheel" raw run --serve "$socket" --image "$udp" --rules all) > "$work/refused" 2>&1 &&
    fail "a second context"
has "$work/refused" "has all contexts that line 1 of the policy allows, 1"

# She is killed: the kernel has her frames, others stay; the next one has them.
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
kill -9 "$carol"
said owner "has gone; his rules go"
pings 20
b sh -c 'echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
echoes 5000 50
user dora 1002 'set c { icmp.type = echo }' "$icmp"
pings 20

# Other rules under traffic: no ping of dora's is lost.
a python3 "$here/frames.py" pings 10.77.0.2 3000 56 &
pinger=$!
for round in 1 2 3 4; do
    echo "set a { udp.dport = 500$round }" > "$work/alice.rules"
    kill -HUP "$alice"
    until_true times alice "are in place" "$round"
    echoes "500$round" 20
done
wait $pinger || fail "pings while another user's rules are swapped"

# The owner is killed: the kernel has the interface, users are told, the next owner takes her in.
b sh -c 'echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
kill -9 "$running"
wait "$running" 2> /dev/null || true
running=
until_true no_xdp
pings 20
b sh -c 'echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
! wait "$dora" || fail "dora ends as if nothing had been"
has "$work/dora.log" "the owner of the interface has gone, and the kernel has its frames"
# ... who is no root, has four capabilities (one of them for the limit of locked memory), and gives
# them up as well.
caps=-all,+net_admin,+bpf,+net_raw,+ipc_lock
owner_is="setpriv --reuid 1004 --regid 1004 --clear-groups --inh-caps=$caps --ambient-caps=$caps"
own
for kind in Eff Prm Inh Amb; do
    has "/proc/$running/status" "Cap$kind:	0000000000000000"
done
has "/proc/$running/status" "NoNewPrivs:	1"
has "/proc/$running/status" "Uid:	1004"
until_true times alice "a queue of" 2
echoes 5004 100

# The process beside it is killed, or the interface is gone: it ends, and says why.
user emma 1002 'set c { icmp.type = echo }' "$icmp"
pings 5
kill -9 "$(pgrep -P "$running")"
! wait "$running" || fail "the owner goes on without the process beside it"
running=
has "$work/owner.log" "the process that puts rules into the kernel has ended"
until_true no_xdp
! wait "$emma" || fail "emma ends as if nothing had been"
own
until_true times alice "a queue of" 3
echoes 5004 20
ip -n "$tag-b" link set veth netns "$tag-a" name moved
! wait "$running" || fail "the owner goes on without its interface"
running=
has "$work/owner.log" "the interface is gone"
ip -n "$tag-a" link set moved netns "$tag-b" name veth
ip -n "$tag-b" link set veth up
ip -n "$tag-b" addr add 10.77.0.2/24 dev veth

# A policy that would cut off the default route is refused.
ip -n "$tag-b" route add default via 10.77.0.1
echo 'allow user 1001 { tcp.dport = 22 }' > "$work/policy"
if b "$pinwheel" raw serve --iface veth --policy "$work/policy" --socket "$socket" \
    > "$work/refused" 2>&1; then
    fail "ssh of the default route"
fi
has "$work/refused" "policy:1: veth has the default route, and the rules take ssh from it"
kill "$alice"
wait "$alice" || true
