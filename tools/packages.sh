#!/bin/sh
# Installs the Debian packages of packages.txt that serve a purpose (demo, test,
# lint, ...) and are not there yet; says which. Does nothing, silently, when
# nothing is missing. Usage: tools/packages.sh PURPOSE
set -eu
purpose=${1:?"usage: tools/packages.sh PURPOSE"}
list=$(dirname "$0")/../packages.txt
wanted=$(awk -v p="$purpose" '!/^#/ && NF == 2 && index("," $2 ",", "," p ",") { print $1 }' "$list")
[ -n "$wanted" ] || { echo "packages.sh: no package of packages.txt serves '$purpose'" >&2; exit 2; }
command -v dpkg-query >/dev/null || {
    echo "packages.sh: not a Debian system; install these yourself:" >&2
    echo "$wanted" >&2
    exit 0
}
missing=
for p in $wanted; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true) in
    installed*) ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0
echo "installing Debian packages:$missing"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    sudo=$(command -v sudo) || {
        echo "packages.sh: not root and no sudo; run as root: apt-get install$missing" >&2; exit 1; }
fi
$sudo apt-get update -qq
# shellcheck disable=SC2086  # the list is meant to be split
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
