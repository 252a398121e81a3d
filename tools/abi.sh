#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compares what users of this tree rely on with that of an older commit: a program that was linked
# with the old libraries, and a script that calls the old command, must go on with the new ones.
#
#   tools/abi.sh COMMIT FOLDER       COMMIT's files and both builds come into FOLDER
#
# Of each library of COMMIT abidiff prints which functions and types
# are new, and what is gone or laid out in another way, as far as the headers of include/ show it.
# Of the command and the environment this prints the names that tools/surface.py finds on one side
# only. Exit status: 0 nothing is gone or incompatible, 1 something is, 2 it could not be compared.
set -eu
export LC_ALL=C
fail() { echo "abi.sh: $*" >&2; exit 2; }
[ $# -eq 2 ] || fail "usage: abi.sh COMMIT FOLDER"
command -v abidiff > /dev/null || fail "there is no abidiff: tools/packages.sh abi installs it"
tree=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
rm -rf "$folder/old" && mkdir "$folder/old"
git -C "$tree" archive "$1" | tar xf - -C "$folder/old" || fail "$1: git has no such commit"

# build SOURCES FOLDER: libraries and command, with all that abidiff reads.
build() {
    local targets='portals libpinwheel pinwheel'
    [ ! -e "$1/lib/firehose" ] || targets="$targets firehose"
    [ ! -e "$1/lib/rma" ] || targets="$targets rma"
    # shellcheck disable=SC2086  # the targets are meant to be split
    { cmake -G Ninja -S "$1" -B "$2" -DPINWHEEL_TESTS=OFF -DPINWHEEL_PROFILE=off -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
        cmake --build "$2" --target $targets; } > "$2.log" 2>&1 || fail "$2.log says why $1 does not build"
}
build "$folder/old" "$folder/old-build"
build "$tree" "$folder/new-build"

status=0
for old in $(cd "$folder/old-build" && find src lib -name 'lib*.so' 2> /dev/null | sort); do
    case $old in src/trace/*) continue ;; esac # loaded into programs, linked with none
    echo "== ${old##*/}"
    new=$folder/new-build/$old
    [ -e "$new" ] || { echo "gone"; status=1; continue; }
    differ=0
    abidiff --headers-dir1 "$folder/old/include" --headers-dir2 "$tree/include" "$folder/old-build/$old" "$new" || differ=$?
    [ $((differ & 3)) -eq 0 ] || fail "abidiff cannot compare $old and $new"
    # What is only added sets bit 4; bit 8 is what no old program survives. A removed variable or
    # function is one of these; a type that changed is seen by bit 4 alone, and read above.
    [ $((differ & 8)) -eq 0 ] || status=1
done

echo "== command and environment"
"$tree/tools/surface.py" "$folder/old" "$folder/old-build" > "$folder/old.names"
"$tree/tools/surface.py" "$tree" "$folder/new-build" > "$folder/new.names"
comm -23 "$folder/old.names" "$folder/new.names" | sed 's/^/gone: /'
comm -13 "$folder/old.names" "$folder/new.names" | sed 's/^/new:  /'
[ -z "$(comm -23 "$folder/old.names" "$folder/new.names")" ] || status=1
exit $status
