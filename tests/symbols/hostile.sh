#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs of tests with hostile.c preloaded, which ends whom the library lets call the
# program's versions of what blocks, yields or waits.
# Usage: hostile.sh LIBRARY PINWHEEL JOB-CLIENT PROGRAM...
set -eu
library=$1
pinwheel=$2
client=$3
shift 3
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# passes COMMAND...: it does, and was watched.
passes() {
    if ! "$@" >"$said" 2>&1; then
        echo "with $library preloaded failed: $*" >&2
        tail -n 20 "$said" >&2
        exit 1
    fi
    grep -q '^hostile: watches$' "$said" || { echo "nobody watched: $*" >&2; exit 1; }
}

passes "$pinwheel" run -n 2 --env "LD_PRELOAD=$library" "$client" 2
for program; do
    passes env LD_PRELOAD="$library" "$program"
done
