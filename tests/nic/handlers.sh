#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `pinwheel nic` on a process with handlers: HPUs, execution contexts, what handlers printed, HPU
# memory, and what changes. Usage: handlers.sh PINWHEEL SUBJECT
set -eu
pinwheel=$1 subject=$2
# shellcheck source=tests/nic/subject.sh
. "$(dirname "$0")/subject.sh"

begin
"$pinwheel" nic --json > "$work/json"
python3 - "$work/json" "${PINWHEEL_HPUS:-0}" "${PINWHEEL_HPU:-native}" <<'EOF2' || fail "wrong JSON: $(cat "$work/json")"
import json, sys
n = json.load(open(sys.argv[1]))["nics"][0]
threads = int(sys.argv[2])
assert n["hpu_threads"] == threads and len(n["hpus"]) == (threads or 64)
assert n["contexts_ever"] == 4
c = {x["number"]: x for x in n["contexts"]}
assert set(c) == {0, 1, 2, 3}, c
def has(x, **want):
    assert all(x[k] == v for k, v in want.items()), (x, want)
has(c[1], messages=5, headers=5, packets=15, completions=5, dropped_bytes=5 * 4096, faults=0,
    failed=0, match_bits=7, kind="mp", memory=32, hpu_mask=1, inactive=0, refused=0)
has(c[2], messages=1, headers=1, packets=0, completions=0, faults=1, match_bits=8)
has(c[3], messages=0, headers=0, inactive=1, match_bits=9)
has(c[0], messages=1, headers=0, completions=1)
for k in ("headers", "packets", "completions", "faults", "failed", "cycles", "core_cycles"):
    assert sum(x[k] for x in c.values()) == sum(h[k] for h in n["hpus"]), k
assert c[1]["cycles"] > 0
if sys.argv[3] == "rv32": # five messages, the same cycles each time
    assert n["core"] == "arm, uncalibrated" and n["core_mhz"] == 2500, n
    assert c[1]["core_cycles"] > 500 and c[1]["core_cycles"] % 5 == 0, c[1]
else:
    assert "core" not in n and c[1]["core_cycles"] == 0, c[1]
assert n["hpus"][0]["output"] == 5 * "message of 12288\n", n["hpus"][0]
assert n["hpus"][0]["printed"] == 5 * 17
EOF2

"$pinwheel" nic "$pid" > "$work/full"
grep -Eq '^ +1 +mp +0 +7 +5 +5 +15 +5 +[0-9]+ +0 +0 +20480 +0$' "$work/full" ||
    fail "the full text misses context 1: $(cat "$work/full")"
[ "${PINWHEEL_HPU:-native}" = native ] || grep -q 'as on RV32 cores *arm, uncalibrated, 2500 MHz$' "$work/full" ||
    fail "the full text misses the cores: $(cat "$work/full")"
grep -Eq '^ +3 +mp .* inactive$' "$work/full" || fail "context 3 is inactive: $(cat "$work/full")"
"$pinwheel" nic "$pid" --text > "$work/text"
[ "$(grep -c '^HPU 0: message of 12288$' "$work/text")" -eq 5 ] || fail "text: $(cat "$work/text")"

if "$pinwheel" nic "$pid" --memory 1 > "$work/memory" 2> "$work/e"; then
    grep -q '^00000000  05 00 00 00 00 00 00 00 61 20 6d 61 72 6b 20 74  |' "$work/memory" ||
        fail "memory: $(cat "$work/memory")"
    tail -n 1 "$work/memory" | grep -qx 00000020 || fail "memory: $(cat "$work/memory")"
else # some kernels let nobody look; then it says what to do
    grep -q ptrace_scope "$work/e" || fail "no memory: $(cat "$work/e")"
fi
! "$pinwheel" nic "$pid" --memory 4 > "$work/o" 2> "$work/e" || fail "a context that is gone"
grep -q "process $pid has no execution context 4" "$work/e" || fail "not told why: $(cat "$work/e")"

"$pinwheel" nic top --count 2 --interval 300 > "$work/top" &
top=$!
sleep 0.1
echo >&3
wait $top
n=0
until "$pinwheel" nic "$pid" | grep -Eq '^ +1 +mp +0 +7 +105 '; do
    n=$((n + 1))
    [ $n -lt 1000 ] || fail "100 more messages were not seen"
    sleep 0.01
done
grep -q 'program' "$work/top" || fail "top: $(cat "$work/top")"

for bad in '--text' '--memory 1' "$pid --memory 0" "$pid --memory x" "$pid --text --json" \
           "$pid --text --memory 1" 'top --text'; do
    status=0
    # shellcheck disable=SC2086  # words
    "$pinwheel" nic $bad > "$work/o" 2> "$work/e" || status=$?
    { [ $status -eq 2 ] && [ -s "$work/e" ]; } || fail "\"$bad\": status $status, $(cat "$work/e")"
done

exec 3>&-
wait "$pid" || fail "the subject failed"
pid=''
echo "nic, handlers: all right"
