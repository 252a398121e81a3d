#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches Debian source packages with apt, and unpacks them, into a folder of
# the build tree; the system's apt configuration and lists stay untouched.
#
#   fetch.sh FOLDER NAME[=VERSION]...     afterwards FOLDER/NAME is the source
#
# Where from: every archive from which this machine's apt gets binary packages
# is asked for its sources, so mirrors, proxies, keys and credentials are those
# of the machine. Verified as apt does it: signature of the index, checksums of
# the files. A second run finds the stamp FOLDER/NAME.fetched and does nothing.
#
# Exit: 0 done; 77 no archive of this machine has sources, or none can be reached
# (a test skips); 1 there is one with sources, but it did not give this one.
set -eu
[ $# -ge 2 ] || { echo "usage: fetch.sh FOLDER NAME[=VERSION]..." >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift

missing=
for want; do
    stamp=$folder/${want%%=*}.fetched
    if [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then missing="$missing $want"; fi
done
[ -n "$missing" ] || exit 0

for tool in apt-get apt-config dpkg-source; do
    command -v $tool >/dev/null || {
        echo "fetch.sh: no $tool here, so no Debian sources ($missing ) can be had" >&2; exit 77; }
done

# The same archives, asked for sources: an entry of one line ("deb ..."), then
# one of fields ("Types: deb").
one_line() { sed -n -E 's/^[[:space:]]*deb(-src)?([[:space:]])/deb-src\2/p' "$1" | sort -u; }
fields() { sed -E 's/^[Tt]ypes:.*/Types: deb-src/' "$1"; }

apt=$folder/apt
rm -rf "$apt"
mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"
eval "$(apt-config shell main Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
found=
# shellcheck disable=SC2154  # main and parts come from apt-config
for entry in "$main" "$parts"/*.list "$parts"/*.sources; do
    [ -f "$entry" ] || continue
    case $entry in
    *.sources) fields "$entry" > "$apt/sources/${entry##*/}" ;;
    *) one_line "$entry" > "$apt/sources/main-${entry##*/}" ;;
    esac
    if grep -q deb-src "$apt/sources/"*"${entry##*/}"; then found=yes; fi
done
[ -n "$found" ] || {
    echo "fetch.sh: apt on this machine knows no archive, so no sources ($missing ) can be had" >&2; exit 77; }

# Read after the system's configuration, so it wins. No hook of the system's
# apt runs, and root fetches as root, because the build tree may be private.
cat > "$apt/conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "$(id -un)";
APT::Get::AllowUnauthenticated "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF

# An archive without sources makes the update fail, though another one may have
# what is wanted; so only the result below decides.
apt-get -c "$apt/conf" -qq update > "$apt/update.log" 2>&1 || true
[ -n "$(find "$apt/lists" -name '*_source_Sources*')" ] || {
    echo "fetch.sh: no archive of $main and $parts gave a list of sources, so no" \
        "sources ($missing ) can be had; apt said:" >&2
    cat "$apt/update.log" >&2
    exit 77
}
cd "$folder"
for want in $missing; do
    name=${want%%=*}
    rm -rf "$name" "$name".fetched
    mkdir "$name.new"
    if ! (cd "$name.new" && apt-get -c "$apt/conf" -qq source --only-source "$want") > "$apt/source.log" 2>&1; then
        echo "fetch.sh: apt could not get the source of $want; it said:" >&2
        cat "$apt/update.log" "$apt/source.log" >&2
        echo "The archives asked are those of $main and $parts." >&2
        rm -rf "$name.new"
        exit 1
    fi
    # The unpacked tree is the only folder; archives are not needed any more.
    mv "$name.new"/*/ "$name"
    rm -rf "$name.new"
    echo "$want" > "$name.fetched"
done
rm -rf "$apt"
