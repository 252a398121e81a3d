#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds MPICH's test suite with Open MPI's compiler.
#
#   build_mpich.sh SOURCE FOLDER [DIRECTORY/PROGRAM...]
#
# SOURCE is Debian's unpacked mpich source, FOLDER where the programs go, under
# attr, coll, comm, datatype, pt2pt and rma; with names only those programs are
# built. Programs that need what Open MPI does not have (MPI 4, MPI-1 leftovers)
# do not compile: the suite's run reports them as not built, for both transports,
# and FOLDER/build.log has the compiler's words. A second run builds what is missing.
set -eu
[ $# -ge 2 ] || { echo "usage: build_mpich.sh SOURCE FOLDER [DIRECTORY/PROGRAM...]" >&2; exit 2; }
mkdir -p "$2"
source=$(cd "$1" && pwd)/test/mpi folder=$(cd "$2" && pwd)
shift 2
cd "$folder"
log=$folder/build.log

if [ ! -e configured ]; then
    # dash runs configure, and libtool later, faster than bash does.
    if ! CONFIG_SHELL=/bin/dash /bin/dash "$source/configure" CC=mpicc.openmpi --enable-strictmpi --enable-fortran=no --disable-cxx \
            --disable-spawn --disable-romio --disable-perftest --disable-part \
            --enable-threads=single > "$log" 2>&1; then
        tail -30 "$log" >&2
        echo "build_mpich.sh: the suite's configure failed, see $log" >&2
        exit 1
    fi
    : > configured
fi

# The library that all tests are linked with names functions that MPI 3 removed.
# Open MPI still exports them; these definitions make its header declare them.
# What is tested is under these programs: they need not be fast, but quickly compiled.
flags="-O0 -w -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -DOMPI_REMOVED_USE_STATIC_ASSERT=0"
flags="$flags '-D__mpi_interface_removed__(old,new)='"
jobs=$(nproc)
for library in util dtpools; do
    make -j "$jobs" -C $library CFLAGS="$flags" >> "$log" 2>&1 || {
        tail -30 "$log" >&2
        echo "build_mpich.sh: the suite's own libraries did not compile, see $log" >&2
        exit 1
    }
done
if [ $# -eq 0 ]; then
    for directory in attr coll comm datatype pt2pt rma; do
        make -k -j "$jobs" -C $directory CFLAGS="$flags" >> "$log" 2>&1 || true
    done
else
    # One make a directory: each reads a large Makefile before it does anything.
    for directory in attr coll comm datatype pt2pt rma; do
        programs=$(printf '%s\n' "$@" | sed -n "s|^$directory/||p")
        [ -n "$programs" ] || continue
        # shellcheck disable=SC2086  # the names are words
        make -k -j "$jobs" -C $directory CFLAGS="$flags" $programs >> "$log" 2>&1 || {
            echo "build_mpich.sh: not all of $directory compiled, see $log" >&2; exit 1; }
    done
fi
