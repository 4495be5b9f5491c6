#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: fragments of fragments: buffers behind buffers behind buffers
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# A tunnel in a tunnel, each with a larger MTU than the one below: IP fragments the packets of the
# inner tunnel in the outer one, and fragments these fragments again.
OUTER_MTU=4000 INNER_MTU=9000

# lock_mtu HOST DEV NETWORK MTU: in spite of nopmtudisc, tunnels of some kernels lower it
lock_mtu() { ip -n "$1" route change "$3" dev "$2" mtu lock "$4"; }

# tunnels_up HOST: outer 10.78.0.N, inner 10.79.0.N
tunnels_up() {
	local n=1 peer=2
	[ "$1" = a ] || n=2 peer=1
	# Without "do not fragment", which the tunnels would take over
	on "$1" sysctl -q -w net.ipv4.ip_no_pmtu_disc=1 &&
		ip -n "$1" link add outer type ipip local "10.77.0.$n" remote "10.77.0.$peer" \
			nopmtudisc &&
		ip -n "$1" addr add "10.78.0.$n/24" dev outer &&
		ip -n "$1" link set outer up mtu "$OUTER_MTU" &&
		ip -n "$1" link add inner type ipip local "10.78.0.$n" remote "10.78.0.$peer" \
			nopmtudisc &&
		ip -n "$1" addr add "10.79.0.$n/24" dev inner &&
		ip -n "$1" link set inner up mtu "$INNER_MTU" &&
		lock_mtu "$1" outer 10.78.0.0/24 "$OUTER_MTU" &&
		lock_mtu "$1" inner 10.79.0.0/24 "$INNER_MTU"
}

# Each time IP has put a packet together, on b
# shellcheck disable=SC2016 # awk
reassembled() { on_b awk '/^Ip:/ && $2 ~ /^[0-9]/ { print $16 }' /proc/net/snmp; }

counter() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"; }

# policy NAME VALUE: on both hosts
policy() {
	echo "$2" >/sys/class/infiniband/$DEV_A/policy/"$1" &&
		echo "$2" >/sys/class/infiniband/$DEV_B/policy/"$1"
}

# cross: sends pings of many segments, which both ends verify
cross() {
	local before count host
	before=$(reassembled)
	rping_to b 10.79.0.2 -C 10 -S 60000 || return 1
	count=$(($(reassembled) - before))
	# Of 9 segments in each direction for a ping, and of the packets of which those are
	[ "$count" -gt 100 ] || { echo "only $count packets came in fragments"; return 1; }
	for host in a b; do
		[ "$(counter "$(dev_of "$host")" rx_unreadable)" = 0 ] ||
			{ echo "unreadable for $host"; return 1; }
	done
}

{ load_kiwarp && topo_up 1500; } || bail "no two hosts"
modprobe -q ipip
t_run "a tunnel in a tunnel" eval 'tunnels_up a && tunnels_up b && on_a ping -q -c 1 -W 2 10.79.0.2'
{ rdma_add a inner && rdma_add b inner && wait_for 5 rdma_is_active b; } || bail "no devices"
t_run "messages in fragments of fragments" cross
policy markers y
t_run "with markers" cross
policy markers n
policy crc n
t_run "without CRC" cross
policy crc y
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
