#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma_cm in random order by users without rights; others and NFS notice nothing
# TIMEOUT: 150
# KERNELS: uml uml-debug 6.1 6.12 uml-kcsan
# CHECK-KERNELS: uml-debug 6.12
#
# Sequences that crash the kernel whatever the driver does are left out (SPARE): see the head of
# scripts/verbs/attack/main.c, and Documentation/kernel-faults.rst.
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

# Milliseconds: a startup deadline for which a case waits, and one for which nothing may wait
SHORT_MS=$((400 * KIW_SLOW))
LONG_MS=$((3000 * KIW_SLOW))
ATTACK_S=${KIW_SOAK:-4}
# Sequences that crash this kernel with any driver. UML does not survive if a process is killed in
# fork(). Kernels that the test bed builds have the patch for attributes.
SPARE=(connecting unread)
case $KIW_KERNEL in
uml*) SPARE+=(fork) ;;
[0-9]*) SPARE+=(attributes) ;;
esac

startup_is() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$1" >"/sys/class/infiniband/$dev/policy/startup_ms" || return 1
	done
}

# known_qps: prints options that name the existing QPs, of the kernel and of the honest pair
known_qps() {
	rdma res show qp | awk -v a="$DEV_A" '{
		for (i = 1; i < NF; i++)
			if ($i == "lqpn") printf "--qp %d:%d\n", index($2, a "/") != 1, $(i + 1)
	}'
}

denied() { echo $(($(counter "$DEV_A" conn_denied) + $(counter "$DEV_B" conn_denied))); }

attack() {
	local options=(--seed "$KIW_SEED") what
	for what in "${SPARE[@]}"; do options+=(--spare "$what"); done
	"$PROGRAMS/attack" "${options[@]}" "$@"
}

# cases STARTUP_MS [OPTION...] -- CASE...: each a test case of its own
cases() {
	local startup=$1 options=() line
	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	startup_is "$startup" || { not_ok "startup_ms"; return; }
	: >"$T_DIR/case"
	while IFS= read -r line; do
		case $line in
		"ok "*"# SKIP "*) line=${line#ok }; skip "${line%% # SKIP*}" "${line##*# SKIP }" ;;
		"ok "*) ok "${line#ok }" ;;
		"not ok "*) not_ok "${line#not ok }" "$(tail -n 30 "$T_DIR/case")" ;;
		*) printf '%s\n' "$line" >>"$T_DIR/case"; continue ;;
		esac
		: >"$T_DIR/case"
	done < <(attack --startup "$startup" "${options[@]}" case "$@" 2>&1; echo "ended: $?")
	grep -q '^ended: [01]$' "$T_DIR/case" || not_ok "the program" "$(cat "$T_DIR/case")"
}

_says_ready() { grep -q ready "$T_DIR/honest.log"; }

honest_start() {
	"$PROGRAMS/attack" --startup "$SHORT_MS" honest >"$T_DIR/honest.log" 2>&1 &
	echo $! >"$T_DIR/honest.pid"
	wait_for 20 _says_ready || { spawn_log honest; return 1; }
}

# The honest pair's connection still exists, and all its data was right.
honest_stop() {
	local status=0
	kill "$(cat "$T_DIR/honest.pid")" || status=1
	spawn_wait honest 30 || status=$?
	spawn_log honest
	return "$status"
}

# connects: how often the client of NFS has connected
connects() { awk '$1 == "xprt:" && $2 == "rdma" { print $5 }' /proc/self/mountstats; }

nfs_up() {
	nfs_serve && nfs_mount vers=4.2 && nfs_is_rdma && truncate -s 1M "$NFS_MNT/file" &&
		io_start "$NFS_MNT/file" 1M --block 16K && CONNECTS=$(connects)
}

nfs_moves() {
	io_moves || return 1
	[ "$(connects)" = "$CONNECTS" ] || { echo "connected $CONNECTS times, then $(connects)"; return 1; }
}
nfs_down() { io_stop && nfs_umount && nfs_end; }

# watch_objects: reads the details of all objects, as an operator does, until the file is gone
watch_objects() {
	local what status=0 times=0
	while [ -e "$T_DIR/watching" ]; do
		for what in qp cm_id cq mr; do rdma -dd resource show "$what" >/dev/null || status=1; done
		times=$((times + 1))
		_pause
	done
	echo "all objects were read $times times"
	return "$status"
}

random() {
	local options status=0
	startup_is "$SHORT_MS" || return 1
	mapfile -t options < <(known_qps | tr ' ' '\n')
	: >"$T_DIR/watching"
	watch_objects >"$T_DIR/watch.log" 2>&1 &
	echo $! >"$T_DIR/watch.pid"
	attack --startup "$SHORT_MS" "${options[@]}" random "$ATTACK_S" >"$T_DIR/attack.log" 2>&1 ||
		status=$?
	rm "$T_DIR/watching"
	spawn_wait watch 60 || status=$?
	cat "$T_DIR/watch.log" >>"$T_DIR/attack.log"
	cat "$T_DIR/attack.log"
	return "$status"
}

# unload_meanwhile: while all of that goes on, with devices that come and go, the module is
# unloaded, or is in use.
unload_meanwhile() {
	local status=0 busy=0 unloaded=0
	attack --startup "$SHORT_MS" vanish "$ATTACK_S" >"$T_DIR/attack.log" 2>&1 &
	echo $! >"$T_DIR/vanish.pid"
	while kill -0 "$(cat "$T_DIR/vanish.pid")" 2>/dev/null; do
		wait_for 2 has_objects "$DEV_A" qp
		rdma link delete "$DEV_A"
		rdma link delete "$DEV_B"
		if rmmod "${KIW_LINK_TYPE%-ext}" 2>"$T_DIR/rmmod"; then
			unloaded=$((unloaded + 1))
			load_kiwarp
		elif grep -q 'in use' "$T_DIR/rmmod"; then
			busy=$((busy + 1))
		else
			cat "$T_DIR/rmmod"
			status=1
		fi
		{ rdma_up && startup_is "$SHORT_MS"; } || { echo "no devices again"; status=1; }
	done >"$T_DIR/vanish.log" 2>&1
	spawn_wait vanish 10 || status=$?
	cat "$T_DIR/attack.log" "$T_DIR/vanish.log"
	UNLOADS="unloaded $unloaded times, in use $busy times"
	[ $((unloaded + busy)) -gt 0 ] || { echo "never tried"; return 1; }
	return "$status"
}

# none_stuck: all processes have ended; prints those that wait in the kernel forever
_attackers() { pgrep -x attack; }
none_stuck() {
	local pid
	wait_gone 20 _attackers && return
	for pid in $(_attackers); do
		grep . "/proc/$pid/task"/*/{comm,stat,stack} | cut -c1-300
	done
	return 1
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for what in "${SPARE[@]}"; do diag "left out, because it stops this kernel with any driver: $what"; done
cases "$SHORT_MS" -- established-then-reject accept-established-again accept-then-reject \
	accept-again reject-connecting destroy-unread migrate-unread
DENIED=$(denied)
cases "$LONG_MS" -- foreign-idle foreign-connected same-user container-root mute fork-child \
	passed-file root-by-number
t_run "what was denied counts" [ "$(denied)" -gt "$DENIED" ]
t_run "nothing is left of it" nothing_left "$DEV_A" "$DEV_B"
t_nfs "NFS over RDMA" nfs_up
t_run "an honest pair" honest_start
mapfile -t known < <(known_qps | tr ' ' '\n')
cases "$LONG_MS" "${known[@]}" -- kernel
t_run "everything at random, seed $KIW_SEED" random
[ ! -f "$T_DIR/attack.log" ] || diag "$(cat "$T_DIR/attack.log")"
t_run "the honest pair has lost nothing" honest_stop
t_run "nobody is stuck" none_stuck
t_nfs "NFS has not noticed" nfs_moves
t_nfs "NFS ends" nfs_down
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
t_run "the module is unloaded at random, or in use" unload_meanwhile
diag "$UNLOADS"
t_run "no process is stuck afterwards" none_stuck
t_run "nothing is left then" nothing_left "$DEV_A" "$DEV_B"
t_run "the device still works" rping_to b "$B4" -C 5 -S 4000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
