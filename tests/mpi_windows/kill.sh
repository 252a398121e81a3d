#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A rank of three is killed at each labelled point of the library of windows, when it passes it for
# the N-th time, or stopped for a while. The labels are those of the sources.
#
#   kill.sh PROGRAM SOURCE_FOLDER kill|stop N... -- LAUNCHER...
#
# Prints after how many milliseconds the last of the others had an error, at the worst label.
set -eu
program=$1 source=$2 mode=$3
shift 3
passes=
while [ "$1" != -- ]; do passes="$passes $1"; shift; done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
labels=$(sed -n 's/.*KILL_POINT("\([a-z-]*\)").*/\1/p' "$source"/*.c | sort -u)
[ -n "$labels" ] || { echo "no labels in $source"; exit 1; }

# lines TEXT: how many lines of the result have it
lines() {
    grep -c "$1" "$work/result" || true
}

worst=0 at=
for pass in $passes; do
    for label in $labels; do
        case $label in # a rank passes these once for each of two windows
        mpi-creates | mpi-frees | mpi-words) n=$((pass < 3 ? pass : 2)) ;;
        *) n=$pass ;;
        esac
        rm -f "$work"/*
        : > "$work/result"
        "$@" "$program" "$work/result" "$mode" "$label:$n" > "$work/out" 2>&1 ||
            true # launchers differ in what they say of a rank that was killed
        flock "$work/result" true # ranks have a lock of it to their end
        case $mode in
        kill)
            if [ "$(lines 'an error in')" = 2 ] && [ "$(lines .)" = 2 ]; then
                ms=$(sed -n 's/.* after \([0-9]*\) ms/\1/p' "$work/result" | sort -n | tail -1)
                [ "$ms" -le "$worst" ] || { worst=$ms; at=$label:$n; }
                continue
            fi ;;
        stop) [ "$(lines 'all rounds')" = 3 ] && [ "$(lines stopped)" = 1 ] && continue ;;
        esac
        echo "$mode at $label:$n:"
        cat "$work/result" "$work/out"
        exit 1
    done
done
echo "$(echo "$labels" | wc -l) labels"
[ "$mode" = stop ] || echo "an error after $worst ms at most, at $at"
