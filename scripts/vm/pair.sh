#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# pair.sh [OPTIONS] -- CMD ARGS...: boots two guests, hosts "a" and "b", connected by a cable
# between their eth0 (10.77.0.1 and .2, fd77::1 and ::2), runs CMD on a and exits with its
# status. CMD can use `on_b` of scripts/selftests/lib/rc to run commands on b, and `kill_b` and
# `restart_b`. Options as for run.sh, and
#   --mtu N   MTU of eth0, default 9000
# --out DIR creates DIR/a and DIR/b. The third disk of b is empty at first and keeps its contents
# when b is killed; the logs of a killed b are in DIR/a.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

# Seconds that b has to power off
B_ENDS=120

# The second cable is the control network: tests may do anything to eth0.
uml_cables() {
	local -a fds
	read -r -a fds <<<"$KIW_FDS"
	local end=$1 mac=$2 mtu
	mtu=$((G_MTU < 1500 ? 1500 : G_MTU))
	CABLES=("vec0:transport=fd,fd=${fds[$end]},mac=02:77:00:00:00:0$mac,mtu=$mtu"
		"vec1:transport=fd,fd=${fds[$((2 + end))]},mac=02:78:00:00:00:0$mac,mtu=1500")
}

qemu_cables() {
	local here=$1 there=$2 mac=$3 n
	CABLES=()
	for n in 0 1; do
		CABLES+=(-netdev "dgram,id=n$n,local.type=unix,local.path=$SOCKETS/$n$here,remote.type=unix,remote.path=$SOCKETS/$n$there"
			-device "$(device "net,netdev=n$n,mac=02:7$((7 + n)):00:00:00:0$mac")")
	done
}

start_a() {
	guest_dir a a
	guest_command a /host/pair-main "${G_CMD[@]}"
	if [ "$K_TYPE" = uml ]; then uml_cables 0 1; else qemu_cables a b 1; fi
	guest_start a "${CABLES[@]}"
	PID_A=$GUEST_PID
}

# boot_b: boots a new guest as b, without the state of an earlier b.
boot_b() {
	rm -rf "$W/b/out" "$W/b/uml"
	mkdir "$W/b/out"
	if [ "$K_TYPE" = uml ]; then
		uml_cables 1 2
		CABLES+=("ubd2=$W/disk")
	else
		qemu_cables b a 2
		CABLES+=(-drive "if=none,id=d2,file=$W/disk,format=raw,cache=unsafe" -device "$(device blk,drive=d2)")
	fi
	guest_start b "${CABLES[@]}"
	PID_B=$GUEST_PID
}

start_b() {
	guest_dir b b
	guest_command b python3 /host/agent.py 10.78.0.2 7700
	truncate -s 256M "$W/disk"
	boot_b
}

# kill_emulator: the child of PID_B; UML's processes are a group of its own.
kill_emulator() {
	local emulator
	for emulator in $(ps -o pid= --ppid "$PID_B"); do
		kill -KILL "$emulator"
		kill -KILL -- "-$emulator" 2>/dev/null
	done
}

# kill_b: kills b, and leaves its output where host a finds it.
kill_b() {
	LIVES=$((LIVES + 1))
	kill_emulator
	wait "$PID_B" 2>/dev/null
	cp "$W/b/console" "$W/a/out/b-killed.$LIVES.console"
	cp "$W/b/out/dmesg" "$W/a/out/b-killed.$LIVES.dmesg"
}

# do_requests: executes host a's requests, which are files; removes each file when that is done.
do_requests() {
	local out=$W/a/out
	if [ -e "$out/b-kill" ]; then kill_b; rm "$out/b-kill"; fi
	if [ -e "$out/b-boot" ]; then boot_b; rm "$out/b-boot"; fi
}

# end_b STATUS: waits for the end of b. STATUS is that of host a, which has told b to power off
# unless a itself died. If b hangs, it is killed, which counts as a failure: an emulator that is
# asked to terminate would exit with status 0.
end_b() {
	local seconds=$B_ENDS
	case $1 in 124 | 125) seconds=1 ;; esac
	timeout "$seconds" tail -s 0.1 -f --pid="$PID_B" /dev/null || kill_emulator
	wait "$PID_B"
}

main() {
	local status status_b follower
	LIVES=0
	guest_options "$@"
	# The socket pairs must be open in this very process.
	case $G_KERNEL in uml*)
		[ -n "${KIW_FDS:-}" ] || exec "$KIW_VM/fdpair.py" 2 "$0" "$@" ;;
	esac
	guest_prepare
	SOCKETS=$(mktemp -d "${TMPDIR:-/tmp}/kiw.XXXXXX")
	trap 'guest_cleanup; rm -rf "$SOCKETS"' EXIT
	trap 'exit 130' INT TERM
	start_b
	start_a
	guest_follow a "$PID_A" &
	follower=$!
	while kill -0 "$follower" 2>/dev/null; do
		do_requests
		sleep 0.2
	done
	wait "$PID_A"
	status=$(guest_verdict a $?)
	end_b "$status"
	status_b=$(guest_verdict b $?)
	[ -z "$G_OUT" ] || { guest_copy_out a "$G_OUT/a"; guest_copy_out b "$G_OUT/b"; }
	[ "$status" != 0 ] || status=$status_b
	exit "$status"
}

main "$@"
