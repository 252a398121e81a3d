#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Memory is mapped, or reached by messages, as an ordinary user who may look into nobody: not
# dumpable, with ptrace_scope 1 and 2, in PID namespaces, with few descriptors.
# Usage: users.sh PINWHEEL RMA_MAPPED
set -eu
pinwheel=$1 program=$2
scope=/proc/sys/kernel/yama/ptrace_scope

skip() {
    echo "SKIPPED: $*"
}

# try WHAT WANTED COMMAND...: two ranks say WANTED
try() {
    what=$1 wanted=$2
    shift 2
    out=$("$@" 2>&1) || { echo "$what: $out"; exit 1; }
    [ "$(echo "$out" | grep -c "rank [01]: $wanted, right")" = 2 ] || { echo "$what: $out"; exit 1; }
    echo "$what: $wanted"
}

# The words of a command that becomes somebody else.
# shellcheck disable=SC2086
try_user() {
    what=$1 wanted=$2
    shift 2
    try "$what" "$wanted" $user "$@"
}

user=
if [ "$(id -u)" = 0 ]; then
    user="setpriv --reuid=65534 --regid=65534 --clear-groups"
    if ! $user test -x "$program" || ! $user test -x "$pinwheel"; then
        skip "nobody may not run $program"
        exit 77
    fi
fi
try_user "ordinary user" mapped "$pinwheel" run -n 2 "$program"
try_user "not dumpable" mapped "$pinwheel" run -n 2 "$program" secret
try_user "64 descriptors" mapped sh -c 'ulimit -n 64; exec "$@"' - "$pinwheel" run -n 2 "$program"
if [ -w "$scope" ]; then
    before=$(cat "$scope")
    trap 'echo "$before" > "$scope"' EXIT
    for value in 1 2; do
        if echo "$value" > "$scope" 2> /dev/null; then
            try_user "ptrace_scope $value" mapped "$pinwheel" run -n 2 "$program"
        else
            skip "ptrace_scope cannot be $value"
        fi
    done
else
    skip "ptrace_scope: this kernel has none, or this user may not set it"
fi
# Each rank in a PID namespace of its own.
if unshare --pid --fork true 2> /dev/null; then
    try "PID namespaces" mapped "$pinwheel" run -n 2 unshare --pid --fork "$program"
else
    skip "PID namespaces: this user may make none"
fi
