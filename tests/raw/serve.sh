#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# serve.sh PINWHEEL ICMP UDP SCRIBBLE SERVED: an owner of a tap and its users, in a user namespace: no
# privilege is needed but what every user has there. Users who have frames, are refused, write all
# over their rings, are killed, stopped; the owner killed and begun again. Skipped (77), and says so,
# where user namespaces or /dev/net/tun are not for this user.
# shellcheck disable=SC2154  # user() assigns the number of a process to its name
set -eu
if [ "${6:-}" != inside ]; then
    unshare -Urn true 2> /dev/null || { echo "left out: user namespaces are not allowed"; exit 77; }
    { : <> /dev/net/tun; } 2> /dev/null || { echo "left out: /dev/net/tun is not allowed"; exit 77; }
    exec unshare -Urn "$0" "$1" "$2" "$3" "$4" "$5" inside
fi
pinwheel=$1 icmp=$2 udp=$3 scribble=$4 served=$5
here=$(dirname "$0")
work=$(mktemp -d)
socket=$work/socket
owner=
clean()
{
    # shellcheck disable=SC2046  # numbers of processes
    kill -9 $(jobs -p) 2> /dev/null || true
    rm -rf "$work"
}
trap clean EXIT
fail()
{
    echo "serve.sh: $*" >&2
    tail -n 30 "$work"/*.log "$work"/*.out >&2
    exit 1
}
until_true() # COMMAND...: waits until it succeeds, for half a minute at most
{
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.05
    done
    fail "has not come true: $*"
}
said() # NAME TEXT: waits until NAME has said it
{
    until_true grep -qF -- "$2" "$work/$1.log"
}
times() # NAME TEXT COUNT: it has said that so often
{
    [ "$(grep -cF -- "$2" "$work/$1.log")" -ge "$3" ]
}
own() # ARGUMENT...: begins the owner, and makes the tap's far end reachable
{
    "$pinwheel" raw serve --tap tap0 --policy "$work/policy" --socket "$socket" "$@" \
        2> "$work/owner.log" &
    owner=$!
    said owner "users connect to"
    # room for a whole flood: what the kernel drops before the owner reads it would be anybody's
    ip link set tap0 txqueuelen 20000
    ip link set tap0 up
    ip addr add 10.77.0.1/24 dev tap0
    ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev tap0
}
user() # NAME RULES IMAGE ARGUMENT...: begins a user, and waits until he has his context
{
    local name=$1 rules=$2 image=$3
    shift 3
    echo "$rules" > "$work/$name.rules"
    "$pinwheel" raw run --serve "$socket" --image "$image" --rules "$work/$name.rules" "$@" \
        > "$work/$name.out" 2> "$work/$name.log" &
    eval "$name=$!"
    said "$name" "a queue of"
}
refused() # TEXT RULES [ARGUMENT...]
{
    local text=$1
    echo "$2" > "$work/refused.rules"
    shift 2
    if "$pinwheel" raw run --serve "$socket" --image "$udp" --rules "$work/refused.rules" "$@" \
        2> "$work/refused.log"; then
        fail "accepted: $(cat "$work/refused.rules")"
    fi
    grep -qF -- "$text" "$work/refused.log" || fail "\"$text\" is not said"
}
echoes() # PORT COUNT: each datagram is answered, byte by byte
{
    python3 "$here/frames.py" echoes 10.77.0.2 "$1" "$2" || fail "echoes $*"
}
cat > "$work/policy" << 'EOF'
# root of this namespace is all users that there are
allow user 0 contexts 6 ring 64 share 16 {
    udp.dport = 5000..5999
    send udp.sport = 5000..5999
}
allow user 0 contexts 1 { icmp.type = echo; send icmp.type = 0 }
allow user 0 contexts 1 { udp.dport = 6000 }
EOF
export LC_ALL=C

# Two users at once have their frames and answer them; the owner has no capability.
own --patience 8000
for kind in Eff Prm Inh Bnd Amb; do
    grep -q "Cap$kind:	0000000000000000" "/proc/$owner/status" || fail "the owner has Cap$kind"
done
user alice 'set a { udp.dport = 5000 }' "$udp" --again
user carol 'set c { icmp.type = echo }' "$icmp"
echoes 5000 500
python3 "$here/frames.py" pings 10.77.0.2 200 56 || fail "pings"

# So has a program, by pinwheel_raw.h.
"$served" "$socket" "$udp" 'set p { udp.dport = 5007 }' > "$work/program.out" 2> "$work/program.log" &
program=$!
said program "a queue of"
echoes 5007 100
if "$served" "$socket" "$udp" 'set p { udp.dport = 80 }' 2> "$work/refused.log"; then
    fail "a program outside of the policy"
fi
grep -qF "open: -13 (Permission denied): set p is outside of what line 2" "$work/refused.log" ||
    fail "what the program was told"

# Both are seen from outside, and so is the owner.
seen() # PROCESS TEXT
{
    "$pinwheel" nic "$1" 2>&1 | grep -qE -- "$2"
}
until_true seen "$owner" "tap0 .*raw serve +0 user 0: $alice +1 +500 +500 +500 +0 +0 +0 +0"
until_true seen "$alice" "raw run +0 \\(the only one\\) +1 +500 +500 +500 +0 +0 +0 +0"
"$pinwheel" nic | grep -q "raw serve" || fail "the owner is not among all"
"$pinwheel" nic --json | python3 -c '
import json, sys
pages = {p["process"]: p for p in json.load(sys.stdin)["frames"]}
owner, carol = pages[int(sys.argv[1])], int(sys.argv[2])
assert owner["command"] == "serve" and owner["source"] == "tap0", owner
assert [c["handled"] for c in owner["contexts"] if c["user_process"] == carol] == [200], owner
' "$owner" "$carol" || fail "JSON"

# What the policy does not allow, and what is wrong.
refused "set x is outside of what line 2 of the policy allows" 'set x { tcp.dport = 5000 }'
refused "set x is outside of what line" 'set x { udp.dport = 7 }'
refused "a ring of 128 slots is asked for, line 2 of the policy allows 64" \
    'set x { udp.dport = 5009 }' --ring 128
refused "user 0 has all contexts that line 6 of the policy allows, 1" 'set x { icmp.type = echo }'
[ "$(grep -c "by line" "$work/owner.log")" -eq 3 ] || fail "contexts"

# A user who may not send: his answers go nowhere.
user mute 'set m { udp.dport = 6000 }' "$udp" --frames 20
python3 "$here/frames.py" flood 10.77.0.2 20 6000
wait "$mute" || fail "the end of mute"
grep -q "no room to send 20" "$work/mute.out" || fail "mute has sent"

# One who writes all over his ring, while frames arrive for him: the others have theirs.
"$scribble" "$socket" 'set s { udp.dport = 5001 }' 7 > "$work/scribble.out" 2> "$work/scribble.log" &
scribbler=$!
until_true grep -q scribbling "$work/scribble.out"
python3 "$here/frames.py" flood 10.77.0.2 6000 5001 &
flood=$!
echoes 5000 2000
python3 "$here/frames.py" pings 10.77.0.2 200 56 || fail "pings beside one who scribbles"
wait $flood
kill -0 $scribbler || fail "the one who scribbles has gone"
kill -9 $scribbler
said owner "process $scribbler has gone; his rules go"
grep -qE "process $scribbler: frames.*nonsense [1-9]" "$work/owner.log" || fail "no nonsense"

# Killed: his rules go, he is not seen any more, and somebody else may have his frames; the others stay.
user bob 'set b { udp.dport = 5002 }' "$udp"
echoes 5002 50
kill -9 "$bob"
said owner "process $bob has gone; his rules go"
echoes 5000 50
! seen "$bob" "raw run" || fail "one who was killed is still seen"
user bert 'set b { udp.dport = 5002 }' "$udp"
echoes 5002 50

# Stopped: what finds his ring full is dropped and counted there, later his rules go; the others
# stay. When he goes on he is told.
kill -STOP "$bert"
python3 "$here/frames.py" flood 10.77.0.2 200 5002
echoes 5000 300
said owner "process $bert has gone: no frame was taken for"
echoes 5000 50
kill -CONT "$bert"
! wait "$bert" || fail "bert ends as if nothing had been"
grep -q "the owner has ended the context: no frame was taken" "$work/bert.log" || fail "bert"
grep -q "process $bert.*full [1-9]" "$work/owner.log" || fail "his drops are not counted"

# Other rules of a user, by SIGHUP; wrong ones change nothing.
echo 'set a { udp.dport = 5005 }' > "$work/alice.rules"
kill -HUP "$alice"
said alice "are in place"
echoes 5005 50
echo 'set a { udp.dport = 80 }' > "$work/alice.rules"
kill -HUP "$alice"
said alice "the rules before stay"
echoes 5005 50

# The owner is killed: users are told, the one who waits is taken in by the next owner.
kill -9 "$owner"
wait "$owner" || true
! wait "$carol" || fail "carol ends as if nothing had been"
grep -q "the owner of the interface has gone, and the kernel has its frames" "$work/carol.log" ||
    fail "carol"
said alice "the owner of the interface has gone"
said program "turn: -104 (Connection reset by peer): $socket: the owner of the interface has gone"
refused "there is no \`pinwheel raw serve --socket\` of this name" 'set x { udp.dport = 5009 }'
own
until_true times alice "a queue of" 2
echoes 5005 100
until_true times program "a queue of" 2
echoes 5007 100
kill "$program"
wait "$program" || fail "the program's end"
grep -q "answered 200" "$work/program.out" || fail "its counts"

# A second owner is refused; the end of the first is told.
if "$pinwheel" raw serve --tap tap9 --policy "$work/policy" --socket "$socket" \
    2> "$work/second.log"; then
    fail "two owners at one socket"
fi
grep -q "another owner has this socket" "$work/second.log" || fail "second"
echoes 5005 10
user dora 'set d { udp.dport = 5003 }' "$udp"
kill "$owner"
wait "$owner" || fail "the owner's end"
! wait "$dora" || fail "dora ends as if nothing had been"
grep -q "the owner has ended the context: the owner of the interface ends" "$work/dora.log" ||
    fail "dora"
[ ! -e "$socket" ] || fail "the socket is still there"
kill "$alice"
wait "$alice" || fail "alice's end"
