#!/bin/sh
# Counts the lines of C in src, tools and tests that are neither blank nor comments alone:
# tools/lines.sh [COMMIT] at a commit (default: HEAD), tools/lines.sh COMMIT OTHER what changed.
set -eu
cd "$(dirname "$0")/.."
count() { # COMMIT FOLDER
    git archive "$1" "$2" | tar -xO --wildcards '*.c' '*.h' |
        gcc -fpreprocessed -dD -E -P -x c - 2>/dev/null | grep -c '[^[:space:]]' || true
}
for folder in src tools tests; do
    was=$(count "${1:-HEAD}" "$folder")
    if [ $# -gt 1 ]; then
        is=$(count "$2" "$folder")
        printf '%-6s %6d -> %6d  %+d\n' "$folder" "$was" "$is" $((is - was))
    else
        printf '%-6s %6d\n' "$folder" "$was"
    fi
done
