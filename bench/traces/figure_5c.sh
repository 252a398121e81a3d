#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A value of figure 5c of the sPIN paper, for `pinwheel reproduce`:
#
#     figure_5c.sh 5c RANKS TRACE WAY NIC COMMAND
#
# runs the schedule of a program (trace.sh) on hosts with simulated NICs, and prints a time:
#
#     total   until the last rank has ended, where programs match and progress
#     host    what of this is communication: all but the time if messages took none
#     nic     what is communication where NICs match and progress
#
# Status 77: there is no such trace.
set -eu
ranks=$2 trace=$3 way=$4 nic=$5 command=$6
file=$("$(dirname "$(readlink -f "$0")")/trace.sh" "$command" "$trace" "$ranks")

# The last finish in ps, of `goal run` with some options.
finish() {
    "$command" goal run "$@" "$file" | awk '$1 == "finish" { printf "%.0f\n", $2 * 1000 }'
}

run() {
    finish --nic "$nic" --matching "$1" --rendezvous
}

none() {
    finish -L 0 -o 0 -g 0 -G 0 -O 0 -S 1000000000
}

case $way in
total) echo "$(run host) ps" ;;
host) echo "$(($(run host) - $(none))) ps" ;;
nic) echo "$(($(run nic) - $(none))) ps" ;;
*)
    echo "figure_5c.sh: $way is none of total, host, nic" >&2
    exit 2
    ;;
esac
