# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2034,SC2154 # what the scripts use, and set
# Hosts made of network namespaces, for the scripts of this folder, which read this file:
#
#     net_make N       makes hosts 1 to N, joined by veth pairs and a bridge
#     net_in H COMMAND runs a command in host H
#
# Host H is the namespace $tag-H with the address 10.77.0.H at eth0; its other end is vH at
# the bridge br0 of namespace $tag-b. $scratch is a folder in memory, PINWHEEL_SHM_DIR. All of it
# goes at the script's end. What a script finds wrong it says with `fail`, and ends with
# `finish`. As the shell of a launcher, enter.sh runs commands in hosts by name.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tag=pw$$
failed=0
hosts=0
scratch=$(mktemp -d /dev/shm/pinwheel-test-XXXXXX)
export PINWHEEL_SHM_DIR="$scratch"
export PINWHEEL_TEST_TAG="$tag"
export UDP_HOSTS_MARKS="$scratch"

skip()
{
    echo "skipped: $1"
    rm -rf "$scratch"
    exit 77
}

# shellcheck disable=SC2317 # the trap calls it
clean_up()
{
    for h in $(seq "$hosts"); do
        ip netns pids "$tag-$h" 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del "$tag-$h" 2>/dev/null
    done
    ip netns del "$tag-b" 2>/dev/null
    rm -rf "$scratch"
}

fail()
{
    echo "FAILED: $1"
    failed=1
}

finish()
{
    [ "$failed" = 0 ] && echo "ok: $1"
    exit "$failed"
}

net_in()
{
    host=$1
    shift
    ip netns exec "$tag-$host" "$@"
}

net_make()
{
    command -v ip >/dev/null || skip "there is no ip command (package iproute2)"
    ip netns add "$tag-b" 2>/dev/null ||
        skip "network namespaces may not be made here (CAP_SYS_ADMIN is needed)"
    hosts=$1
    trap clean_up EXIT
    trap 'exit 1' INT TERM
    ip -n "$tag-b" link add br0 type bridge 2>/dev/null || skip "this kernel has no bridges"
    ip -n "$tag-b" link set br0 up
    for h in $(seq "$hosts"); do
        ip netns add "$tag-$h"
        ip -n "$tag-b" link add "v$h" type veth peer name eth0 netns "$tag-$h" 2>/dev/null ||
            skip "this kernel has no veth pairs"
        ip -n "$tag-b" link set "v$h" master br0 up
        ip -n "$tag-$h" addr add "10.77.0.$h/24" dev eth0
        ip -n "$tag-$h" link set lo up
        ip -n "$tag-$h" link set eth0 up
        ip -n "$tag-$h" route add default via 10.77.0.254
    done
}

# lives PATTERN: whether a process of a host has it in its command line; waits 10 s for none.
lives()
{
    for _ in $(seq 100); do
        found=''
        for h in $(seq "$hosts"); do
            for pid in $(ip netns pids "$tag-$h"); do
                tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -e "$1" && found=$pid
            done
        done
        [ -n "$found" ] || return 1
        sleep 0.1
    done
}

# net_processes names two processes of udp_hosts a host; 201 is a PID that has its port from
# PINWHEEL_UDP_PORT_BASE.
net_processes()
{
    peers=""
    for h in $(seq "$hosts"); do
        peers="$peers 10.77.0.$h:201 10.77.0.$h:2202"
    done
}

strange='' # set: the keys of the hosts, which differ
# processes MODE [VARIABLE=VALUE...]: all processes; prints their numbers and codes.
processes()
{
    mode=$1
    shift
    index=0
    for h in $(seq "$hosts"); do
        for _ in 1 2; do
            # shellcheck disable=SC2086
            (
                net_in "$h" env PINWHEEL_IFACES=eth0 "$@" \
                    ${strange:+PINWHEEL_JOB_KEY_FILE="$strange.$h"} \
                    timeout 120 "$program" "$mode" "$index" $peers
                echo $? >"$scratch/$mode.$index"
            ) &
            index=$((index + 1))
        done
    done
    wait
    for i in $(seq 0 $((index - 1))); do
        echo "$i $(cat "$scratch/$mode.$i")"
    done
}

# expect_all WHAT: all processes whose codes it reads have ended well
expect_all()
{
    while read -r index code; do
        [ "$code" = 0 ] || fail "$1: process $index ended with $code"
    done
}
