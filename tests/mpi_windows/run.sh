#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs a program with our windows. It passes if it ends with status 0, had windows of ours, and none
# of its calls reached the MPI's own windows.
#
#   run.sh PINWHEEL RANKS LAUNCHER... -- PROGRAM [ARGUMENT...]
#
# With MPI_WINDOWS_MPI=yes windows of the MPI are allowed.
set -u
pinwheel=$1 ranks=$2
shift 2
launcher=
while [ "$1" != -- ]; do launcher="$launcher $1"; shift; done
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# shellcheck disable=SC2086  # the launcher is words
"$pinwheel" rma --stats $launcher -n "$ranks" "$@" > "$output" 2>&1
status=$?
grep -v '^pinwheel rma: rank .*: 0$' "$output"
[ $status -eq 0 ] || { echo "run.sh: status $status"; exit 1; }
if [ "${MPI_WINDOWS_MPI:-no}" = no ]; then
    grep -q '^pinwheel rma: rank ' "$output" || { echo "run.sh: there was no window of ours"; exit 1; }
    ! grep -qE "calls of the MPI's windows: [1-9]|is the MPI's" "$output" || {
        echo "run.sh: windows of the MPI were used"; exit 1; }
fi
