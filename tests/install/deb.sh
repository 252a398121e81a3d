#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the Debian packages and uses what is in them, unpacked beside each other.
# Usage: deb.sh SOURCE_FOLDER CC. Exit 77: the packages' tools are not installed.
set -eu
source=$1 cc=$2
for tool in dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || { echo "no $tool: tools/packages.sh deb installs it" >&2; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/tools/deb.sh" "$work/deb"
for deb in "$work"/deb/*.deb; do
    dpkg-deb -x "$deb" "$work/root"
done
lib=$(dirname "$(find "$work/root" -name libportals.so)")
$cc "$source/tests/install/user.c" -o "$work/user" -I"$work/root/usr/include" -L"$lib" -lportals
export LD_LIBRARY_PATH="$lib"
"$work/root/usr/bin/pinwheel" run -n 2 "$work/user"
"$work/root/usr/bin/pinwheel" bench --quick --bench put_latency --peers none --out "$work/bench" >/dev/null
MANPATH=$work/root/usr/share/man man -w PtlPut portals4 pinwheel >/dev/null
echo "packaged, unpacked, ran"
