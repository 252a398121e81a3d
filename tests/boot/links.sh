#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks what a library makes every program load: nothing but the C library and
# our own, so neither PMIx nor an event library that would stand in the way of
# the program's. Usage: links.sh LIBRARY...
set -eu
for library; do
    needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    [ -n "$needed" ] || { echo "$library needs nothing, not even libc" >&2; exit 1; }
    if others=$(printf '%s\n' "$needed" | grep -Ev '^(lib(c|m|portals|asan|ubsan|tsan|gcc_s)|ld-linux.*)\.so'); then
        echo "$library needs:" >&2
        printf '%s\n' "$others" >&2
        exit 1
    fi
done
