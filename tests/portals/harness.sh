#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# harness.sh PROGRAM TWIN MODULE: runs the cases of harness.c and checks that each bad one is
# reported with what went wrong, and that each good one behind it passes; then the pairs in TWIN.
program=$1
twin=$2
module=$3
failed=0
out=$(SUITE_TIMEOUT_S=2 "$program")
status=$?

check() { # check PATTERN: a line of the output matches it
    if ! printf '%s\n' "$out" | grep -Eq -- "$1"; then
        echo "no line matches: $1"
        failed=1
    fi
}

[ $status -eq 1 ] || { echo "exit status $status, not 1"; failed=1; }
for name in number code no_event event type silence counter memory crash exit hang tidy child; do
    check "^not ok [0-9]+ bad_$name\\.(ml|np)(\\.self|\\.pair|): 3\\.1: this rule is broken"
done
if printf '%s\n' "$out" | grep -Eq '^ok [0-9]+ bad_' &&
   printf '%s\n' "$out" | grep -E '^ok [0-9]+ bad_' | grep -vq ' # SKIP '; then
    echo "a bad case passes"
    failed=1
fi
if printf '%s\n' "$out" | grep -Eq '^not ok [0-9]+ good_'; then
    echo "a good case fails"
    failed=1
fi
check '^    harness\.c:[0-9]+: rank 1: byte \+ 1: expected 2 \(0x2\), found 1 \(0x1\)'
check 'harness\.c:[0-9]+: rank 0: PtlNIFini\(.*\): expected PTL_OK, found PTL_ARG_INVALID'
check 'harness\.c:[0-9]+: rank 0: expected event PUT/OK, found none in time'
check 'harness\.c:[0-9]+: rank 0: event: user_ptr expected .* found LINK/OK'
check 'harness\.c:[0-9]+: rank 0: event: expected PUT/OK; found LINK/OK'
check 'harness\.c:[0-9]+: rank 0: expected no event, found LINK/OK'
check 'harness\.c:[0-9]+: rank 0: counter: expected \{1, 0\}, found \{2, 0\}'
check 'harness\.c:[0-9]+: rank 0: byte 3 of 4 of buffer: expected 0x01, found 0x02'
check 'rank 1 died of signal 10'
check 'rank 1 left in the middle, with exit status 0'
check 'not finished after 2000 ms'
check 'rank [01] was still at work, last seen at harness\.c:[0-9]+'
check 'cannot be freed: PTL_PT_IN_USE'
check 'harness\.c:[0-9]+: rank 0: byte \+ 1: expected 3 \(0x3\), found 1 \(0x1\)'
check '^ok [0-9]+ bad_skip\.(ml|np)\.pair: .* # SKIP not here'
check '^[0-9]+ ok, [0-9]+ not ok, 3 skipped'
"$program" no_such_case >/dev/null 2>&1
[ $? -eq 2 ] || { echo "a case that does not exist: exit status is not 2"; failed=1; }
n=$("$program" 'good_behind_c*.self' | grep -c '^ok ')
[ "$n" -eq 4 ] || { echo "a pattern chose $n cases, not 4"; failed=1; }
"$program" --list | grep -q '^bad_code\.ml\.self: 3\.1: this rule is broken$' || failed=1

out=$(SUITE_TIMEOUT_S=2 "$twin" "$module")
[ $? -eq 1 ] || { echo "TWIN: exit status is not 1"; failed=1; }
for name in number code event silence crash exit hang tidy; do
    check "^not ok [0-9]+ bad_$name\\.(ml|np)\\.pair: 3\\.1: this rule is broken"
done
if printf '%s\n' "$out" | grep -Eq '^not ok [0-9]+ (good_|rank_)|\.self:'; then
    echo "TWIN: a good case fails, or one runs that is no pair"
    failed=1
fi
check 'harness\.c:[0-9]+: rank 1: byte \+ 1: expected 2 \(0x2\), found 1 \(0x1\)'
check 'rank 1 calls raise\(\), which acts on its whole process: its row must say \.own_process'
check 'rank 1 calls exit\(\), which acts'
check 'rank [01] was still at work, last seen at harness\.c:[0-9]+'
check '^ok [0-9]+ bad_skip\.(ml|np)\.pair: .* # SKIP not here'
check '^not ok [0-9]+ whole_not_said\.'
check 'rank 1 calls setenv\(\), which acts on its whole process'
check '^ok [0-9]+ whole_said\.ml\.pair: .* # SKIP it changes the environment'
check '^not ok [0-9]+ whole_nothing\.'
check 'its row says that it forks, but it calls nothing of that kind'
exit $failed
