#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `pinwheel nic` looks at a process that is there, at one that works, one that was
# killed and one that has ended, and is asked what makes no sense.
# Usage: nic.sh PINWHEEL SUBJECT
set -eu
pinwheel=$1 subject=$2
# shellcheck source=tests/nic/subject.sh
. "$(dirname "$0")/subject.sh"

"$pinwheel" nic | grep -q '^no NIC' || fail "a NIC where there is none"
begin
"$pinwheel" nic --json > "$work/json"
python3 - "$work/json" "$pid" <<'EOF' || fail "wrong JSON: $(cat "$work/json")"
import json, sys
nics = json.load(open(sys.argv[1]))["nics"]
assert len(nics) == 1
n = nics[0]
assert n["process"] == int(sys.argv[2]) and n["program"] == "nic_subject" and n["index"] == 0
moved = {"puts": 4, "gets": 1, "atomics": 1, "fetches": 0, "bytes": 338}
assert n["sent"] == moved and n["received"] == moved, (n["sent"], n["received"])
assert n["interfaces"] == [{"kind": "mp", "dropped": 1, "permission_violations": 0,
                            "operation_violations": 0}]
assert n["malformed"] == n["events_lost"] == n["waited"] == n["closed"] == 0
assert n["opened"] > 1700000000 and n["senders_most"] > 0
EOF
"$pinwheel" nic | grep -q "$pid .*nic_subject .* mp " || fail "the table misses the subject"
"$pinwheel" nic "$pid" | grep -q '4 puts, 1 gets, 1 atomics, 0 fetches, 338 bytes' ||
    fail "the full text misses the movements"

"$pinwheel" nic top --count 2 --interval 300 > "$work/top" &
top=$!
sleep 0.1
echo >&3
wait $top
grep -c "$pid .*nic_subject" "$work/top" | grep -qx 2 || fail "top: $(cat "$work/top")"
n=0
until "$pinwheel" nic "$pid" | grep -q '5 puts, .* 1338 bytes'; do
    n=$((n + 1))
    [ $n -lt 500 ] || fail "one more put was not seen"
    sleep 0.01
done

kill -9 "$pid"
wait "$pid" 2>/dev/null || true
exec 3>&-
"$pinwheel" nic | grep -q '^no NIC' || fail "a dead process has a NIC"
! "$pinwheel" nic "$pid" > "$work/o" 2> "$work/e" || fail "a dead process can be shown"
grep -q "process $pid has no NIC" "$work/e" || fail "not told why: $(cat "$work/e")"

begin
exec 3>&-
wait "$pid" || fail "the subject failed"
pid=''
"$pinwheel" nic | grep -q '^no NIC' || fail "an ended process has a NIC"

for bad in 0 -1 x '1 2' 'top top' 'top --json' '--count 3' 'top --count 0' 'top --interval x'; do
    status=0
    # shellcheck disable=SC2086  # words
    "$pinwheel" nic $bad > "$work/o" 2> "$work/e" || status=$?
    { [ $status -eq 2 ] && [ -s "$work/e" ]; } || fail "\"$bad\": status $status, $(cat "$work/e")"
done
status=0
PINWHEEL_SHM_DIR=/nowhere "$pinwheel" nic 2> "$work/e" || status=$?
{ [ $status -eq 1 ] && grep -q /nowhere "$work/e"; } || fail "no folder: $status, $(cat "$work/e")"
echo "nic: all right"
