#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Schedules of real programs of MPI, made from nothing: trace.sh COMMAND NAME RANKS prints the file
# of one. COMMAND is `pinwheel`; NAME is a program of the table below, which Debian has. It is
# recorded here by `pinwheel goal record --clock cpu`, on however few processors, and kept in
# ${XDG_CACHE_HOME:-~/.cache}/pinwheel/traces/NAME-RANKS.bin, so that the next one who asks has it
# at once; remove that file to have it recorded anew.
#
# Programs of the paper, whose traces its authors have: a folder of them, as liballprof writes them,
# is taken from there if somebody has put it there (given/NAME-RANKS).
#
# Status 77: there is none, and why; 1: something went wrong.
set -eu
command=$1 name=$2 ranks=$3
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinwheel/traces
inputs=$(dirname "$(readlink -f "$0")")

missing() {
    echo "trace of $name, $ranks ranks: there is none: $1" >&2
    exit 77
}

needs() {
    command -v "$1" >/dev/null || missing "no $1 here: apt-get install $2"
}

# What runs, in a folder of its own that has the inputs.
program() {
    case $name in
    lammps)
        needs lmp lammps
        set -- lmp -log none -in lammps.in -var edge "$(edge "$ranks")"
        ;;
    meep)
        needs meep meep-mpi-default
        set -- meep meep.ctl
        ;;
    gerris)
        needs gerris2D gerris
        needs awk mawk
        gerris2D -s "$([ "$ranks" -gt 16 ] && echo 3 || echo 2)" -b "$ranks" gerris.gfs >split.gfs
        set -- gerris2D split.gfs
        ;;
    hpcc)
        needs hpcc hpcc
        sed "s/ROWS/$(rows "$ranks")/; s/COLUMNS/$((ranks / $(rows "$ranks")))/" hpcc.in >hpccinf.txt
        set -- hpcc
        ;;
    milc | pop | comd | cloverleaf)
        missing "the authors of the paper have it; if you do, put its files, as liballprof writes \
them, into $cache/given/$name-$ranks"
        ;;
    *)
        echo "trace.sh: $name is none of lammps, lammps-grown, meep, gerris, hpcc, milc, pop, comd, cloverleaf" >&2
        exit 2
        ;;
    esac
    # Several ranks on a processor: no library may start threads, and Open MPI lets its ranks yield.
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "$command" goal record --clock cpu -o record mpirun.openmpi --oversubscribe --bind-to none \
        -n "$ranks" "$@" >said 2>&1 </dev/null || {
        cat said >&2
        echo "trace of $name, $ranks ranks: the program failed" >&2
        exit 1
    }
}

# Cells of the lattice along an edge of LAMMPS's box: some 400 atoms a rank.
edge() {
    e=1
    while [ $((e * e * e)) -lt $((100 * $1)) ]; do e=$((e + 1)); done
    echo $e
}

# Rows of the most even grid of so many ranks.
rows() {
    r=1 i=1
    while [ $((i * i)) -le "$1" ]; do
        [ $(($1 % i)) -ne 0 ] || r=$i
        i=$((i + 1))
    done
    echo $r
}

# A recording of the program, in $work.
record() {
    (cd "$work" && program) || exit $?
    how="an own recording, $(nproc) processors, clock of the processor"
}

# The recordings of LAMMPS on grids of 3 and 4 ranks an edge, of which other cubes are made, if the
# two are regular.
cubes() {
    edge=3
    while [ $((edge * edge * edge)) -lt "$ranks" ]; do edge=$((edge + 1)); done
    [ $((edge * edge * edge)) -eq "$ranks" ] || missing "it is no cube of ranks"
    wanted=$ranks
    name=lammps
    for ranks in 27 64; do
        if [ ! -d "$cache/$name-$ranks.recording" ]; then
            record
            mv "$work/record" "$cache/$name-$ranks.recording"
        fi
    done
    ranks=$wanted name=lammps-grown
    how="extrapolated from own recordings of 27 and 64 ranks"
}

made=$cache/$name-$ranks.bin
if [ ! -f "$made" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp "$inputs"/lammps.in "$inputs"/meep.ctl "$inputs"/gerris.gfs "$inputs"/hpcc.in "$work"
    if [ -d "$cache/given/$name-$ranks" ]; then
        how="given, of liballprof"
        set -- "$cache/given/$name-$ranks"
    elif [ "$name" = lammps-grown ]; then
        cubes
        set -- "$cache/lammps-64.recording" --regular "$cache/lammps-27.recording" \
            --grids "3x3x3,4x4x4,${edge}x${edge}x$edge"
    elif [ -d "$cache/$name-$ranks.recording" ]; then
        how="an own recording, clock of the processor"
        set -- "$cache/$name-$ranks.recording"
    else
        record
        set -- "$work/record"
    fi
    "$command" goal trace "$@" -o "$work/made.bin" >"$work/about"
    grep -q "^schedule  *$ranks ranks" "$work/about" || {
        cat "$work/about" >&2
        echo "trace of $name, $ranks ranks: the recording has others" >&2
        exit 1
    }
    echo "made          $how" >>"$work/about"
    mv "$work/about" "$cache/$name-$ranks.txt"
    mv "$work/made.bin" "$made" # a file that is there is whole
fi
echo "$made"
