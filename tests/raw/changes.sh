#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# changes.sh PINWHEEL ICMP: what happens to an interface while handlers run (another MTU, a bridge,
# another name, down and up, another namespace), and what is missing when they begin: capabilities,
# locked memory, descriptors. As live.sh it needs privilege.
set -eu
pinwheel=$1 icmp=$2
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
pair mtu 1500
ip -n "$tag-a" neigh add 10.77.0.2 dev veth \
    lladdr "$(ip -n "$tag-b" -o link show veth | sed 's/.*ether //; s/ .*//')"

begin --image "$icmp" --rules icmp-echo
ip -n "$tag-b" link set veth mtu 1400
pings 20 1372
! ip -n "$tag-a" link set veth mtu 9000 2> /dev/null || fail "frames that the program cannot take"
pings 20 1372
ip -n "$tag-b" link add bridge type bridge
ip -n "$tag-b" link set bridge up
ip -n "$tag-b" link set veth master bridge
pings 20
ip -n "$tag-b" link set veth nomaster
ip -n "$tag-b" link del bridge
ip -n "$tag-b" link set veth down
ip -n "$tag-b" link set veth name other
ip -n "$tag-b" link set other up
pings 20
end TERM
has "$work/counts" "frames 80: answered 80"
ip -n "$tag-b" link set other down
ip -n "$tag-b" link set other name veth
ip -n "$tag-b" link set veth up

# In another namespace it is gone for this process, which notices, also while it spins.
ended()
{
    ! kill -0 "$running" 2> /dev/null
}
for way in --drop --spin "--by packet" "--by packet --spin"; do
    # shellcheck disable=SC2086  # two words
    begin --image "$icmp" --rules icmp-echo $way
    pings 5
    ip -n "$tag-b" link set veth netns "$tag-a" name moved
    until_true ended
    ! wait "$running" || fail "$way: its interface is gone, and it ends as if it were not"
    running=
    has "$work/log" "the interface is gone"
    ip -n "$tag-a" link set moved netns "$tag-b" name veth
    ip -n "$tag-b" link set veth up
done

# What is missing is named.
without() # TEXT COMMAND...: with which the command is begun
{
    local text=$1
    shift
    if b "$@" "$pinwheel" raw run --iface veth --image "$icmp" --rules icmp-echo \
        > "$work/refused" 2>&1; then
        fail "accepted: $*"
    fi
    has "$work/refused" "$text"
}
without "it needs CAP_BPF and CAP_NET_ADMIN" setpriv --bounding-set=-all
without "it needs CAP_NET_RAW" setpriv --bounding-set=-net_raw
without "the limit of locked memory (ulimit -l) is too low" \
    setpriv --bounding-set=-ipc_lock prlimit --memlock=65536
without "Too many open files" prlimit --nofile=6
! ip -n "$tag-b" link show veth | grep -q xdp || fail "a program is there"
