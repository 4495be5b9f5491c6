#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: the peer's machine is killed, under traffic and without, and boots again
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# CHECK-PAIRS: uml
# TOPOLOGY: pair
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

has_streams() { [ "$(kip_streams a)" = "$1" ]; }
counts_more() { [ "$(kip_count a "$1")" -gt "$2" ]; }

connect() { kip_pings a "$KB4" -s 40000 && has_streams 1; }

# Packets wait for an answer: the connection ends within 10 seconds, unless this host stands still.
killed() {
	local before
	before=$(kip_count a conn_silent)
	spawn pings a ping -q -i 0.2 -s 20000 "$KB4"
	wait_for 5 counts_more tx_messages "$(kip_count a tx_messages)" && kill_b &&
		wait_for 20 counts_more conn_silent "$before" && wait_for 5 has_streams 0
	local status=$?
	spawn_stop pings
	return "$status"
}

# b as it was, in a guest that knows nothing of it
boots() {
	restart_b && topo_up && load_ip && rdma_add b && wait_for 5 rdma_is_active b && kip_add b &&
		kip_set b group "$KIP_GROUP" && kip_up b && wait_for 5 kip_listens b
}

again() { wait_for 20 kip_pings a "$KB4" -W 1 -s 40000 && has_streams 1; }

# Nobody notices until it is there again: its Request replaces the connection.
killed_idle() {
	local before
	before=$(kip_count a conn_replaced)
	connect && kill_b && has_streams 1 && boots && wait_for 20 kip_pings b "$KA4" -W 1 -s 40000 &&
		counts_more conn_replaced "$before" && wait_for 20 has_streams 1
}

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up; then bail "no interfaces"; fi
t_run "a connection" connect
t_run "the peer is killed under traffic" killed
t_run "it boots again" boots
t_run "packets go again" again
t_run "it is killed while nothing is sent, and boots again" killed_idle
t_run "a stream" kip_stream a b "$KB4" 4
t_run "no rule was broken" kip_is_zero a rx_overrun rx_bad_control rx_bad_type rx_short
diag "a: $(kip_counts a | paste -sd' ')"
ip_down
rdma_down
t_run "unload" unload_ip
done_testing
