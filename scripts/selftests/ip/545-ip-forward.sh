#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: a router between two others, a guest each
# TIMEOUT: 150
# CHECK-PAIRS: uml
# TOPOLOGY: pair
# GUESTS: 3
# shellcheck disable=SC2317,SC2119,SC2086 # t_run calls them; no arguments; no blanks
#
# A second link from b to c, over its own cable and RDMA devices:
#
#	b: kip1 10.10.0.1/24 fd10::1/64 --- kip0 10.10.0.2/24 fd10::2/64 :c
#
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

KC4=10.10.0.2
KC6=fd10::2
SLOW=${KIW_SLOW:-1}

# link_up b|c UNDERLAY NAME NUMBER: c has the group of kip0, too, but is on another cable.
link_up() {
	on "$1" rdma link add kiwc type "$KIW_LINK_TYPE" netdev "$2" &&
		on "$1" ip link add link "$2" name "$3" type kiwarp_ip &&
		on "$1" bash -c "echo $KIP_GROUP >/sys/class/net/$3/kiwarp_ip/group" &&
		on "$1" ip addr add "10.10.0.$4/24" dev "$3" &&
		on "$1" ip addr add "fd10::$4/64" dev "$3" nodad && on "$1" ip link set "$3" up
}

routes() {
	on_b sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 &&
		on_a ip route add 10.10.0.0/24 via $KB4 && on_a ip route add fd10::/64 via $KB6 &&
		on_c ip route add 10.9.0.0/24 via 10.10.0.1 && on_c ip route add fd09::/64 via fd10::1
}

second_link() { link_up b eth2 kip1 1 && link_up c eth0 kip0 2 && routes; }

streams_of_b() { on_b ss -Htn state established '( sport = :64755 or dport = :64755 )' | wc -l; }

# Packets that datagrams have no room for
reaches() {
	wait_for 20 kip_pings a $KC4 -W 1 -s 60000 -M "do" && wait_for 20 kip_pings c $KA6 -W 1 -s 60000 -M "do" &&
		[ "$(streams_of_b)" = 2 ]
}

# sizes ADDRESS
sizes() { on_a "$SELFTESTS/ip_sizes.py" "$1" $((5 * SLOW)) borders; }

# A hop is one less to live: the packets have been forwarded, and c sees the sender's address.
hop() {
	on_a ping -n -c 1 -t 1 -W 5 $KC4 | tee /dev/stderr | grep -q 'From 10.9.0.2.*Time to live exceeded'
}

# has_mtu HOST ADDRESS MTU
has_mtu() { on "$1" ip route get "$2" | grep -q "mtu $3"; }

# too_big FROM ADDRESS MTU: the router tells FROM of the MTU behind it.
too_big() {
	local header=28
	case $2 in *:*) header=48 ;; esac
	on "$1" ping -q -c 3 -i 0.2 -W 1 -s $(($3 - header + 1)) -M "do" "$2"
	wait_for 3 has_mtu "$1" "$2" "$3" || { on "$1" ip route get "$2"; return 1; }
	kip_pings "$1" "$2" -s $(($3 - header)) -M "do"
}

# RFC 4755 5.1, 7.2: c accepts less than b, and a less than c.
mtus() {
	on_c ip link set kip0 mtu 9000 && on_c bash -c 'echo 32 >/sys/class/net/kip0/kiwarp_ip/rx_depth' &&
		on_a ip link set kip0 mtu 4000 && kip_set a rx_depth 32 || return 1
	wait_for 20 kip_pings b $KC4 -W 1 -s 8972 -M "do" && wait_for 20 kip_pings b $KA4 -W 1 -s 3972 -M "do" &&
		too_big c $KA4 4000 && too_big c $KA6 4000 && on_a ip link set kip0 mtu 65520 &&
		kip_forget && wait_for 20 kip_pings b $KA4 -W 1 -s 60000 -M "do" &&
		too_big a $KC4 9000 && too_big a $KC6 9000 && kip_stream a c $KC4 8 && kip_stream c a $KA6 8
}

# The router starts anew while packets go through it.
router_restarts() {
	spawn flood a ping -q -i 0.02 -s 8000 $KC4
	wait_for 10 forwarded_more "$(forwarded)" && on_b ip link set kip1 down && on_b ip link set kip1 up &&
		on_b ip addr replace fd10::1/64 dev kip1 nodad && wait_for 20 forwarded_more "$(forwarded)" &&
		wait_for 40 kip_pings a $KC4 -W 1 -s 8000 -M "do"
	local status=$?
	spawn_stop flood
	return "$status"
}

forwarded() { on_b ethtool -S kip1 | sed -n 's/^ *tx_messages: //p'; }
forwarded_more() { [ "$(forwarded)" -gt $(($1 + 20)) ]; }

# What must not happen at any of the four ends
sound() {
	local name bad=0 rules='rx_overrun|rx_bad_control|rx_bad_type|rx_short|rx_no_memory|conn_stalled|conn_silent'
	kip_is_sound && kip_is_zero c rx_overrun rx_bad_control conn_stalled conn_silent || bad=1
	! on_b ethtool -S kip1 | grep -E " ($rules): [^0]" || bad=1
	return "$bad"
}

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up; then bail "no interfaces"; fi
t_run "a second link, from b to c" second_link
t_run "packets from a to c and back" reaches
t_run "they are forwarded" hop
t_run "sizes, IPv4" sizes $KC4
t_run "sizes, IPv6" sizes $KC6
t_run "a stream from a to c" kip_stream a c $KC4 16
t_run "a stream from c to a, IPv6" kip_stream c a $KA6 16
t_run "what is too long for the next hop" mtus
t_run "the router starts anew under traffic" router_restarts
t_run "nothing was lost" sound
diag "b: $(on_b ethtool -S kip1 | grep -v ': 0$' | paste -sd' ')"
on_b ip link del kip1
on_c ip link del kip0
ip_down
on_b rdma link delete kiwc
on_c rdma link delete kiwc
rdma_down
on_a ip route flush cache
t_run "unload" unload_ip
done_testing
