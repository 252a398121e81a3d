#!/bin/sh
# Handlers call the functions of spin_handler.h and no others.
# Usage: alone.sh LIBRARY
set -eu
others=$(nm -u "$1" | awk '$1 == "U" { print $2 }' |
         grep -v -e '^PtlHandler' -e '^_GLOBAL_OFFSET_TABLE_$' || true)
[ -z "$others" ] || { echo "$1 calls: $others"; exit 1; }
nm -u "$1" | grep -q PtlHandler || { echo "$1: no handlers found"; exit 1; }
