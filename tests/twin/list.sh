#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# list.sh TWIN LIST MODULE...: which cases of several processes TWIN leaves out, counted by module and
# by what they do to their process, is what LIST says.
twin=$1
list=$2
shift 2
found=$(
    for module in "$@"; do
        name=$(basename "$module" _twin.so)
        case $name in
        portals_*) option=--list ;;
        *) option=-l ;;
        esac
        "$twin" "$module" "$option" | awk -v name="$name" '
            { cases++ }
            / # it / { sub(/.* # it /, ""); left[$0]++ }
            END {
                for (why in left) {
                    printf "%s: %d of %d: it %s\n", name, left[why], cases, why
                    out += left[why]
                }
                printf "%d %d\n", cases, out
            }'
    done | awk 'NF == 2 { cases += $1; out += $2; modules++; next }
                { print }
                END { printf "all: %d of %d in %d modules\n", out, cases, modules }' | sort
)
printf '%s\n' "$found" | diff "$list" - && exit 0
echo "$list does not say what the rows of the cases do (>)"
exit 1
