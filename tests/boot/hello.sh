#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs examples/hello_put as N ranks and checks that each got the put of the one
# before. Usage: hello.sh N HELLO_PUT LAUNCHER [OPTION]...
set -eu
n=$1 hello=$2
shift 2
got=$("$@" -n "$n" "$hello")
got=$(printf '%s\n' "$got" | sort)
expected=$(i=0; while [ "$i" -lt "$n" ]; do
    echo "rank $i received \"hello from rank $(((i + n - 1) % n)) of $n\""
    i=$((i + 1))
done)
[ "$got" = "$expected" ] || { printf 'expected:\n%s\ngot:\n%s\n' "$expected" "$got" >&2; exit 1; }
