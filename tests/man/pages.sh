#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual pages against what they describe. The public headers, the table of
# options and the built command are the truth; nothing is known here twice.
#
#   headers ── functions ───► one page each, no other page, prototype, <header.h>
#           ── PTL_ names ──► none but these in a page; ERRORS: return codes only
#   pages   ── examples ────► compile without a warning and call the function
#           ── references ──► to pages that exist
#           ── mandoc ──────► nothing to remark, down to style
#   table of options ───────► portals4(7) has each variable, default and bounds
#   pinwheel help ──────────► pinwheel(1) has each subcommand and option
#
# An example of a page in section 3 or 7 is the text of its displays under
# EXAMPLES, taken as one C source behind the #include lines of SYNOPSIS.
# Usage: pages.sh SOURCE_FOLDER CC PINWHEEL
set -eu
export LC_ALL=C
source=$1 cc=$2 pinwheel=$3
command -v mandoc > /dev/null || { echo "no mandoc: tools/packages.sh test installs it"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
man=$source/man
failed=0

fail() {
    echo "$*"
    failed=1
}

# section FILE HEADING: the lines under a heading
section() {
    awk -v want="$2" '/^\.Sh / { on = substr($0, 5) == want; next } on' "$1"
}

# One prototype a line, spelt in one way: no blank that C does not need.
normal_form() {
    sed -E 's/[[:blank:]]+/ /g; s/ ?([(),*]) ?/\1/g; s/^ //; s/ ?;.*$//' | sort
}

prototypes_of_header() {
    awk '/^(PTL|PINWHEEL)_EXPORT / { on = 1; sub(/^[A-Z]+_EXPORT /, "") }
         on { text = text " " $0 }
         on && /;/ { print text; text = ""; on = 0 }' "$1" | normal_form
}

prototypes_of_page() {
    section "$1" SYNOPSIS | awk '
        /^\.Ft / { type = substr($0, 5); gsub(/"/, "", type) }
        /^\.Fn / { print type " " $2 "(" $3 ")" }
        /^\.Fo / { text = type " " $2 "("; comma = "" }
        /^\.Fa / { sub(/^\.Fa "?/, ""); sub(/"$/, ""); text = text comma $0; comma = "," }
        /^\.Fc/  { print text ")" }' | normal_form
}

# The characters that a page spells in roff, back to C.
example() {
    section "$1" EXAMPLES |
        awk '/^\.Bd / { on = 1; next } /^\.Ed/ { on = 0; print "" } on' |
        sed -e 's/^\\&//' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(ha/^/g' -e 's/\\(ti/~/g' \
            -e 's/\\(ga/`/g' -e 's/\\e/\\/g'
}

check_functions() {
    for header in "$source"/include/*.h; do
        prototypes_of_header "$header" | while read -r prototype; do
            name=${prototype%%(*}
            name=${name##*[ *]}
            echo "$name $(basename "$header") $prototype"
        done
    done | sort > "$work/functions"
    [ -s "$work/functions" ] || fail "no function found in $source/include"
    cut -d' ' -f1 "$work/functions" > "$work/names"
    for page in "$man"/man3/*.3; do basename "$page" .3; done | sort > "$work/pages"
    for name in $(comm -23 "$work/names" "$work/pages"); do
        fail "man3/$name.3: missing, $name is a function of the public headers"
    done
    for name in $(comm -13 "$work/names" "$work/pages"); do
        fail "man3/$name.3: no public header has a function $name"
    done
}

check_function_page() { # NAME HEADER PROTOTYPE
    page=$man/man3/$1.3
    [ -e "$page" ] || return 0
    [ "$(prototypes_of_page "$page")" = "$3" ] ||
        fail "man3/$1.3: SYNOPSIS has '$(prototypes_of_page "$page")', $2 has '$3'"
    section "$page" SYNOPSIS | grep -qx "\.In $2" || fail "man3/$1.3: SYNOPSIS lacks .In $2"
    grep -qx "\.Nm $1" "$page" || fail "man3/$1.3: NAME is not $1"
    for heading in DESCRIPTION EXAMPLES 'SEE ALSO' STANDARDS; do
        [ -n "$(section "$page" "$heading")" ] || fail "man3/$1.3: nothing under $heading"
    done
    case $3 in
    void*) ;;
    *) [ -n "$(section "$page" 'RETURN VALUES')" ] || fail "man3/$1.3: no RETURN VALUES" ;;
    esac
    example "$page" | grep -q "\<$1\>" || fail "man3/$1.3: the example does not use $1"
}

check_example() { # PAGE
    { section "$1" SYNOPSIS | sed -n 's/^\.In \(.*\)/#include <\1>/p'; example "$1"; } > "$work/e.c"
    "$cc" -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -I"$source/include" \
        "$work/e.c" > "$work/e.log" 2>&1 || fail "$(basename "$1"): the example does not compile:
$(cat "$work/e.log")"
}

# The names that the headers define: enumerators and macros.
known_names() {
    cat "$source"/include/*.h | grep -oE '\<(PTL|PINWHEEL)_[A-Z0-9_]+\>' | sort -u
}

return_codes() {
    sed -n '/^enum ptl_retvals/,/^}/p' "$source/include/portals4.h" |
        grep -oE '^ +PTL_[A-Z_]+' | tr -d ' '
    echo '#include <errno.h>' | "$cc" -dM -E - | sed -nE 's/^#define (E[A-Z0-9]+) .*/\1/p'
}

check_names() { # PAGE
    grep -oE '\<PTL_[A-Z0-9_]*[A-Z0-9]\>' "$1" | sort -u > "$work/used" || true
    for name in $(comm -23 "$work/used" "$work/known"); do
        fail "$(basename "$1"): no public header has $name"
    done
    section "$1" ERRORS | sed -n 's/^\.It Bq Er //p' | sort > "$work/used"
    for code in $(comm -23 "$work/used" "$work/codes"); do
        fail "$(basename "$1"): $code is no return code"
    done
    [ "$(uniq -d < "$work/used")" = '' ] || fail "$(basename "$1"): ERRORS has a code twice"
    ! section "$1" ERRORS | grep '^\.It' | grep -qv '^\.It Bq Er ' ||
        fail "$(basename "$1"): an item of ERRORS is not '.It Bq Er CODE'"
}

check_references() { # PAGE
    sed -nE 's/^\.Xr ([^ ]+) ([0-9]).*/\1 \2/p' "$1" | sort -u | while read -r name number; do
        [ -e "$man/man$number/$name.$number" ] || echo "$(basename "$1"): no page $name($number)"
    done > "$work/dangling"
    [ ! -s "$work/dangling" ] || fail "$(cat "$work/dangling")"
}

# What mandoc would say of references is said above, of the pages in this tree.
check_mandoc() { # PAGE
    mandoc -T lint -W style "$1" 2>&1 | grep -v 'referenced manual not found' > "$work/lint" || true
    [ ! -s "$work/lint" ] || fail "$(cat "$work/lint")"
    mandoc -T utf8 -W error "$1" > "$work/text" 2>&1 || fail "$(basename "$1"): does not render"
    wide=$(mandoc -T ascii "$1" | sed "s/.$(printf '\b')//g" | grep -E '^.{81}' || true)
    [ -z "$wide" ] || fail "$(basename "$1"): wider than 80 columns: $wide"
    case $(sed -n 's/^\.Dt //p' "$1") in
    "$(basename "$1" | sed -E 's/\.([0-9])$/ \1/' | tr '[:lower:]' '[:upper:]')") ;;
    *) fail "$(basename "$1"): .Dt names another page" ;;
    esac
}

# subsection FILE TITLE: the lines under it
subsection() {
    awk -v want="$2" '/^\.S[hs] / { on = $1 == ".Ss" && substr($0, 5) == want; next } on' "$1"
}

# item FILE TAG: the text under one item of a list, as one line
item() {
    awk -v want=".It $2" '/^\.(It|El)/ { on = $0 == want; next } on' "$1" | tr '\n' ' '
}

check_options() {
    page=$man/man7/portals4.7
    "$pinwheel" info | sed -n '/^options/,$p' | grep -E '^ +PINWHEEL_' > "$work/options"
    [ -s "$work/options" ] || fail "pinwheel info prints no options"
    while read -r name default rest; do
        bounds=$(echo "$rest" | sed -nE 's/.*\[(.*)\].*/\1/p')
        text=$(item "$page" "Ev $name")
        [ "$default" != '(empty)' ] || default=empty
        for words in "Default $default" "$bounds"; do
            case $text in *"$words"*) ;; *) fail "portals4.7: $name lacks '$words'" ;; esac
        done
    done < "$work/options"
    awk '{ print $1 }' "$work/options" | sort > "$work/known_options"
    grep -oE '\<PINWHEEL_[A-Z_]+' "$page" | sort -u > "$work/named"
    for name in $(comm -13 "$work/known_options" "$work/named"); do
        fail "portals4.7: $name is not in the table of options"
    done
}

# subcommands [SUBCOMMAND]: what its help lists
subcommands() {
    "$pinwheel" "$@" --help | sed -nE '/^subcommands:/,/^$/ s/^  ([a-z]+) .*/\1/p'
}

# Its options in its help and on the page are the same.
check_subcommand() { # SUBCOMMAND [SUBCOMMAND]
    "$pinwheel" "$@" --help | sed -nE 's/^  (-[-a-zA-Z]+).*/\1/p' | sort > "$work/help"
    subsection "$man/man1/pinwheel.1" "pinwheel $*" > "$work/on_page"
    [ -s "$work/on_page" ] || fail "pinwheel.1: nothing on 'pinwheel $*'"
    grep '^\.It Fl ' "$work/on_page" | grep -oE 'Fl [^ ]+' | sed 's/^Fl /-/' | sort > "$work/described"
    [ -s "$work/help" ] || fail "pinwheel $* --help lists no options"
    for option in $(comm -23 "$work/help" "$work/described"); do
        fail "pinwheel.1: 'pinwheel $*' lacks $option"
    done
    for option in $(comm -13 "$work/help" "$work/described"); do
        fail "pinwheel.1: 'pinwheel $*' has no option $option"
    done
}

check_command() {
    [ -n "$(subcommands)" ] || fail "pinwheel --help lists no subcommands"
    for first in $(subcommands); do
        [ "$first" != help ] || continue
        if [ -z "$(subcommands "$first")" ]; then
            check_subcommand "$first"
        fi
        for second in $(subcommands "$first"); do
            check_subcommand "$first" "$second"
        done
    done
}

check_functions
known_names > "$work/known"
return_codes | sort > "$work/codes"
while read -r name header prototype; do
    check_function_page "$name" "$header" "$prototype"
done < "$work/functions"
count=0
for page in "$man"/man[1-9]/*; do
    check_mandoc "$page"
    check_names "$page"
    check_references "$page"
    case $page in *.[37]) check_example "$page" ;; esac
    count=$((count + 1))
done
check_options
check_command
[ "$failed" -eq 0 ] || exit 1
echo "$count pages agree with the headers, the options and the command"
