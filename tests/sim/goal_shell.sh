# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# What the shell tests of `pinwheel goal` share; each sources it first, with the command
# and the folder of golden files as its arguments. It leaves them in a folder of their own.
set -eu
pinwheel=$1
export golden="$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*"
    exit 1
}

# says TEXT: so did the command before, on stderr.
says() {
    grep -qF -e "$1" err || fail "does not say '$1': $(cat err)"
}

# refuse STATUS TEXT COMMAND...: the command ends so, and says that on stderr.
refuse() {
    status=$1 text=$2
    shift 2
    got=0
    "$@" >out 2>err || got=$?
    [ "$got" -eq "$status" ] || fail "status $got, not $status: $*"
    says "$text"
}

# refuse_run STATUS TEXT ARGUMENT...: so does `goal run`, and prints no result.
refuse_run() {
    status=$1 text=$2
    shift 2
    refuse "$status" "$text" "$pinwheel" goal run "$@"
    [ ! -s out ] || fail "prints a result: $*"
}
