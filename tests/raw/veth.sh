#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# veth.sh, read by tests that have set $pinwheel and $here: two network namespaces, a and b, joined
# by a veth pair of their own, which are gone when the test ends. What is not allowed is said, and
# the test is skipped (77).
# shellcheck disable=SC2154  # pinwheel is set by who reads this
work=$(mktemp -d)
tag=pwraw$$
running=
clean()
{
    [ -z "$running" ] || kill -9 "$running" 2> /dev/null || true
    ip netns del "$tag-a" 2> /dev/null || true
    ip netns del "$tag-b" 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT
fail()
{
    echo "$(basename "$0"): $*" >&2
    cat "$work/log" "$work/counts" >&2 2> /dev/null || true
    exit 1
}
skip()
{
    echo "left out: handlers on a live interface: $*"
    exit 77
}
has() # FILE TEXT
{
    grep -qF -- "$2" "$1" || fail "\"$2\" is not in: $(cat "$1")"
}
a()
{
    ip netns exec "$tag-a" "$@"
}
b()
{
    ip netns exec "$tag-b" "$@"
}
until_true() # COMMAND...: waits until it succeeds, for half a minute at most
{
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.05
    done
    fail "has not come true: $*"
}
begin() # ARGUMENT...: starts the handlers on the interface of b, and waits until they are there
{
    begin_at --iface veth "$@"
}
begin_at() # ARGUMENT...: the same, of any source
{
    : > "$work/log"
    ip netns exec "$tag-b" "$pinwheel" raw run "$@" > "$work/counts" 2> "$work/log" &
    running=$!
    for _ in $(seq 600); do
        kill -0 "$running" 2> /dev/null && grep -q "queue" "$work/log" && return
        kill -0 "$running" 2> /dev/null || fail "it has not begun"
        sleep 0.05
    done
    fail "it has not begun"
}
end() # SIGNAL
{
    kill "-$1" "$running"
    wait "$running" 2> /dev/null || true
    running=
}
pings() # COUNT [SIZE]: each is answered once, with the right bytes
{
    a python3 "$here/frames.py" pings 10.77.0.2 "$1" "${2:-56}" || fail "pings $*"
}
refused() # TEXT ARGUMENT...: the command says no, on the interface of b
{
    local text=$1
    shift
    if b "$pinwheel" raw run --iface veth "$@" > "$work/refused" 2>&1; then
        fail "accepted: $*"
    fi
    has "$work/refused" "$text"
}
pair() # ARGUMENT...: of `ip link add`, for both ends
{
    command -v ping > /dev/null || skip "there is no ping"
    "$pinwheel" raw check icmp-echo --prove 1 2>&1 | grep -q "not asked" &&
        skip "CAP_BPF and CAP_NET_ADMIN are missing"
    ip netns add "$tag-a" 2> /dev/null ||
        skip "network namespaces are not allowed, which need CAP_SYS_ADMIN"
    ip netns add "$tag-b"
    ip -n "$tag-a" link add veth "$@" type veth peer name veth "$@" netns "$tag-b"
    for side in a b; do
        ip -n "$tag-$side" link set veth up
        ip -n "$tag-$side" link set lo up
    done
    ip -n "$tag-a" addr add 10.77.0.1/24 dev veth
    ip -n "$tag-b" addr add 10.77.0.2/24 dev veth
    b sh -c 'echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all'
}
