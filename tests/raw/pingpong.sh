#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pingpong.sh HOST IMAGE: examples/raw/pingpong.c answers in its three ways, each byte by byte as
# frames.py does; on capture files, which needs no privilege.
set -eu
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/frames.py" make pings "$work/pings"
for way in nic both host; do
    "$1" pcap "$work/pings,$work/answers" $way "$2" > "$work/counts"
    python3 "$here/frames.py" check pings "$work/answers"
    grep -q "answered 12, failed 0" "$work/counts" || {
        echo "pingpong.sh: $way: $(cat "$work/counts")" >&2
        exit 1
    }
done
