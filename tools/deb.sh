#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the Debian packages of the tree as it stands and leaves them, with what
# lintian says, in a folder. Usage: deb.sh FOLDER [JOBS]
# The library is trained (cmake/profile.cmake), unless PROFILE=off is in the environment.
set -eu
[ $# -ge 1 ] || { echo "usage: deb.sh FOLDER [JOBS]" >&2; exit 2; }
mkdir -p "$1"
[ "${PROFILE-use}" = off ] || export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-} pgo"
folder=$(cd "$1" && pwd) jobs=${2:-2}
cd "$(dirname "$0")/.."
rm -rf "$folder/pinwheel" "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
mkdir "$folder/pinwheel"
# Builds of other kinds stay out, and what a build leaves does not come into this tree.
tar cf - --exclude=./.git --exclude='./build*' --exclude='./*-out' . | tar xf - -C "$folder/pinwheel"
(cd "$folder/pinwheel" && dpkg-buildpackage -b -us -uc -j"$jobs") > "$folder/build.log" 2>&1 || {
    tail -40 "$folder/build.log" >&2
    echo "deb.sh: the packages cannot be built, $folder/build.log says why" >&2
    exit 1
}
lintian --fail-on error,warning "$folder"/*.changes
rm -rf "$folder/pinwheel"
ls "$folder"/*.deb
