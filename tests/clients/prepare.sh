#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches and builds what the tests of this folder run.
#
#   prepare.sh FOLDER INCLUDE LIBRARY_FOLDER [all|FILE]
#
# INCLUDE is the folder of our portals4.h, LIBRARY_FOLDER that of libportals.so.
# Afterwards there are, each kept when it is there and up to date,
#
#   FOLDER/source/openmpi, FOLDER/source/mpich    Debian's sources
#   FOLDER/plugins                                Open MPI's portals4 components
#   FOLDER/own                                    the programs of this folder
#   FOLDER/mpich                                  those of MPICH's test suite, all of
#                                                 them or those that FILE selects; none
#                                                 and no source of it without the word
#
# Exit: 0 done; 77 no Debian source can be had on this machine, then FOLDER/no-source
# says why; 1 anything else.
set -eu
[ $# -eq 3 ] || [ $# -eq 4 ] || {
    echo "usage: prepare.sh FOLDER INCLUDE LIBRARY_FOLDER [all|FILE]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd) include=$2 library=$3 suite=${4:-}
here=$(cd "$(dirname "$0")" && pwd)

# The components must be of the Open MPI that is installed; the suite is that of the
# same release of Debian.
openmpi=$(dpkg-query -W -f '${source:Version}' libopenmpi-dev)
mpich=$(dpkg-query -W -f '${source:Version}' mpich)
rm -f "$folder/no-source"
status=0
"$here/fetch.sh" "$folder/source" "openmpi=$openmpi" ${suite:+"mpich=$mpich"} 2> "$folder/fetch.log" ||
    status=$?
cat "$folder/fetch.log" >&2
[ "$status" -ne 77 ] || cp "$folder/fetch.log" "$folder/no-source"
[ "$status" -eq 0 ] || exit "$status"
"$here/build_openmpi.sh" "$folder/source/openmpi" "$include" "$library" "$folder/plugins"

mkdir -p "$folder/own"
for name in messages flood onesided accumulate collectives; do
    program=$folder/own/$name
    [ -z "$(find "$here/$name.c" "$here/check.c" "$here/check.h" -newer "$program" 2>&1)" ] ||
        mpicc.openmpi -std=gnu17 -O2 -g -Wall -Wextra -Werror \
            "$here/$name.c" "$here/check.c" -o "$program"
done

case $suite in
'') ;;
all) "$here/build_mpich.sh" "$folder/source/mpich" "$folder/mpich" ;;
*)
    # The first word of a line is the program.
    # shellcheck disable=SC2046  # words are wanted
    "$here/build_mpich.sh" "$folder/source/mpich" "$folder/mpich" \
        $(awk '!/^#/ && NF { print $1 }' "$suite" | sort -u)
    ;;
esac
