#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tap.sh PINWHEEL ICMP: handlers behind a tap, and beside the kernel by a packet socket, in a user
# namespace: no privilege is needed but what every user has there. Skipped (77), and says so, where
# user namespaces are not for this user; without /dev/net/tun the tap is left out.
set -eu
if [ "${3:-}" != inside ]; then
    unshare -Urn true 2> /dev/null || { echo "left out: user namespaces are not allowed"; exit 77; }
    exec unshare -Urn "$0" "$1" "$2" inside
fi
pinwheel=$1 icmp=$2
here=$(dirname "$0")
work=$(mktemp -d)
running=
clean()
{
    [ -z "$running" ] || kill -9 "$running" 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT
fail()
{
    echo "tap.sh: $*" >&2
    cat "$work"/* >&2
    exit 1
}
begin() # ARGUMENT...
{
    : > "$work/log"
    "$pinwheel" raw run "$@" > "$work/counts" 2> "$work/log" &
    running=$!
    for _ in $(seq 600); do
        grep -q "queue" "$work/log" && return
        kill -0 "$running" 2> /dev/null || fail "it has not begun"
        sleep 0.05
    done
    fail "it has not begun"
}

behind_a_tap()
{
    begin --tap tap0 --image "$icmp" --rules icmp-echo
    ip link set tap0 up
    ip addr add 10.77.0.1/24 dev tap0
    ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev tap0
    for size in 0 56 1472; do
        python3 "$here/frames.py" pings 10.77.0.2 10 $size || fail "pings"
    done
    # down and up again, then gone
    ip link set tap0 down
    ip link set tap0 up
    ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev tap0
    python3 "$here/frames.py" pings 10.77.0.2 3 56 || fail "pings after the link was down"
    # another process has the tap
    if "$pinwheel" raw run --tap tap0 --image "$icmp" --rules all 2> "$work/second"; then
        fail "a second process has the tap"
    fi
    grep -q "another process has it" "$work/second" || fail "second"
    kill "$running"
    wait "$running" || fail "its end"
    running=
    grep -q "frames 33: answered 33" "$work/counts" || fail "counts"
    ! ip link show tap0 > /dev/null 2>&1 || fail "the tap is still there"
}
if { : <> /dev/net/tun; } 2> /dev/null; then
    behind_a_tap
else
    echo "left out: handlers behind a tap: /dev/net/tun is not for this user"
fi

# Beside the kernel: both answer.
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
begin --iface v1 --by packet --observe --image "$icmp" --rules icmp-echo
ip addr add 10.78.0.1/24 dev v0
ip neigh add 10.78.0.2 lladdr "$(ip -o link show v1 | sed "s/.*ether //; s/ .*//")" dev v0
python3 "$here/frames.py" pings 10.78.0.2 5 56 || fail "pings by a packet socket"
kill "$running"
wait "$running" || fail "its end"
running=
grep -q "frames 5: answered 5" "$work/counts" || fail "counts"
# without the rights of the machine's root the kernel's part is refused, with the way out
if "$pinwheel" raw run --iface v1 --by packet --image "$icmp" --rules icmp-echo 2> "$work/no"; then
    echo "the kernel allows BPF in user namespaces"
else
    grep -q -- "--observe" "$work/no" || fail "no"
fi
