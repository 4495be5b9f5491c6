#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: what is on the wire, as tshark reads it
# TIMEOUT: 120
# CHECK-KERNELS: uml
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

# What both kip0 have sent
sent() {
	local name
	for name in tx_messages tx_control tx_datagrams; do
		echo "$name=$(($(kip_count a "$name") + $(kip_count b "$name")))"
	done
}

traffic() {
	kip_pings a "$KB4" && kip_pings a "$KB6" -s 60000 && kip_multicast b &&
		kip_stream a b "$KB4" 1 && kip_stream b a "$KA6" 1
}

# Both begin once.
anew() { kip_set a rx_depth 32 && kip_set b rx_depth 32 && wait_for 10 kip_pings b "$KA4" -W 1; }

# b has no room, says so, and is given datagrams.
reject() {
	kip_set b rx_mem 0 && kip_set b rx_depth 32 && kip_set a rx_depth 32 &&
		wait_for 10 kip_pings a "$KB4" -W 1 && wait_for 20 is_refused
}

# By b, not by the core: a Request may come before b listens again.
is_refused() {
	kip_pings a "$KB4" -W 1 && has_counted a conn_refused_by_peer && has_counted b conn_no_room &&
		has_counted b conn_rejected
}

# Counters of interfaces that are down move no more.
all_down() { on_a ip link set kip0 down && on_b ip link set kip0 down; }

iwarp() {
	local -a counts
	mapfile -t counts < <(counts)
	python3 "$SELFTESTS/wire_check.py" crc "$PCAP" "${counts[@]}"
}

as_documented() {
	local -a sent
	mapfile -t sent < <(sent)
	PYTHONDONTWRITEBYTECODE=1 "$SELFTESTS/ip_wire.py" "$PCAP" "$1" "${sent[@]}"
}

# What it compares makes a difference.
false_is_found() {
	must_fail as_documented none && sent() { echo tx_messages=1; } && must_fail as_documented 4
}

command -v tshark >/dev/null || bail "the root image has no tshark"
if ! load_ip || ! topo_up 1500 || ! plain_netdevs || ! rdma_up; then bail "no two hosts"; fi
t_run "capture" capture_only "tcp or udp port 64755"
t_run "interfaces" ip_up
t_run "packets of all kinds" traffic
t_run "another startup" anew
t_run "a reject" reject
t_run "interfaces down" all_down
t_run "capture ends" capture_end
t_run "tshark reads all of it" iwarp
t_run "it is as documented" as_documented 4
t_run "a wrong expectation is noticed" false_is_found
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
