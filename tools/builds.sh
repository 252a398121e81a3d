#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the tree as packagers do, one variant after another, and runs tests with what came out.
#
#   tools/builds.sh [-j JOBS] [-t FOLDERS] [-n] [-k] FOLDER [VARIANT...]   without VARIANT: all
#   tools/builds.sh -l                                                     lists the variants
#
# -t names the folders of tests/ whose tests run, but for the long ones; with it no other tests are
# built. -n builds only; -k keeps the build folders. Each variant is a new folder in FOLDER; its log
# FOLDER/VARIANT.log stays. A warning fails a variant, of the compiler or of the linker. The flags
# come as packagers give them: CFLAGS and LDFLAGS of the environment, beside CMAKE_BUILD_TYPE.
set -u

# name | compiler | build type | CFLAGS | LDFLAGS | options
variants() {
    hardening() { DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"; }
    cat <<TABLE
release|gcc|Release|||
release-clang|clang|Release|||
debug|gcc|Debug|||
debug-clang|clang|Debug|||
minsize|gcc|MinSizeRel|||
minsize-clang|clang|MinSizeRel|||
none|gcc|None|||
none-clang|clang|None|||
werror|gcc|RelWithDebInfo|||-DPINWHEEL_WERROR=ON
werror-clang|clang|RelWithDebInfo|||-DPINWHEEL_WERROR=ON
static|gcc|Release|||-DBUILD_SHARED_LIBS=OFF
shared|gcc|Release|||-DBUILD_SHARED_LIBS=ON
o3|gcc|None|-O3||
o3-clang|clang|None|-O3||
lto|gcc|Release|-flto=auto|-flto=auto|
lto-clang|clang|Release|-flto|-flto -fuse-ld=lld|
fortify|gcc|None|-O2 -D_FORTIFY_SOURCE=3||
fortify-clang|clang|None|-O2 -D_FORTIFY_SOURCE=3||
pie|gcc|None|-O2 -fPIE -fstack-protector-strong|-Wl,-z,now|-DCMAKE_EXE_LINKER_FLAGS_NONE=-pie
pie-clang|clang|None|-O2 -fPIE -fstack-protector-strong|-Wl,-z,now|-DCMAKE_EXE_LINKER_FLAGS_NONE=-pie
debian|gcc|None|$(hardening CFLAGS) $(hardening CPPFLAGS)|$(hardening LDFLAGS)|
fedora|gcc|None|-O2 -flto=auto -ffat-lto-objects -fexceptions -g -Wall -Werror=format-security -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -fstack-protector-strong -fasynchronous-unwind-tables -fstack-clash-protection -fcf-protection -fno-omit-frame-pointer|-flto=auto -Wl,-z,relro -Wl,--as-needed -Wl,-z,now|
TABLE
}

fail() { echo "builds.sh: $*" >&2; exit 2; }
usage() { fail "usage: builds.sh [-j JOBS] [-t FOLDERS] [-n] [-k] FOLDER [VARIANT...], or builds.sh -l"; }

jobs=$(nproc) tests='unit fabric portals handlers hpu nic sim' targets=all only_build='' keep=''
while getopts j:t:nkl option; do
    case $option in
    j) jobs=$OPTARG ;;
    t) tests=$OPTARG targets='src/all lib/all handlers/all tools/pinwheel/all examples/all bench/all' ;;
    n) only_build=1 ;;
    k) keep=1 ;;
    l) variants | awk -F'|' '{ printf "%-14s %-6s %-15s %s %s %s\n", $1, $2, $3, $4, $5, $6 }'; exit 0 ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
tree=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1" && folder=$(cd "$1" && pwd) || exit 2
shift
pattern="^($(echo "$tests" | tr -s ' ' '|'))[.]"
if [ "$targets" != all ]; then
    targets="$targets portals_kill portals_paths" # which tests of all folders load
    for name in $tests; do
        [ -d "$tree/tests/$name" ] || fail "$name: no folder of $tree/tests"
        targets="$targets tests/$name/all"
    done
fi
for name in "$@"; do
    variants | grep -q "^$name|" || fail "$name: no such variant; builds.sh -l lists them"
done

# try NAME COMPILER TYPE CFLAGS LDFLAGS OPTIONS: one row of the table that is printed.
try() {
    local build=$folder/$1 log=$folder/$1.log built=no warned tested=-
    rm -rf "$build"
    # shellcheck disable=SC2086  # options and targets are meant to be split
    if (CFLAGS=$4 LDFLAGS=$5 cmake -G Ninja -S "$tree" -B "$build" -DCMAKE_C_COMPILER="$2" \
        -DCMAKE_BUILD_TYPE="$3" -DPINWHEEL_TESTS=ON $6 && cmake --build "$build" -j "$jobs" --target $targets -- -k 0) > "$log" 2>&1; then
        built=yes
    fi
    warned=$(grep -ciE 'warning:' "$log")
    if [ $built = yes ] && [ -z "$only_build" ]; then
        (cd "$build" && ctest --output-on-failure --no-tests=error -j $((3 * jobs)) -LE long -R "$pattern") >> "$log" 2>&1
        tested=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)/\1 of \2/p' "$log")
    fi
    printf '%-14s %-6s %-15s %-6s %8s  %s\n' "$1" "$2" "$3" $built "$warned" "${tested:-none ran}"
    [ -n "$keep" ] || rm -rf "$build"
    case $built/$warned/$tested in yes/0/-|yes/0/0\ of\ *) return 0 ;; esac
    return 1
}

failed=''
printf '%-14s %-6s %-15s %-6s %8s  %s\n' variant with type built warnings 'tests failed'
while IFS='|' read -r name compiler type cflags ldflags options; do
    case " ${*-$name} " in *" $name "*) ;; *) continue ;; esac
    try "$name" "$compiler" "$type" "$cflags" "$ldflags" "$options" || failed="$failed $name"
done < <(variants)
[ -z "$failed" ] || { echo "builds.sh: $folder has the logs of those that failed:$failed" >&2; exit 1; }
