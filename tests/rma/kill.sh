#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A rank is killed at each labelled point of the library, when it passes it for the N-th time, or
# stopped for a while. The labels are those of the sources.
# Usage: kill.sh PINWHEEL RMA_KILL SOURCE_FOLDER kill|stop N...
set -eu
pinwheel=$1 program=$2 source=$3 mode=$4
shift 4
labels=$(sed -n 's/.*KILL_POINT("\([a-z-]*\)").*/\1/p' "$source"/*.c | sort -u)
[ -n "$labels" ] || { echo "no labels in $source"; exit 1; }

# lines TEXT: how many lines of $out have it
lines() {
    echo "$out" | grep -c "$1" || true
}

for pass in "$@"; do
    for label in $labels; do
        status=0
        out=$("$pinwheel" run -n 3 --keep-going --timeout 600 "$program" "$mode" "$label:$pass" 2>&1) ||
            status=$?
        case $mode in
        kill) [ "$status" = 137 ] && [ "$(lines 'the victim is gone')" = 2 ] && continue ;;
        stop) [ "$status" = 0 ] && [ "$(lines 'all rounds')" = 3 ] && [ "$(lines stopped)" = 1 ] &&
                  continue ;;
        esac
        echo "$mode at $label:$pass: status $status: $out"
        exit 1
    done
done
echo "$(echo "$labels" | wc -l) labels"
