#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check.sh PINWHEEL: `pinwheel raw check`, with the kernel where this user may ask it.
set -eu
pinwheel=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "check.sh: $*" >&2
    exit 1
}

"$pinwheel" raw check --prove 100000 --seed 7 > "$work/out" 2> "$work/err" || fail "$(cat "$work/err")"
grep -q "^100000 frames, .* no difference$" "$work/out" || fail "$(cat "$work/out")"
if grep -q "the kernel is not asked" "$work/err"; then
    echo "without CAP_BPF and CAP_NET_ADMIN: left out is the comparison with the kernel"
else
    # all but the longest frames
    grep -qE "; 9[0-9]{4} also in the kernel" "$work/out" || fail "$(cat "$work/out")"
fi

printf 'set ping { icmp.type = echo }\nset rest priority 1 { udp }\n' > "$work/rules"
"$pinwheel" raw check "$work/rules" --numbers --prove 20000 --no-kernel > "$work/out"
grep -q "^ 0 ping: priority 0, 6 conditions; each frame is a message$" "$work/out" ||
    fail "$(cat "$work/out")"
sed -n '/^set /,/^}/p' "$work/out" > "$work/numbers"
"$pinwheel" raw check "$work/numbers" --numbers --no-kernel | sed -n '/^set /,/^}/p' |
    cmp - "$work/numbers" || fail "the printed rules are others"

printf 'set ping {\n    icmp.typ = echo\n}\n' > "$work/rules"
if "$pinwheel" raw check "$work/rules" 2> "$work/err"; then
    fail "a wrong name is accepted"
fi
grep -q "rules:2: there is no protocol or field \"icmp.typ\"; did you mean icmp.type?" "$work/err" ||
    fail "$(cat "$work/err")"
for name in icmp-echo udp-echo slmp all; do
    "$pinwheel" raw check $name --prove 2000 --no-kernel > "$work/out" || fail "$name"
    grep -q "no difference" "$work/out" || fail "$name"
done
if "$pinwheel" raw check "$work/missing" 2> "$work/err"; then
    fail "a missing file is accepted"
fi
grep -q "missing: No such file" "$work/err" || fail "$(cat "$work/err")"
