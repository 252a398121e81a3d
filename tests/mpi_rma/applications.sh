#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The programs of examples/mpi/windows, by windows and by messages: each checks its own result.
# applications.sh FOLDER MPI RANKS LAUNCHER...   programs FOLDER/NAME_MPI, by `LAUNCHER... -n N`, for
# each number N of RANKS
set -eu
folder=$1 mpi=$2 numbers=$3
shift 3

fail() { echo "applications.sh: $*" >&2; exit 1; }

# run RANKS NAME WORDS...: the last line must name the program, how, the ranks and the size.
run() {
    ranks=$1 name=$2
    shift 2
    for how in windows two-sided; do
        flag=
        [ "$how" = windows ] || flag=--two-sided
        # shellcheck disable=SC2086  # no flag is no word
        said=$($launch -n "$ranks" "$folder/${name}_$mpi" $flag "$@") || fail "$name $flag $*, $ranks ranks: status $?"
        echo "$said"
        case $said in
        "$name $how $ranks $1 "[0-9]*) ;;
        *) fail "$name $flag $*, $ranks ranks: said '$said'" ;;
        esac
    done
}

# refused NAME WORDS...: bad words give status 2, and a line that names the program.
refused() {
    name=$1
    shift
    status=0
    said=$($launch -n 1 "$folder/${name}_$mpi" "$@" 2>&1) || status=$?
    [ "$status" -eq 2 ] || fail "$name $*: status $status, not 2"
    case $said in
    *"$name: "*usage:*) ;;
    *) fail "$name $*: said '$said'" ;;
    esac
}

launch=$*
for n in $numbers; do
    run "$n" hash_table 100 2
    run "$n" sparse_exchange 4 3
    run "$n" fft_slabs 8 2
    run "$n" lattice 4 1
done
refused fft_slabs 12
refused lattice 1
refused hash_table none
refused sparse_exchange --one-sided
