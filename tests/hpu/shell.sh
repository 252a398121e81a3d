# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# What the shell tests of this folder begin with, sourced by each: an empty folder to work in,
# and what they say things are wrong with.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}

# refuse STATUS TEXT COMMAND...: the command, whose words are in `out` and `err`, ends so and
# says so
refuse() {
    status=$1 text=$2 got=0
    shift 2
    "$@" >out 2>err || got=$?
    [ "$got" -eq "$status" ] || { cat out err; fail "status $got, not $status: $*"; }
    grep -qF -- "$text" err out || { cat out err; fail "no word of \"$text\": $*"; }
}
