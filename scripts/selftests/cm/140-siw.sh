#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: interoperation with siw, which has host b, in both roles, CRC on and off
# TIMEOUT: 100
# KERNELS: uml 6.1 6.12
# EXCEPT: smp-debug uml-smp
# CHECK-KERNELS: uml
#
# Not on kernels with lockdep: siw takes sk_callback_lock with softirqs enabled. lockdep reports
# that, and is disabled by its first report.
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# siw does not connect when the port rdma_cm picked is still in TIME_WAIT.
no_time_wait() {
	local host
	for host in a b; do
		on "$host" sysctl -qw net.ipv4.tcp_max_tw_buckets=0 || return 1
	done
}

devices() {
	rdma_add a && KIW_LINK_TYPE=siw rdma_add b &&
		wait_for 5 rdma_is_active a && wait_for 5 rdma_is_active b
}

with_crc() {
	echo "$1" >"/sys/module/${KIW_LINK_TYPE%-ext}/parameters/crc" && devices
}

# Short pings do not cross a page boundary: rping's buffers are inside its own structure.
pings() {
	rping_to b "$B4" -v -C 20 -S 100 && rping_to a "$A4" -v -C 20 -S 100 &&
		rping_to b "$B6" -v -C 5 -S 20000 && rping_to a "$A6" -v -C 5 -S 20000
}

bandwidth() {
	perf "$1" "ib_$2_bw" "$3" 50 -s 16384
}

# round NAME TOOL...: transfers data in all ways, with the present settings of the devices.
round() {
	local name=$1 op
	shift
	t_run "$name: rping, both ways, IPv4 and IPv6" pings
	verbs_between a b "$B4" "$name: from kiwarp: " interop multi_sge unsignaled
	verbs_between b a "$A4" "$name: from siw: " interop unsignaled
	for op in "$@"; do
		t_run "$name: ib_${op}_bw from kiwarp" bandwidth b "$op" "$B4"
		t_run "$name: ib_${op}_bw from siw" bandwidth a "$op" "$A4"
	done
}

device_removed() { spawn_log server | grep -q 'device removal'; }

# siw's module takes the devices of kiwarp with it (kernel-faults.rst). Whoever uses one is told, as
# if its link was deleted. Links can be added again.
# Devices of the type kiwarp-ext have another driver id, and stay.
siw_goes() {
	if [ "$KIW_LINK_TYPE" = kiwarp-ext ]; then
		rdma_up && unload_module siw && rdma_is_active a && rping_to b "$B4" -C 5
		return
	fi
	rdma_add a && wait_for 5 rdma_is_active a || return 1
	spawn server a rping -s -a "$A4"
	wait_listen a 7174 && unload_module siw && wait_gone 10 rdma_is_active a &&
		wait_for 10 device_removed
	local status=$?
	spawn_log server
	spawn_stop server
	[ "$status" = 0 ] && rdma_up && rping_to b "$B4" -C 5
}

{ load_kiwarp && load_module siw && topo_up 1500; } || bail "no two hosts"
t_run "no connection is in the way of the next" no_time_wait
t_run "kiwarp on a, siw on b" devices
round "CRC on" write read send
rdma_down
t_run "kiwarp asks for no CRC" with_crc N
round "CRC off"
rdma_down
t_run "siw goes, and kiwarp's devices with it" siw_goes
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
