#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: a route to the peer leads through the interface itself
# TIMEOUT: 60
# CHECK-KERNELS: uml-smp
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

ROUNDS=3

loops() { kip_count a tx_loop; }
loops_more() { [ "$(loops)" -gt "$1" ]; }

# TCP's timers send, with the socket of the connection locked, while pings are sent.
in_a_loop() {
	local status=0
	kip_pings a "$KB4" -s 30000 && on_a ip route add 10.77.0.2/32 dev kip0 || return 1
	spawn pings a ping -q -i 0.01 -s 30000 "$KB4"
	wait_for 10 loops_more $(($(loops) + 3)) || status=1
	spawn_stop pings
	on_a ip route del 10.77.0.2/32 dev kip0 && wait_for 20 kip_pings a "$KB4" -W 1 -s 30000 &&
		return "$status"
}

rounds() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do in_a_loop || { echo "round $i"; return 1; }; done
}

if ! load_kiwarp || ! topo_up || ! rdma_up || ! ip_up; then bail "no devices"; fi
t_run "packets that loop are dropped" rounds
# While its packets loop, a connection is silent.
t_run "nothing was lost" kip_keeps_rules
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
