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
    failed=0, match_bits=7, kind="mp", memory=32, hpu_mask=1, inactive=0, refused=0, unsent=0)
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
grep -Eq '^ +1 +5 +5 +15 +5 +[0-9]+ +0 +0 +20480 +0 +0$' "$work/full" ||
    fail "the full text misses context 1: $(cat "$work/full")"
[ "${PINWHEEL_HPU:-native}" = native ] || grep -q 'as on RV32 cores *arm, uncalibrated, 2500 MHz$' "$work/full" ||
    fail "the full text misses the cores: $(cat "$work/full")"
{ grep -Eq '^ +1 +mp +0 +7 +0 +1 +32$' "$work/full" && grep -Eq '^ +2 +mp +0 +8 +0 +all +[0-9]+$' "$work/full" &&
  grep -Eq '^ +3 +mp +0 +9 +0 +1 +32 +inactive$' "$work/full"; } ||
    fail "the contexts are not told: $(cat "$work/full")"
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

# Messages while top is between its two looks: of slow machines it may need more than one try.
lines=0
rate='^    context 1 '
until [ $lines -gt 0 ] && grep -q "$rate" "$work/top"; do
    [ $lines -lt 20 ] || fail "top: $(cat "$work/top")"
    "$pinwheel" nic top --count 1 --interval 1000 > "$work/top" &
    top=$!
    sleep 0.5
    echo >&3
    lines=$((lines + 1))
    wait $top
done
python3 - "$work/top" <<'EOF2' || fail "top: $(cat "$work/top")"
import re, sys
rows = {}
for line in open(sys.argv[1]):
    m = re.match(r"    (HPU \d+|context \d+|others) +(.*)", line)
    if m:
        cells = m[2].replace(" %", "").split()
        unit = lambda c: 0 if c == "-" else float(c.rstrip("kMGT")) * 1000 ** " kMGT".index(c[-1] if c[-1] in "kMGT" else " ")
        assert len(cells) == 11, line
        rows[m[1]] = dict(zip("messages packets calls cycles each busy faults failed dropped refused unsent".split(), map(unit, cells)))
def near(a, b):
    assert abs(a - b) <= 0.02 * max(a, b) + 1, (a, b, rows)
one, hpu = rows["context 1"], rows["HPU 0"]
assert one["messages"] > 0 and one["faults"] == one["refused"] == one["failed"] == 0, rows
assert abs(one["packets"] - 3 * one["messages"]) < 12 and abs(one["dropped"] - 4096 * one["messages"]) < 4 * 4096, rows
near(one["calls"] * one["each"], one["cycles"])
assert hpu["cycles"] >= 0.98 * one["cycles"], rows
if "context 2" in rows:
    assert rows["context 2"]["faults"] == rows["context 2"]["messages"] > 0, rows
EOF2
n=0
until "$pinwheel" nic "$pid" | grep -Eq "^ +1 +$((100 * lines + 5)) +"; do
    n=$((n + 1))
    [ $n -lt 1000 ] || fail "$((100 * lines)) more messages were not seen: $("$pinwheel" nic "$pid")"
    sleep 0.01
done

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
