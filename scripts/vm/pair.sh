#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# pair.sh [OPTIONS] -- CMD ARGS...: boots two guests, hosts "a" and "b", connected by a cable
# between their eth0 (10.77.0.1 and .2, fd77::1 and ::2), runs CMD on a and exits with its
# status. CMD can use `on_b` of scripts/selftests/lib/rc to run commands on b, and `kill_b` and
# `restart_b`. Options as for run.sh, and
#   --mtu N   MTU of the cables, default 9000
#   --third   a third guest, host "c", for which CMD can use `on_c`. A cable connects its eth0
#             (10.79.0.2, fd79::2) to the eth2 of b (10.79.0.1, fd79::1).
#   --offload the cables take checksums and segments that the guests leave to the hardware; QEMU
#             only, and only for root
#   --plugin FILE  a plugin of QEMU for a, which writes to DIR/a/counts
#   --plugin-b FILE  likewise for b, to DIR/b/counts
# --out DIR creates DIR/a, DIR/b and DIR/c. The third disk of b is empty at first and keeps its
# contents when b is killed; the logs of a killed b are in DIR/a.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

# Seconds that b and c have to power off
B_ENDS=120

# The processes that guest_start has started for b and c
declare -A PIDS

# nics HOST: its interfaces, a word for each: the number of the cable, and which end of it.
# Cable 0 connects a and b, cable 2 connects b and c: tests may do anything to these. 1 and 3 are
# the control networks, from a to b and from a to c.
nics() {
	case $1$G_THIRD in
	a) echo 0a 1a ;;
	b) echo 0b 1b ;;
	a1) echo 0a 1a 3a ;;
	b1) echo 0b 1b 2a ;;
	c1) echo 2b 3b ;;
	esac
}

# cables HOST: sets CABLES, the arguments for its interfaces.
cables() {
	local nic n=0
	CABLES=()
	for nic in $(nics "$1"); do
		"${K_TYPE}_cable" $((n++)) "${nic%?}" "${nic#?}"
	done
}

# mac CABLE a|b
mac() { printf '02:%x:00:00:00:0%s' $((0x77 + $1)) "$(tr ab 12 <<<"$2")"; }

# uml_cable NUMBER CABLE a|b: adds the interface of that number, at that end of the cable.
uml_cable() {
	local -a fds
	local mtu=1500 fd=$((2 * $2))
	read -r -a fds <<<"$KIW_FDS"
	[ "$3" = a ] || fd=$((fd + 1))
	[ $(($2 % 2)) = 1 ] || [ "$G_MTU" -lt 1500 ] || mtu=$G_MTU
	CABLES+=("vec$1:transport=fd,fd=${fds[fd]},mac=$(mac "$2" "$3"),mtu=$mtu")
}

qemu_cable() {
	local there=b
	[ "$3" = a ] || there=a
	if [ -n "$G_OFFLOAD" ]; then
		CABLES+=(-netdev "tap,id=n$1,ifname=kiw$2$3,script=no,downscript=no"
			-device "$(device "net,netdev=n$1,mac=$(mac "$2" "$3")")")
		return
	fi
	CABLES+=(-netdev "dgram,id=n$1,local.type=unix,local.path=$SOCKETS/$2$3,remote.type=unix,remote.path=$SOCKETS/$2$there"
		-device "$(device "net,netdev=n$1,mac=$(mac "$2" "$3")")")
}

# taps: the cables between a and b as bridges, each with an interface of QEMU for either end.
taps() {
	local cable end
	for cable in 0 1; do
		ip link add "kiw$cable" type bridge && ip link set "kiw$cable" up || return 1
		for end in a b; do
			ip tuntap add "kiw$cable$end" mode tap vnet_hdr &&
				ip link set "kiw$cable$end" master "kiw$cable" up || return 1
		done
	done
}

start_a() {
	guest_dir a a
	guest_command a /host/pair-main "${G_CMD[@]}"
	cables a
	[ -z "$G_PLUGIN" ] || CABLES+=(-plugin "$G_PLUGIN,out=$W/a/out/counts")
	guest_start a "${CABLES[@]}"
	PID_A=$GUEST_PID
}

# boot_b: boots a new guest as b, without the state of an earlier b.
boot_b() {
	rm -rf "$W/b/out" "$W/b/uml"
	mkdir "$W/b/out"
	cables b
	if [ "$K_TYPE" = uml ]; then
		CABLES+=("ubd2=$W/disk")
	else
		CABLES+=(-drive "if=none,id=d2,file=$W/disk,format=raw,cache=unsafe" -device "$(device blk,drive=d2)")
	fi
	[ -z "$G_PLUGIN_B" ] || CABLES+=(-plugin "$G_PLUGIN_B,out=$W/b/out/counts")
	guest_start b "${CABLES[@]}"
	PIDS[b]=$GUEST_PID
}

start_b() {
	guest_dir b b
	guest_command b python3 /host/agent.py 10.78.0.2 7700
	truncate -s 256M "$W/disk"
	boot_b
}

start_c() {
	guest_dir c c
	guest_command c python3 /host/agent.py 10.80.0.2 7700
	cables c
	guest_start c "${CABLES[@]}"
	PIDS[c]=$GUEST_PID
}

# kill_emulator PID: the child of PID, b's or c's; UML's processes are a group of its own.
kill_emulator() {
	local emulator
	for emulator in $(ps -o pid= --ppid "$1"); do
		kill -KILL "$emulator"
		kill -KILL -- "-$emulator" 2>/dev/null
	done
}

# kill_b: kills b, and leaves its output where host a finds it.
kill_b() {
	LIVES=$((LIVES + 1))
	kill_emulator "${PIDS[b]}"
	wait "${PIDS[b]}" 2>/dev/null
	cp "$W/b/console" "$W/a/out/b-killed.$LIVES.console"
	cp "$W/b/out/dmesg" "$W/a/out/b-killed.$LIVES.dmesg"
}

# do_requests: executes host a's requests, which are files; removes each file when that is done.
do_requests() {
	local out=$W/a/out
	if [ -e "$out/b-kill" ]; then kill_b; rm "$out/b-kill"; fi
	if [ -e "$out/b-boot" ]; then boot_b; rm "$out/b-boot"; fi
}

# end_other PID STATUS: waits for the end of b or c. STATUS is that of host a, which has told them
# to power off unless a itself died. If one hangs, it is killed, which counts as a failure: an
# emulator that is asked to terminate would exit with status 0.
end_other() {
	local seconds=$B_ENDS
	case $2 in 124 | 125) seconds=1 ;; esac
	timeout "$seconds" tail -s 0.1 -f --pid="$1" /dev/null || kill_emulator "$1"
	wait "$1"
}

main() {
	local status status_other host follower
	LIVES=0
	guest_options "$@"
	# The socket pairs must be open in this very process.
	case $G_KERNEL in uml*)
		[ -n "${KIW_FDS:-}" ] || exec "$KIW_VM/fdpair.py" 4 "$0" "$@" ;;
	esac
	# The interfaces go with the namespace, and that with this process.
	if [ -n "$G_OFFLOAD" ]; then
		[ -n "${KIW_OWN_NET:-}" ] || KIW_OWN_NET=1 exec unshare -n "$KIW_VM/pair.sh" "$@"
		taps || die "no interfaces"
	fi
	guest_prepare
	SOCKETS=$(mktemp -d "${TMPDIR:-/tmp}/kiw.XXXXXX")
	trap 'guest_cleanup; rm -rf "$SOCKETS"' EXIT
	trap 'exit 130' INT TERM
	start_b
	[ -z "$G_THIRD" ] || start_c
	start_a
	guest_follow a "$PID_A" &
	follower=$!
	while kill -0 "$follower" 2>/dev/null; do
		do_requests
		sleep 0.2
	done
	wait "$PID_A"
	status=$(guest_verdict a $?)
	[ -z "$G_OUT" ] || guest_copy_out a "$G_OUT/a"
	for host in b ${G_THIRD:+c}; do
		end_other "${PIDS[$host]}" "$status"
		status_other=$(guest_verdict "$host" $?)
		[ -z "$G_OUT" ] || guest_copy_out "$host" "$G_OUT/$host"
		# 4: run-tests had no time for all tests
		case $status in 0 | 4) [ "$status_other" = 0 ] || status=$status_other ;; esac
	done
	exit "$status"
}

main "$@"
