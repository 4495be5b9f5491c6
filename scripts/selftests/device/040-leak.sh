#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: from modprobe to modprobe -r, nothing is left behind
# TIMEOUT: 40
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# Kernel threads of ours; the module's name may be cut.
threads() { pgrep -l '^(kworker/R-)?kiwa'; }

# vmalloc areas that our functions made (rings), not the module itself.
areas() { grep -E 'kiw_[a-z_]*\+.*\[kiwarp\]' /proc/vmallocinfo; }

sockets() {
	on_a ss -Htan state established state listening state close-wait state fin-wait-1
	on_b ss -Htan state established state listening state close-wait state fin-wait-1
}

none() { ! "$@" | grep .; }

# The checks below must find objects while objects exist.
sees_objects() {
	spawn server a rping -s -a "$A4" && wait_listen a 7174 || return 1
	if ! threads || ! sockets | grep :7174 || no_objects "$DEV_A" || is_balanced "$DEV_A"; then
		spawn_stop server
		return 1
	fi
	kill -9 "$(cat "$T_DIR/server.pid")"
	spawn_wait server 5
	nothing_left "$DEV_A"
}

traffic() {
	rping_to b "$B4" -C 10 -S 5000 && rping_to a "$A6" -C 10 -S 5000 &&
		perf b ib_write_bw "$B4" 50 -s 65536 &&
		perf a ib_send_bw "$A4" 50 -s 4096 --use-srq
}

links_gone() { rdma_down && none rdma link show && wait_for 5 none sockets && none areas; }

module_gone() {
	grep "^${KIW_LINK_TYPE%-ext} .* 0 - " /proc/modules || { cat /proc/modules; return 1; }
	log_mark
	unload_kiwarp || return 1
	if log_says '[Ll]eaked'; then return 1; fi
}

nothing_of_it() {
	none threads || return 1
	none grep -i "kiw" /proc/slabinfo /proc/vmallocinfo || return 1
	none find /sys/kernel/tracing/events /sys/kernel/slab /sys/module /sys/class/infiniband \
		-maxdepth 1 -name '*kiw*'
}

load_and_add() { load_kiwarp && rdma_up; }

# A kernel with kmemleak reports what a second round would find.
ROUNDS=(1)
[ ! -w $KMEMLEAK ] || ROUNDS=(1 2)

if ! topo_up; then bail "no topology"; fi
for round in "${ROUNDS[@]}"; do
	t_run "round $round: load, add links" load_and_add
	t_run "round $round: objects show" sees_objects
	t_run "round $round: traffic" traffic
	t_run "round $round: no objects" nothing_left "$DEV_A" "$DEV_B"
	t_run "round $round: delete links" links_gone
	t_run "round $round: unload" module_gone
	t_run "round $round: nothing left" nothing_of_it
	[ ! -w $KMEMLEAK ] || t_run "round $round: no leaks" kmemleak_check
done
topo_down
done_testing
