#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Profile-guided builds: one that trains itself, one whose training cannot run, one with profiles
# that do not fit its sources, and what is refused. Usage: profile.sh SOURCE_FOLDER.
# Exit 77: there is no gcc.
set -eu
source=$1
command -v gcc >/dev/null || { echo "no gcc: tools/packages.sh build installs it" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$work/build

fail() {
    echo "profile.sh: $1" >&2
    [ ! -e "$2" ] || tail -30 "$2" >&2
    exit 1
}

configure() { # FOLDER OPTION...
    folder=$1
    shift
    cmake -S "$source" -B "$folder" -DCMAKE_C_COMPILER=gcc -DPINWHEEL_TESTS=OFF "$@" > "$work/configure" 2>&1
}

make_it() { # FOLDER TARGET...
    folder=$1
    shift
    cmake --build "$folder" -j 2 --target "$@" > "$work/made" 2>&1 || fail "$folder cannot be built" "$work/made"
}

says() { # WORDS
    "$build/tools/pinwheel/pinwheel" info | grep -q "$1" || fail "pinwheel info does not say: $1" "$work/made"
}

refuses() { # WORDS OPTION...
    words=$1
    shift
    rm -rf "$work/refused"
    ! configure "$work/refused" "$@" || fail "was not refused: $*" "$work/configure"
    tr -s ' \n' ' ' < "$work/configure" | grep -q "$words" || fail "the refusal does not say: $words" "$work/configure"
}

refuses "must be off, generate or use" -DPINWHEEL_PROFILE=on
refuses "has no profile" -DPINWHEEL_PROFILE=use -DPINWHEEL_PROFILE_DIR="$work"
refuses "and sanitizers exclude each other" -DPINWHEEL_PROFILE=use -DPINWHEEL_SANITIZE=thread
! command -v clang >/dev/null || refuses "needs gcc" -DPINWHEEL_PROFILE=use -DCMAKE_C_COMPILER=clang

# A training that fails is told, and the library is built as ever.
configure "$build" -DPINWHEEL_PROFILE=use || fail "cannot be configured" "$work/configure"
(export PINWHEEL_SHM_DIR="$work/nowhere"; make_it "$build" pinwheel)
grep -q "WARNING: .*; the library is built without a profile" "$work/made" || fail "no warning" "$work/made"
says "without a profile"

# Objects that were made without are made again.
rm "$build/profile/options"
make_it "$build" pinwheel
says "profile-guided"
[ -z "$(find "$source" -name '*.gcda')" ] || fail "the training left profiles in the sources" "$work/made"

# Trained and up to date: nothing is done again.
before=$(stat -c %Y "$build/profile/options")
make_it "$build" pinwheel
[ "$(stat -c %Y "$build/profile/options")" = "$before" ] || fail "it was trained anew for nothing" "$work/made"

# Profiles of other functions do no harm.
stale=$work/stale
cp -r "$build/profile/data" "$stale"
cp "$stale/src#nic#CMakeFiles#pw_nic.dir#event.c.gcda" "$stale/src#nic#CMakeFiles#pw_nic.dir#self.c.gcda"
configure "$work/second" -DPINWHEEL_PROFILE=use -DPINWHEEL_PROFILE_DIR="$stale" || fail "stale" "$work/configure"
make_it "$work/second" pw_nic
echo "trained, refused what cannot be, and built with what does not fit"
