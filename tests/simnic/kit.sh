# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the scripts of this folder share; they set `pinwheel`, source this, and end with `exit $status`.
# shellcheck disable=SC2034,SC2154  # these are theirs
status=0

sim() {
    "$pinwheel" sim --timeout 100 "$@"
}

# same WHAT WANTED FOUND
same() {
    if [ "$2" != "$3" ]; then
        echo "$1: wanted \"$2\", found \"$3\"" >&2
        status=1
    fi
}
