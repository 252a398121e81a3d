#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# program.sh PROGRAM PING_HOST ICMP COUNT ASK: pinwheel_raw.h on capture files, which needs no
# privilege. ICMP, COUNT and ASK are images of examples/raw/icmp_echo.c, handlers/count.c and
# examples/raw/icmp_host.c.
set -eu
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/frames.py" make pings "$work/pings"
"$1" "$work/pings" "$3" "$4" "$5"

# The handler exchanges addresses and the host computes the checksum: the same answers.
"$2" pcap "$work/pings,$work/answers" "$5" > "$work/counts"
python3 "$here/frames.py" check pings "$work/answers"
grep -q "answered 12, failed 0; the host was asked 12 times" "$work/counts" || {
    cat "$work/counts"
    exit 1
}
