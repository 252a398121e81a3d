#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # the ranks expand it
# `pinwheel run --hosts` through ssh itself, on two hosts made of network namespaces, each with a
# server of its own and keys made for this run: sshd.sh PINWHEEL HELLO_PUT; see README.md.
pinwheel=$1
hello=$2
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || skip "there is no sshd (package openssh-server)"
command -v ssh >/dev/null || skip "there is no ssh (package openssh-client)"
[ "$(id -u)" = 0 ] || skip "sshd is started as root only"
net_make 2
port=2222
# Not in a folder in memory: sshd wants to know that nobody else could have written there.
safe=$(mktemp -d "$HOME/.pinwheel-test-XXXXXX") || skip "no folder can be made in $HOME"
trap 'rm -rf "$safe"; clean_up' EXIT
mkdir -p /run/sshd

# The server, and us as the only one it lets in.
ssh-keygen -q -t ed25519 -N '' -f "$safe/server"
ssh-keygen -q -t ed25519 -N '' -f "$safe/client"
cp "$safe/client.pub" "$safe/allowed"
for h in 1 2; do
    echo "[10.77.0.$h]:$port $(cat "$safe/server.pub")"
done >"$safe/known"
cat >"$safe/sshd_config" <<END
Port $port
HostKey $safe/server
AuthorizedKeysFile $safe/allowed
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
AcceptEnv none
PidFile none
END
shell="ssh -T -x -F none -o BatchMode=yes -o ConnectTimeout=15 -o IdentitiesOnly=yes"
known="-o UserKnownHostsFile=$safe/known"
right="$shell $known -p $port -i $safe/client"
for h in 1 2; do
    net_in "$h" "$sshd" -f "$safe/sshd_config" -E "$scratch/sshd.$h" ||
        skip "sshd does not start: $(cat "$scratch/sshd.$h")"
done
tries=0
# shellcheck disable=SC2086 # words
until net_in 1 $right 10.77.0.2 true 2>"$scratch/err"; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || { fail "ssh 10.77.0.2 true: $(cat "$scratch/err")"; finish; }
    sleep 0.2
done

# run OPTION...: `pinwheel run` on host 1 with these, its status in $status
run()
{
    status=0
    net_in 1 env PINWHEEL_IFACES=eth0 timeout 120 "$pinwheel" run "$@" >"$scratch/out" \
        2>"$scratch/err" </dev/null || status=$?
}

# says FILE TEXT WHAT
says()
{
    grep -qF -e "$2" "$scratch/$1" || fail "$3: \"$2\" is not in: $(cat "$scratch/$1")"
}

list=10.77.0.1:2,10.77.0.2:2
run --ssh "$right" --hosts "$list" "$hello"
[ "$status" = 0 ] || fail "hello_put: status $status: $(cat "$scratch/err")"
expected=$(for r in 0 1 2 3; do echo "rank $r received \"hello from rank $(((r + 3) % 4)) of 4\""; done)
[ "$(sort "$scratch/out")" = "$expected" ] || fail "hello_put: $(cat "$scratch/out")"

# Each rank is where the list has it; words, quotes and the environment arrive as they were given.
run --ssh "$right" --hosts "$list" --env 'WORDS=a "b"  $c' \
    sh -c 'echo "$PMI_RANK $(ip -o -4 addr show eth0 |
        sed "s/.*inet \([0-9.]*\).*/\1/") $WORDS $1"' sh "it's here"
[ "$status" = 0 ] || fail "words: status $status: $(cat "$scratch/err")"
expected=$(for r in 0 1 2 3; do echo "$r 10.77.0.$((r / 2 + 1)) a \"b\"  \$c it's here"; done)
[ "$(sort "$scratch/out")" = "$expected" ] || fail "words: $(cat "$scratch/out")"

# A status comes back, and nothing of the job stays.
run --ssh "$right" --hosts "$list" sh -c '[ $PMI_RANK = 3 ] && exit 9; exec sleep 1003'
[ "$status" = 9 ] || fail "an exit status: $status, not 9: $(cat "$scratch/err")"
lives 'sleep 1003' && fail "ranks of a job that has ended live on"

# Whom the server does not let in; a server that is not known; a port where there is none.
ssh-keygen -q -t ed25519 -N '' -f "$safe/stranger"
: >"$safe/nobody"
for wrong in "$shell $known -p $port -i $safe/stranger" \
    "$shell -o UserKnownHostsFile=$safe/nobody -p $port -i $safe/client" \
    "$shell $known -p 1 -i $safe/client"; do
    run --ssh "$wrong" --hosts "$list" true
    [ "$status" = 1 ] || fail "$wrong: status $status, not 1: $(cat "$scratch/err")"
    says err ": cannot be reached" "$wrong"
done

finish "pinwheel run through sshd on 2 hosts"
