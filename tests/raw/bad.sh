#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bad.sh PINWHEEL IMAGE COUNT: what is bad on capture files, which needs no privilege: lengths,
# messages that never end, sends that are none, rules and images. IMAGE and COUNT are images of
# handlers/bad.c and handlers/count.c.
set -eu
pinwheel=$1 image=$2 count=$3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "bad.sh: $*" >&2
    exit 1
}
has() # FILE TEXT
{
    grep -qF -- "$2" "$1" || fail "\"$2\" is not in: $(cat "$1")"
}
bad()
{
    python3 "$here/bad.py" "$@"
}
run() # ARGUMENT...
{
    "$pinwheel" raw run "$@" > "$work/counts" 2> "$work/log" || fail "$(cat "$work/log")"
}

# Frames of 14 to 9018 bytes come and go.
bad lengths "$work/lengths"
run --pcap "$work/lengths" --out "$work/answers" --context "x=$image:echo" --rules all
bad swapped "$work/lengths" "$work/answers"
has "$work/counts" "frames 2175: answered 2175"

# What cannot be sent is not, and all else is.
run --pcap "$work/lengths" --context "x=$image:sizes" --rules all
has "$work/counts" "kept 2175"
has "$work/counts" "frames made by handlers 2175"
has "$work/counts" "sent 2175"

# 100,000 messages that never end: there is room for all, and they grow old; or for some, and the
# others are counted.
bad flows "$work/flows"
printf 'set m { slmp\n end slmp.flags & end = end\n message ip.src, slmp.id }\n' > "$work/rules"
run --pcap "$work/flows" --image "$count" --rules "$work/rules" --messages 200000 --age 2000
has "$work/counts" "frames 100001:"
has "$work/counts" "too many messages 0"
has "$work/counts" "messages 100001: ended 1, aged out 100000"
run --pcap "$work/flows" --image "$count" --rules "$work/rules" --age 2000
has "$work/counts" "too many messages 95904"
has "$work/counts" "messages 4097: ended 1, aged out 4096"

# Rules that are empty, out of range, too many.
refused() # TEXT RULES
{
    printf '%b' "$2" > "$work/rules"
    if "$pinwheel" raw run --pcap "$work/lengths" --image "$count" --rules "$work/rules" \
        > "$work/text" 2>&1; then
        fail "accepted: $2"
    fi
    has "$work/text" "$1"
}
refused "rules:1" ''
refused "rules:1" 'set x { }'
refused "rules:1" 'set x { udp.dport = 65536 }'
refused "rules:1" 'set x { udp.dport = 9..8 }'
refused "rules:1" 'set x { at 9100 = 1 }'
refused "rules:1" 'set x { word 99999999999 mask 1 = 1 }'
refused "rules:1" 'set x { ip.src = 10.0.0.0/33 }'
refused "rules:1" 'set x { vlan 4096 }'
refused "rules:1" 'set x priority 99999999999 { all }'
refused "rules:65" "$(printf 'set s%d { udp }\\n' $(seq 65))"

# Images with wild headers.
printf 'set m { slmp }\n' > "$work/rules"
bad flows "$work/few"
head -c 2000 "$work/few" | head -c $((24 + 4 * 72)) > "$work/some"
bad images "$image" "$work" "$pinwheel" raw run --quiet --pcap "$work/some" --rules "$work/rules" ||
    fail "images"
