#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# telemetry.sh TELEMETRY IMAGE: what the handlers of examples/raw/telemetry_nic.c find in capture
# files of a few and of many flows, against an exact count; then on a live interface, in a user
# namespace, which may not be allowed.
set -eu
telemetry=$1 image=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
    echo "telemetry.sh: $*" >&2
    exit 1
}
while read -r flows frames seed; do
    python3 "$here/telemetry.py" make "$flows" "$frames" "$seed" "$work/pcap"
    "$telemetry" pcap "$work/pcap" "$image" --json --flows > "$work/json" || fail "$flows flows"
    python3 "$here/telemetry.py" check "$work/pcap" "$work/json" || fail "$flows flows"
done << 'END'
3000 15000 1
40000 20000 2
END
"$telemetry" pcap "$work/pcap" "$image" > "$work/text"
grep -q "not IP 400 frames" "$work/text" || fail "$(cat "$work/text")"
if "$telemetry" pcap "$work/none" "$image" > "$work/text" 2>&1; then
    fail "a file that is not there"
fi
grep -q "$work/none" "$work/text" || fail "$(cat "$work/text")"

cat > "$work/live.sh" << 'END'
set -eu
ip link set lo up
"$1" iface lo "$2" --json > "$3/live" &
telemetry=$!
for _ in $(seq 600); do # until it has its packet socket
    [ "$(wc -l < /proc/net/packet)" -gt 1 ] && break
    sleep 0.05
done
ping -q -c 7 -i 0.01 127.0.0.1 > "$3/ping"
timeout 60 python3 "$4/frames.py" listen 8053 "$3/ready" &
for _ in $(seq 600); do
    [ -e "$3/ready" ] && break
    sleep 0.05
done
python3 "$4/frames.py" connect 127.0.0.1 8053
wait %2
kill -INT $telemetry
wait $telemetry
python3 "$4/telemetry.py" live "$3/live" 7
END
if ! unshare -Urn true 2> /dev/null || ! command -v ping > /dev/null; then
    echo "without privilege left out: a live interface (user namespaces, or ping, are missing)"
    exit 0
fi
unshare -Urn bash "$work/live.sh" "$telemetry" "$image" "$work" "$here" ||
    fail "a live interface: $(cat "$work/live")"
