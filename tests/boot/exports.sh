#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks that a shared library exports functions, and none whose name does not
# begin with the prefix. Usage: exports.sh LIBRARY PREFIX
set -eu
names=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//')
[ -n "$names" ] || { echo "$1 exports nothing" >&2; exit 1; }
if others=$(printf '%s\n' "$names" | grep -v "^$2"); then
    echo "$1 exports names that do not begin with $2:" >&2
    printf '%s\n' "$others" >&2
    exit 1
fi
