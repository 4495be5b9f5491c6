#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: packets of all kinds and sizes between two hosts
# TIMEOUT: 120
# CHECK-KERNELS: uml
# CHECK-PAIRS: uml
# TOPOLOGY: any
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

# The hardware address has IPoIB's form; it contains the underlay's IP address and the port.
address() {
	on_a ip link show kip0 | tee /dev/stderr |
		grep -q 'link/infiniband 80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:01 brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff' &&
		[ "$(kip_get a mode)" = connected ]
}

# RFC 4755 7: datagrams resolve the address; the connection carries the packets.
first_ping() {
	kip_pings a "$KB4" || return 1
	on_a ip neigh show "$KB4" | tee /dev/stderr |
		grep -q 'lladdr 80:00:fc:f3:00:.*:ff:ff:0a:4d:00:02' || return 1
	[ "$(kip_count a conn_established)" = 1 ] && [ "$(kip_count b conn_established)" = 1 ] &&
		[ "$(kip_count a tx_messages)" -ge 1 ] && [ "$(kip_count b rx_messages)" -ge 1 ] &&
		[ "$(kip_count a tx_control)" -ge 1 ] && [ "$(kip_count b rx_control)" -ge 1 ] &&
		[ "$(kip_count b rx_datagrams)" -ge 1 ]
}

# With IPv6, which finds neighbours by multicast
first_ping6() { kip_pings a "$KB6"; }

# With link-local addresses, which are derived from the hardware address
link_local() {
	local to
	to=$(on_b ip -o -6 addr show dev kip0 scope link | sed -n 's,.*inet6 \([^/]*\)/.*,\1,p')
	echo "to $to"
	kip_pings a "$to%kip0"
}

sizes() {
	local address=$1 overhead=$2 size
	for size in 0 1 2 3 7 8 200 223 224 225 226 228 229 255 256 257 1000 1400 1472 1473 2016 2017 \
		4000 4068 4069 4095 4096 4097 8000 8191 8192 8193 12000 16383 16384 16385 24000 \
		32767 32768 32769 50000 65000 $((65520 - overhead)); do
		kip_pings a "$address" -s "$size" -M "do" || { echo "size $size"; return 1; }
	done
}

one_too_long() {
	! on_a ping -c 1 -W 1 -s 65493 -M "do" "$KB4" >"$T_DIR/ping" 2>&1 && cat "$T_DIR/ping" &&
		grep -q 'too long' "$T_DIR/ping"
}

broadcast() {
	on_b sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
	on_a ping -q -c 1 -W 5 -b 10.9.0.255
}

multicast() { kip_pings a ff02::1%kip0; }

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up; then bail "no interfaces"; fi
t_run "address and mode" address
t_run "ping, ARP" first_ping
t_run "ping6, neighbour discovery" first_ping6
t_run "link-local addresses" link_local
t_run "all sizes, IPv4" sizes $KB4 28
t_run "all sizes, IPv6" sizes $KB6 48
t_run "an octet more" one_too_long
t_run "broadcast" broadcast
t_run "multicast" multicast
t_run "a stream from a to b" kip_stream a b $KB4
t_run "a stream from b to a, IPv6" kip_stream b a $KA6
t_run "nothing was lost" kip_is_sound
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
