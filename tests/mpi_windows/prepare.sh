#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches and builds MPICH's one-sided tests with the compiler of an MPI.
#
#   prepare.sh FOLDER openmpi|mpich [FILE]
#
# Afterwards FOLDER/source/mpich is Debian's source, and FOLDER/openmpi or FOLDER/mpich has the
# programs of rma and errors/rma: those that FILE selects (lines of suite.py's names), or all. A
# program that does not compile is reported by suite.py; FOLDER/MPI/build.log has the words. What is
# there is kept.
#
# Exit: 0 done; 77 no Debian source can be had on this machine; 1 anything else.
set -eu
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: prepare.sh FOLDER openmpi|mpich [FILE]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd) mpi=$2 selection=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
"$here/../clients/fetch.sh" "$folder/source" "mpich=$(dpkg-query -W -f '${source:Version}' mpich)"
source=$folder/source/mpich/test/mpi
mkdir -p "$folder/$mpi"
cd "$folder/$mpi"
log=$folder/$mpi/build.log
if [ ! -e configured ]; then
    CONFIG_SHELL=/bin/dash /bin/dash "$source/configure" CC="mpicc.$mpi" MPICC="mpicc.$mpi" \
        --enable-strictmpi --enable-fortran=no --disable-cxx --disable-spawn --disable-romio \
        --disable-perftest --disable-part > "$log" 2>&1 || {
        tail -30 "$log" >&2
        echo "prepare.sh: the suite's configure failed, see $log" >&2
        exit 1
    }
    : > configured
fi
# The suite's own library names functions that MPI 3 removed; Open MPI has them still.
flags="-O0 -w"
if [ "$mpi" = openmpi ]; then
    flags="$flags -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -DOMPI_REMOVED_USE_STATIC_ASSERT=0"
    flags="$flags '-D__mpi_interface_removed__(old,new)='"
fi
jobs=$(nproc)
for library in util dtpools; do
    make -j "$jobs" -C $library CFLAGS="$flags" >> "$log" 2>&1 || {
        tail -30 "$log" >&2
        echo "prepare.sh: the suite's own libraries did not compile, see $log" >&2
        exit 1
    }
done
for directory in rma errors/rma; do
    programs=
    if [ -n "$selection" ]; then
        programs=$(sed -n "s|^$directory/\([^ ]*\) .*|\1|p" "$selection" | sort -u)
        [ -n "$programs" ] || continue
    fi
    # shellcheck disable=SC2086  # the names are words
    make -k -j "$jobs" -C $directory CFLAGS="$flags" $programs >> "$log" 2>&1 || true
done
