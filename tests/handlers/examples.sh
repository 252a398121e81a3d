#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The examples of the handler library as a user calls them: with inputs of the user's, whose
# results are known, and with such as make no sense, which gives a message and a status.
# Usage: examples.sh PINWHEEL FOLDER
set -eu
pinwheel=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run STATUS TEXT RANKS NAME [ARGUMENT...]: it ends so, and says that.
run() {
    want=$1 text=$2 ranks=$3 name=$4 status=0
    shift 4
    "$pinwheel" run -n "$ranks" --timeout 50 "$folder/$name" "$@" >"$work/out" 2>&1 || status=$?
    if [ $status != "$want" ] || ! grep -q -e "$text" "$work/out"; then
        echo "examples.sh: $name $*: status $status, not $want, or no \"$text\":" >&2
        cat "$work/out" >&2
        exit 1
    fi
}

printf 'a b 4\nb c 4\n# a comment\na c 9\nd e\n' >"$work/edges"
run 0 ' c  *8 by b$' 3 graph "$work/edges" a
run 0 '3 of 5 vertices reached, 0 wrong' 2 graph "$work/edges" c
printf 'name,mass\r\nMercury,0.06\r\nVenus,0.82\r\nEarth,1\r\nMoon,unknown\r\n' >"$work/planets"
run 0 '^  Venus$' 2 condread "$work/planets" mass ge 0.82 name
run 0 '3 of 4 rows, 0 wrong' 2 condread "$work/planets" name ne Venus mass
printf 'Ada,1\nGrace,2\nEdsger,3\n' >"$work/book"
run 0 '^3 names, 0 wrong' 2 kvstore "$work/book"
printf '##\n#\n' >"$work/picture"
run 0 '^2 pictures of 2 x 2 placed, 0 dots wrong' 2 strided "$work/picture"
printf '0,5,3000,W,0.1\n1,5,512,w,0.2\n0,5,3000,R,0.3\n' >"$work/trace"
run 0 '^2 writes, 1 reads, 0 of them wrong' 5 raid 2 "$work/trace"
run 0 '^2 of 4 servers lost: .* 0 wrong' 5 raid 2 "$work/trace"
yes 'to be, or not To Be' | head -n 5000 >"$work/text"
run 0 '10000 times "be"' 2 textscan "$work/text" be
run 0 '^1 bytes, streamed: .* 0 wrong' 2 pingpong 1
run 0 '^1 of 1 seats sold' 2 txlog 1
run 0 '^rank 1 has heard' 4 ftbcast 3 2
run 0 '^1 numbers .* 0 in the wrong place' 2 rendezvous 1
run 0 '^rank 0: 11 lists read, 0 of them wrong' 3 chain 2

for name in accumulate allreduce chain condread ftbcast graph kvstore pspin raid rendezvous strided txlog; do
    run 2 "^usage: pinwheel run -n N $name" 3 $name a b c
done
run 2 '^usage: .* 1 to 16777216' 2 pingpong 0
run 2 '^usage: .*2 to 100000' 2 chain 1
run 2 '^usage: .*FILE WORD' 2 textscan "$work/text"
run 1 'textscan: 3 ranks are too many: pinwheel run -n 2 textscan' 3 textscan
run 1 'kvstore: 1 ranks are too few: pinwheel run -n 2 kvstore' 1 kvstore
for name in 'kvstore FILE' 'strided FILE' 'graph FILE a' 'condread FILE a lt 1 b' 'textscan FILE a'; do
    # shellcheck disable=SC2086,SC2046  # words
    run 1 'nowhere: No such file' 2 $(echo "$name" | sed "s|FILE|$work/nowhere|")
done
run 1 'nowhere: No such file' 4 raid 1 "$work/nowhere"
run 1 'no edge leads from or to "z"' 2 graph "$work/edges" z
run 1 'not an edge, or one too many: Ada,1' 2 graph "$work/book" z
run 1 'there is no column "age"' 2 condread "$work/planets" age lt 1 name
run 1 'there is no comparison "<"' 2 condread "$work/planets" mass '<' 1 name
run 1 'line 1 of the trace is not' 4 raid 1 "$work/edges"
run 1 'line 1 is not NAME,NUMBER' 2 kvstore "$work/edges"
run 1 'at most 2 may be dead' 4 ftbcast 1 2 3
run 1 'it has a byte that is in no word' 2 textscan "$work/text" 'two words'
export PINWHEEL_PACKET_SIZE=64
for name in chain condread kvstore; do
    run 1 "$name: packets of 64 bytes are too short for its handlers: set PINWHEEL_PACKET_SIZE to" 2 $name
done
echo "examples: all right"
