#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Holds what a library takes from outside against a list: a name and its reason a line, "#" begins a
# comment. A name that is not listed fails, and so does one that is listed and not taken, but for
# one with "?" behind it, which the compiler or the version of libc decides.
# Usage: allowed.sh LIBRARY LIST
set -eu
library=$1
list=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' | sort -u >"$work/taken"
[ -s "$work/taken" ] || { echo "nm says that $library takes nothing from outside" >&2; exit 1; }
awk '!/^ *(#|$)/ && NF < 2 { print FILENAME ": " $1 " has no reason"; bad = 1 } END { exit bad }' \
    "$list" >&2
awk '!/^ *(#|$)/ { sub(/[?]$/, "", $1); print $1 }' "$list" | sort -u >"$work/allowed"
awk '!/^ *(#|$)/ && $1 !~ /[?]$/ { print $1 }' "$list" | sort -u >"$work/needed"
status=0
for name in $(comm -23 "$work/taken" "$work/allowed"); do
    echo "$library takes $name() from whoever defines it, the program perhaps. What can block," \
        "yield or wait goes through src/base/sys.h; else $list needs a line with the reason" >&2
    status=1
done
for name in $(comm -13 "$work/taken" "$work/needed"); do
    echo "$list: $name is not taken any more: remove the line" >&2
    status=1
done
exit $status
