#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The cases of a program of tests/portals, tests/process or tests/handlers as one simulated job:
# suite.sh PINWHEEL LIST PROGRAM [OPTION-OF-PINWHEEL-SIM]... All of them but those that LIST has, a
# line each: PROGRAM PATTERN-OF-CASES REASON; a PATTERN that fits none is an error.
set -u
pinwheel=$1 list=$2 program=$3
shift 3
name=$(basename "$program")
# Names of cases: `name: rule` of tests/portals, `name` of the others.
if [[ $name == portals_* ]]; then
    all=$("$program" --list | sed 's/: .*//')
else
    all=$("$program" -l)
fi
[ -n "$all" ] || { echo "$name: no cases" >&2; exit 1; }
patterns=()
while read -r which pattern reason; do
    [ "$which" = "$name" ] || continue
    [ -n "$reason" ] || { echo "$list: $which $pattern: no reason" >&2; exit 1; }
    # shellcheck disable=SC2053  # it is a pattern
    fits=$(while read -r c; do [[ $c == $pattern ]] && echo "$c"; done <<< "$all")
    [ -n "$fits" ] || { echo "$list: $which $pattern: no such case" >&2; exit 1; }
    patterns+=("$pattern")
done < <(grep -v '^#' "$list")
cases=() left=0
while read -r c; do
    skip=
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2053
        [[ $c == $pattern ]] && skip=1
    done
    if [ -n "$skip" ]; then left=$((left + 1)); else cases+=("$c"); fi
done <<< "$all"
if [ "${#cases[@]}" = 0 ]; then
    echo "$name: all $left cases are on the list" >&2
    exit 77
fi
echo "$name: ${#cases[@]} cases, $left on the list of those that are not simulated"
[ "$left" != 0 ] || cases=()
exec "$pinwheel" sim --quiet "$@" "$program" "${cases[@]}"
