#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The training of a profile-guided build (cmake/profile.cmake). In FOLDER:
#
#   build            the library, instrumented, and what it needs to run
#   data             what the training counted
#   options.trained  the compiler options that use it, written by CMake
#   options          these, or nothing if the training could not run. Objects depend on it, so
#                    it is as old as what they were compiled with
#
# A training is some twenty rows of the benchmark, two processes and two seconds; it is repeated
# when the instrumented library has changed. Usage: profile.sh FOLDER SOURCE CMAKE_OPTION...
set -eu
[ $# -ge 2 ] || { echo "usage: profile.sh FOLDER SOURCE CMAKE_OPTION..." >&2; exit 2; }
folder=$1 source=$2
shift 2
build=$folder/build data=$folder/data
# A folder of the library searched before our own, and jobs of a make that knows nothing of this one.
unset LD_LIBRARY_PATH MAKEFLAGS MFLAGS

# Short and long, expected and not, acknowledged, triggered, atomic, with handlers, over UDP; and as
# MPI does it, which counts most, thrice.
rows=put_latency,put_latency_eqget,put_latency_eqwait,get_latency,message_rate,bandwidth,triggered_put
rows=$rows,handler_latency,handler_message,handler_packet,fetch_atomic,cswap,atomic_local,atomic_rate
rows=$rows,chain_ctinc,chain_put,chain_atomic,expected,unexpected,unexpected_reverse,unexpected_wild
rows=$rows,put_depth,put_latency_ack,put_latency_append,udp/latency,udp/rate,udp/bandwidth
rows=$rows,spin/strided,spin/pingpong,spin/invoke
mpi=put_latency_mtl
programs="pinwheel bench_ours bench_limits bench_spin bench_crew"

without() {
    rm -rf "$data"
    : > "$folder/options"
    echo "profile.sh: WARNING: $1; the library is built without a profile." >&2
    echo "profile.sh: $folder/training.log says why; remove $folder/options to try again." >&2
    exit 0
}

train() {
    timeout 120 "$build/tools/pinwheel/pinwheel" bench --quick --peers none --out "$folder/out" "$@" \
        >> "$folder/training.log" 2>&1
}

# shellcheck disable=SC2086  # the programs are meant to be split
instrument() {
    cmake -S "$source" -B "$build" "$@" -DPINWHEEL_PROFILE=generate -DPINWHEEL_PROFILE_DIR="$data" \
          -DPINWHEEL_TESTS=OFF &&
        cmake --build "$build" -j "$(nproc)" --target $programs
}

mkdir -p "$folder"
if ! instrument "$@" > "$folder/log" 2>&1; then
    tail -40 "$folder/log" >&2
    echo "profile.sh: the instrumented library cannot be built, $folder/log says why" >&2
    exit 1
fi
if [ -e "$folder/options" ] &&
   [ -z "$(find -L "$build/src/portals/libportals.so" -newer "$folder/options")" ]; then
    # Trained, but by other options of the compiler?
    [ ! -s "$folder/options" ] || cmp -s "$folder/options.trained" "$folder/options" ||
        cp "$folder/options.trained" "$folder/options"
    exit 0
fi

rm -rf "$data" "$folder/training.log"
train --bench "$rows" || without "the training rows failed"
train --bench "$mpi" --rounds 9 || without "the training as MPI does it failed"
[ -n "$(find "$data" -name '*#move.c.gcda')" ] || without "the training rows left no counts"
cp "$folder/options.trained" "$folder/options"
echo "profile.sh: trained, $(find "$data" -name '*.gcda' | wc -l) files of counts in $data"
