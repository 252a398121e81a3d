# SPDX-License-Identifier: BSD-3-Clause
#
# For the scripts of this folder: a folder of their own for segments, in $work, and begin(), which
# starts $subject with its input from descriptor 3 and waits until it is ready; $pid is its number.
# shellcheck shell=sh disable=SC2154  # subject is the script's
work=$(mktemp -d /dev/shm/pinwheel-test-XXXXXX)
pid=''
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT
export PINWHEEL_SHM_DIR="$work"
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

begin() {
    rm -f "$work/in" "$work/out"
    mkfifo "$work/in"
    "$subject" < "$work/in" > "$work/out" &
    pid=$!
    exec 3> "$work/in"
    n=0
    until grep -q ready "$work/out"; do
        n=$((n + 1))
        [ $n -lt 1000 ] || fail "the subject does not come up"
        sleep 0.01
    done
}
