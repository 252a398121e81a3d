#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# files.sh PINWHEEL KIND ICMP COUNT: handlers on the frames of capture files, which needs no
# privilege; ICMP and COUNT are images of examples/raw/icmp_echo.c and handlers/count.c, KIND is
# native or RV32.
set -eu
pinwheel=$1 kind=$2 icmp=$3 count=$4
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "files.sh: $*" >&2
    exit 1
}
has() # FILE TEXT
{
    grep -qF -- "$2" "$1" || fail "\"$2\" is not in: $(cat "$1")"
}
refused() # TEXT ARGUMENT...
{
    local text=$1
    shift
    if "$pinwheel" raw run "$@" > "$work/text" 2>&1; then
        fail "accepted: $*"
    fi
    has "$work/text" "$text"
}

# Each ping has its answer, byte by byte; what lies, is a fragment or has a tag has none.
python3 "$here/frames.py" make pings "$work/pings"
for round in 1 2; do
    "$pinwheel" raw run --pcap "$work/pings" --out "$work/answers$round" --image "$icmp" \
        --rules icmp-echo > "$work/counts" || fail "pings"
    python3 "$here/frames.py" check pings "$work/answers$round"
done
cmp "$work/answers1" "$work/answers2" || fail "equal files give other answers"
has "$work/counts" ": $kind"
has "$work/counts" "answered 12, kept 0, passed on 0"
has "$work/counts" "of a wrong length 2, not matched"

# Messages of several frames, of two senders, without an end, with handlers that stray.
python3 "$here/frames.py" make messages "$work/messages"
"$pinwheel" raw run --pcap "$work/messages" --out "$work/reports" --image "$count" --rules slmp \
    --budget 100000 > "$work/counts" 2> "$work/log" || fail "messages: $(cat "$work/log")"
python3 "$here/frames.py" check messages "$work/reports"
has "$work/counts" "frames 15: answered 0, kept 9, passed on 1"
has "$work/counts" "dropped: by handlers 3, faults 1, time-outs 1, failures 0, too many messages 0"
has "$work/counts" "messages 11: ended 9, aged out 2; frames made by handlers 9"
has "$work/log" "SEGV"
has "$work/log" "TIMEOUT"

# No more unfinished messages than are allowed: of four at once the first two have room.
"$pinwheel" raw run --pcap "$work/messages" --image "$count" --rules slmp --budget 100000 \
    --messages 2 > "$work/counts" 2> "$work/log"
has "$work/counts" "too many messages"
if grep -q "too many messages 0" "$work/counts"; then
    fail "$(cat "$work/counts")"
fi

# Two contexts, each with its own handlers, memory and counts.
printf 'set m context count { slmp\n end slmp.flags & end = end\n message ip.src, slmp.id }\n%s\n' \
    'set p context pass { icmp }' > "$work/rules"
cat "$work/messages" > "$work/both"
tail -c +25 "$work/pings" >> "$work/both"
"$pinwheel" raw run --pcap "$work/both" --rules "$work/rules" --budget 100000 \
    --context "count=$count,priority=2" --context "pass=$count:pass,share=1" > "$work/counts" \
    2> "$work/log" || fail "$(cat "$work/log")"
has "$work/counts" "context count: $kind"
has "$work/counts" "context pass: $kind"
has "$work/counts" "frames 15: answered 0, kept 9, passed on 1"

# What is wrong is said.
refused "there is no context \"pass\"" --pcap "$work/both" --rules "$work/rules" \
    --context "count=$count"
refused "none_payload" --pcap "$work/pings" --rules all --context "x=$count:none"
refused "No such file" --pcap "$work/pings" --rules all --image "$work/none"
refused "is no ELF file" --pcap "$work/pings" --rules all --image "$work/pings"
refused "No such file" --pcap "$work/none" --rules all --image "$icmp"
refused "--pcap" --pcap "$work/rules" --rules all --image "$icmp"
refused "--tap NAME or --pcap FILE" --rules all --image "$icmp"
refused "there is no interface pwnone" --iface pwnone --rules all --image "$icmp"
head -c 90 "$work/pings" > "$work/torn"
refused "$work/torn" --pcap "$work/torn" --rules all --image "$icmp"
