#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: packets of all kinds and sizes between two hosts
# TIMEOUT: 300
# CHECK-KERNELS: uml
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

# With KIW_ALL every size is sent, otherwise those around page borders.
SIZES=${KIW_ALL:+all}
SIZES=${SIZES:-borders}

# The hardware address has IPoIB's form; it contains the underlay's IP address and the port.
address() {
	on_a ip link show kip0 | tee /dev/stderr |
		grep -q 'link/infiniband 80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:01 brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff' &&
		[ "$(kip_get a mode)" = connected ]
}

# RFC 4391 4: signatures, the flag T, scope 2 and P_Key of the groups that every host is in
groups() {
	local bad=0 end=00:00:00:00:00:00:00:00:00:01
	on_a ip maddr show dev kip0 >"$T_DIR/groups"
	cat "$T_DIR/groups"
	grep -q "link *00:ff:ff:ff:ff:12:40:1b:ff:ff:$end" "$T_DIR/groups" || { echo "not 224.0.0.1"; bad=1; }
	grep -q "link *00:ff:ff:ff:ff:12:60:1b:ff:ff:$end" "$T_DIR/groups" || { echo "not ff02::1"; bad=1; }
	return "$bad"
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

crc() {
	if [ "${KIW_LINK_TYPE%-ext}" != kiwarp ]; then
		skip_this "of kiwarp only"
	else
		case $KIW_CRC in n) kip_crc_is 0 ;; *) kip_crc_is 1 ;; esac
	fi
}

# sizes ADDRESS
sizes() { on_a "$SELFTESTS/ip_sizes.py" "$1" $((5 * ${KIW_SLOW:-1})) "$SIZES"; }

# By connection, and by datagrams of the group. Headers of kiwarp_ip and of UDP do not count. siw may
# leave the last packets unread.
statistics() {
	[ "${KIW_LINK_TYPE%-ext}" = kiwarp ] || { skip_this "of kiwarp only"; return; }
	kip_counts_as 10 10280 on_a ping -q -c 10 -i 0.05 -W 20 -s 1000 "$KB4" &&
		kip_counts_as 1 1048 on_a ping -q -c 1 -W 20 -L -s 1000 ff02::1%kip0
}

one_too_long() {
	! on_a ping -c 1 -W 1 -s 65493 -M "do" "$KB4" >"$T_DIR/ping" 2>&1 && cat "$T_DIR/ping" &&
		grep -q 'too long' "$T_DIR/ping"
}

broadcast() {
	on_b sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
	on_a ping -q -c 1 -W 5 -b 10.9.0.255
}

# Without a group, multicasts go to those that are listed, who learn of the sender by them.
by_peers() {
	local bad=0
	kip_set a group none && kip_set b group none && kip_set a learn 0 && kip_set b learn 0 || return 1
	must_fail kip_multicast a -W 1 || bad=1
	kip_set b learn 300 && kip_set a peers "+$B4" || return 1
	kip_forget
	kip_multicast a && kip_pings a "$KB4" && [ "$(kip_get b peers)" = "$A4 learned" ] &&
		kip_multicast b || bad=1
	kip_set a peers "-$B4" && kip_set b peers "-$A4" && kip_set a learn 300 &&
		kip_set a group "$KIP_GROUP" && kip_set b group "$KIP_GROUP" && wait_for 5 kip_multicast a -W 1 &&
		wait_for 5 kip_multicast b -W 1 && return "$bad"
}

detection_ended() { has_address "$KA6/64.* dadfailed" || ! has_address "$KA6/64.* tentative"; }

# found_duplicate: whether b notices that a has the address. It asks once and waits for a second,
# which may be too short on a busy machine.
found_duplicate() {
	local status=1
	on_b ip addr add "$KA6/64" dev kip0 && wait_for 5 detection_ended &&
		has_address "$KA6/64.* dadfailed" && status=0
	on_b ip addr del "$KA6/64" dev kip0
	return "$status"
}

# b gets an address that a has, and then one that nobody has.
duplicate() {
	local bad=0
	# Guests have it off in their first network namespace.
	on_b sysctl -qw net.ipv6.conf.kip0.accept_dad=1
	wait_for 15 found_duplicate || bad=1
	on_b ip addr add fd09::22/64 dev kip0 && wait_for 10 has_address fd09::22/64 &&
		wait_gone 10 has_address 'fd09::22/64.* tentative' && kip_pings a fd09::22 || bad=1
	on_b ip addr show dev kip0
	on_b ip addr del fd09::22/64 dev kip0
	return "$bad"
}

# Two sockets of one process take turns, so that what each sends in one packet is not contiguous.
# The other host answers with what it has received.
send_pieces() {
	on_a timeout $((20 * ${KIW_SLOW:-1})) python3 -c "
import os, socket
UDP_CORK = 1
while True:
    both = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    sent = [b'', b'']
    try:
        for s in both:
            s.connect(('$KB4', 5002))
            s.settimeout(1)
            s.setsockopt(socket.IPPROTO_UDP, UDP_CORK, 1)
        for _ in range(16):
            for i, s in enumerate(both):
                piece = os.urandom(1000)
                s.send(piece)
                sent[i] += piece
        for s in both:
            s.setsockopt(socket.IPPROTO_UDP, UDP_CORK, 0)
        raise SystemExit([s.recv(65536) for s in both] != sent)
    except (TimeoutError, ConnectionRefusedError):
        pass"
}

# kiwarp gathers as many pieces as a packet can have; siw does not.
many_pieces() {
	local bad=0
	spawn echo b python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('$KB4', 5002))
while True:
    s.sendto(*s.recvfrom(65536))"
	send_pieces || { echo "not what was sent"; bad=1; }
	spawn_stop echo
	case $KIW_LINK_TYPE in
	kiwarp*) ! has_counted a tx_linearized ;;
	*) has_counted a tx_linearized ;;
	esac || { echo "tx_linearized is $(kip_count a tx_linearized)"; bad=1; }
	return "$bad"
}

has_address() { on_b ip addr show dev kip0 | grep -E "inet6 $1"; }

# measure OPTIONS: by iperf3, from a to b
measure() {
	spawn iperf b iperf3 -s -1 -B "$KB4"
	wait_listen b 5201 && on_a timeout $((20 * ${KIW_SLOW:-1})) iperf3 -c "$KB4" -t 2 "$@" >"$T_DIR/iperf"
	local status=$?
	cat "$T_DIR/iperf"
	[ "$status" = 0 ] || { spawn_log iperf; spawn_stop iperf; return 1; }
	spawn_wait iperf 10
}

# on_kernel_b CMD...: on the kernel that host b has, for settings of all namespaces
on_kernel_b() { if is_pair; then on_b "$@"; else "$@"; fi; }

# datagrams: none is lost, also if the receiver does not run for a while.
datagrams() {
	local before status
	before=$(on_kernel_b sysctl -n net.core.rmem_default)
	on_kernel_b sysctl -q -w net.core.rmem_default=8388608 || return 1
	measure -u -b 5M -l 16000 && grep -F '(0%)  receiver' "$T_DIR/iperf"
	status=$?
	on_kernel_b sysctl -q -w "net.core.rmem_default=$before" && return "$status"
}

# It prints what has arrived.
throughput() {
	measure && measure -R && awk '/receiver/ { some += $5 > 0 } END { exit !some }' "$T_DIR/iperf" &&
		datagrams
}

# mtus A B: other than both have had until now; what is too long is sent in fragments, once the
# sender knows.
mtus() {
	on_a ip link set kip0 mtu "$1" && on_b ip link set kip0 mtu "$2" || return 1
	kip_set a rx_depth 32 && kip_set b rx_depth 32 || return 1
	kip_forget
	wait_for 5 kip_pings a "$KB4" -W 1 -s 30000 && wait_for 5 kip_pings b "$KA6" -W 1 -s 30000 &&
		wait_for 5 kip_pings a "$KB6" -W 1 -s 30000 && wait_for 5 kip_pings b "$KA4" -W 1 -s 30000 &&
		kip_stream a b "$KB4" 2 && kip_stream b a "$KA4" 2 && kip_stream a b "$KB6" 2 &&
		kip_stream b a "$KA6" 2
}

mixed_mtus() {
	local pair bad=0
	for pair in "65520 16384" "16384 1280" "1280 65520"; do
		# shellcheck disable=SC2086 # two words
		mtus $pair || { echo "MTUs $pair"; bad=1; break; }
	done
	# IPv6 addresses survive an MTU of 1280.
	on_a ip link set kip0 mtu 65520 && on_b ip link set kip0 mtu 65520
	kip_forget
	return "$bad"
}

# There are strings for statistics, and none for self tests and private flags.
string_sets() {
	on_a python3 -c '
import array, fcntl, socket, struct
SIOCETHTOOL, ETHTOOL_GSSET_INFO = 0x8946, 0x37
asked = array.array("B", struct.pack("=IIQ12x", ETHTOOL_GSSET_INFO, 0, 0b111))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sQ16x", b"kip0", asked.buffer_info()[0]))
found = struct.unpack_from("=Q", asked, 8)[0]
raise SystemExit(0 if found == 0b010 else f"sets {found:#b}")'
}

# The bus is the underlay.
driver() {
	on_a ethtool -i kip0 >"$T_DIR/driver" && cat "$T_DIR/driver"
	grep -qx 'driver: kiwarp_ip' "$T_DIR/driver" &&
		grep -qx "version: $(</sys/module/kiwarp_ip/version)" "$T_DIR/driver" &&
		grep -qx "bus-info: $NETDEV" "$T_DIR/driver"
}

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up; then bail "no interfaces"; fi
t_run "address and mode" address
t_run "strings of ethtool" string_sets
t_run "driver" driver
t_run "addresses of groups" groups
t_run "ping, ARP" first_ping
t_run "CRC" crc
t_run "ping6, neighbour discovery" first_ping6
t_run "link-local addresses" link_local
t_run "sizes, IPv4" sizes $KB4
t_run "sizes, IPv6" sizes $KB6
t_run "statistics of the link" statistics
t_run "an octet more" one_too_long
t_run "broadcast" broadcast
t_run "multicast by the group" kip_multicast a
t_run "multicast by peers" by_peers
t_run "duplicate address detection" duplicate
t_run "packets in many pieces" many_pieces
t_run "iperf3" throughput
t_run "a stream from a to b" kip_stream a b $KB4
t_run "a stream from b to a, IPv6" kip_stream b a $KA6
t_run "mixed MTUs" mixed_mtus
t_run "nothing was lost" kip_is_sound
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
