#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a device on WireGuard: it works, and nothing goes in clear
# TIMEOUT: 60
# KERNELS: uml 6.12
# CHECK-KERNELS: uml
#
# Not on 6.1, whose rdma_cm does not find devices on interfaces without a hardware address.
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/encrypted.sh
. "$SELFTESTS/encrypted.sh"

PORT=51820
# Inside of the tunnel
W4=10.80.0.
W6=fd80::

# tunnel_up HOST: wg0
tunnel_up() {
	local n=1 peer=2 outer=$B4 key=$T_DIR/key.b
	[ "$1" = a ] || n=2 peer=1 outer=$A4 key=$T_DIR/key.a
	ip -n "$1" link add wg0 type wireguard &&
		on "$1" wg set wg0 private-key "$T_DIR/key.$1" listen-port "$PORT" \
			peer "$(wg pubkey <"$key")" endpoint "$outer:$PORT" \
			allowed-ips "$W4$peer/32,$W6$peer/128" &&
		ip -n "$1" addr add "$W4$n/24" dev wg0 &&
		ip -n "$1" addr add "$W6$n/64" dev wg0 nodad && ip -n "$1" link set wg0 up
}

tunnel() {
	local host
	modprobe wireguard || return 1
	for host in a b; do (umask 077 && wg genkey >"$T_DIR/key.$host") || return 1; done
	tunnel_up a && tunnel_up b && on_a ping -q -c 1 -W 5 "${W4}2"
}

devices() {
	rdma_add a wg0 && rdma_add b wg0 &&
		wait_for 5 rdma_is_active a && wait_for 5 rdma_is_active b
}

pings() {
	rping_to b "${W4}2" -C 20 -S 20000 && rping_to a "${W4}1" -C 20 -S 100 &&
		rping_to b "${W6}2" -C 10 -S 4000
}

# What is on the cable while the pings cross: the tunnel's datagrams, no TCP, and no known bytes
only_wireguard() {
	capture && pings && capture_end || return 1
	[ "$(seen "udp port $PORT" | wc -l)" -gt 100 ] ||
		{ echo "nothing in the tunnel"; return 1; }
	if seen tcp | grep .; then return 1; fi
	! grep -a -E 'MPA ID Re[qp] Frame|rdma-ping-' "$PCAP"
}

# The same pings outside of the tunnel are seen.
seen_outside() {
	rdma_down
	rdma_up && capture && rping_to b "$B4" -C 5 && capture_end && seen tcp | grep -q . &&
		grep -a -q 'MPA ID Req Frame' "$PCAP" && grep -a -q 'rdma-ping-' "$PCAP"
}

{ load_kiwarp && topo_up 1500; } || bail "no two hosts"
t_run "a tunnel" tunnel
t_run "a device on each end" devices
t_run "only WireGuard is on the cable" only_wireguard
t_run "without the tunnel the data is readable" seen_outside
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
