#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: IPv6 below it; forwarding to and from a third host
# TIMEOUT: 150
# CHECK-KERNELS: uml
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2317,SC2119,SC2086,SC2016 # t_run calls them; no arguments; no blanks; awk
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

GROUP6=ff15::4b69

# Host c behind b, on a link with a larger MTU than kip0 can have
on_c() { on_b nsenter --net=/run/netns/c -- "$@"; }

c_up() {
	on_b ip netns add c &&
		on_b ip link add vb mtu 65535 type veth peer name vc netns c mtu 65535 &&
		on_b ip addr add 10.10.0.1/24 dev vb && on_b ip addr add fd10::1/64 dev vb nodad &&
		on_b ip link set vb up && on_c ip link set lo up &&
		on_c ip addr add 10.10.0.2/24 dev vc && on_c ip addr add fd10::2/64 dev vc nodad &&
		on_c ip link set vc up && on_c ip route add default via 10.10.0.1 &&
		on_c ip route add default via fd10::1 &&
		on_b sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 &&
		on_a ip route add 10.10.0.0/24 via $KB4 && on_a ip route add fd10::/64 via $KB6
}

kip_ends() { on "$1" ip -o link show kip0 | grep -q "infiniband $2 "; }

gid() { echo "80:00:fc:f3:fd:$1:00:00:00:00:00:00:00:00:00:00:00:00:00:0$2"; }

# An IPv4 address that is good for the link only is none.
no_ipv4() {
	on_a ip addr flush dev eth0 scope global && on_a ip addr add $A6/64 dev eth0 nodad &&
		on_a ip addr add 169.254.77.1/16 dev eth0 scope link &&
		on_b ip addr flush dev eth0 scope global && on_b ip addr add $B6/64 dev eth0 nodad
}

# A pair of guests has further tests.
with_ipv4() {
	on_a ip addr flush dev eth0 scope global && on_b ip addr flush dev eth0 scope global &&
		on_a ip addr add $A4/24 dev eth0 && on_a ip addr add $A6/64 dev eth0 nodad &&
		on_b ip addr add $B4/24 dev eth0 && on_b ip addr add $B6/64 dev eth0 nodad
}

address() { kip_ends a "$(gid 77 1)" && kip_ends b "$(gid 77 2)"; }

first_ping() {
	kip_pings a $KB4 -s 60000 && kip_pings a $KB6 -s 60000 && kip_multicast a &&
		[ "$(kip_count a conn_established)" = 1 ]
}

# Without a group, multicasts go to the listed peers.
peers() {
	refused 'not supported' 'another address family' kip_set a group 239.1.1.1 &&
		kip_set a group none && kip_set b group none && kip_set a peers +$B6 || return 1
	on_a ip neigh flush dev kip0
	kip_pings a $KB4 && [ "$(kip_get b peers)" = "$A6 learned" ] && kip_multicast b &&
		kip_set a peers -$B6 && kip_set b peers -$A6 && kip_set a group $GROUP6 &&
		kip_set b group $GROUP6
}

# The interface keeps its address when the underlay gets another one. It takes the other one when
# the first is deleted and the other has passed duplicate address detection, whose end is not
# notified.
other_address() {
	on_a ip addr add fd78::1/64 dev eth0 && on_b ip addr add fd78::2/64 dev eth0 &&
		on_a ip addr add 10.77.0.1/24 dev eth0 && on_a ip addr del 10.77.0.1/24 dev eth0 || return 1
	kip_ends a "$(gid 77 1)" || return 1
	on_a ip addr del $A6/64 dev eth0 && on_b ip addr del $B6/64 dev eth0 &&
		wait_for 10 kip_ends a "$(gid 78 1)" && wait_for 10 kip_ends b "$(gid 78 2)" &&
		wait_for 10 kip_pings a $KB4 -W 1 -s 30000 || return 1
	on_a ip addr del fd78::1/64 dev eth0 &&
		wait_for 5 kip_has_no_carrier && on_a ip addr add fd78::1/64 dev eth0 &&
		wait_for 10 kip_ends a "$(gid 78 1)" && wait_for 10 kip_pings a $KB6 -W 1 -s 30000
}

kip_has_no_carrier() { on_a ip link show kip0 | grep -q NO-CARRIER; }

link_flaps() {
	case $KIW_KERNEL in uml*)
		! is_pair || { skip_this "UML's cable cannot be plugged in again"; return; } ;;
	esac
	on_b ip link set eth0 down || return 1
	on_b ip link set eth0 up && on_b ip addr replace fd78::2/64 dev eth0 &&
		wait_for 10 kip_ends b "$(gid 78 2)" && wait_for 40 kip_pings a $KB6 -W 1 -s 30000
}

forwards() {
	c_up && wait_for 10 kip_pings c $KA4 -W 1 -s 60000 -M "do" &&
		wait_for 10 kip_pings c $KA6 -W 1 -s 60000 -M "do" && kip_stream c a $KA4 4 &&
		kip_stream a c fd10::2 4
}

# RFC 4755 7.2: a's Receive MTU is smaller than the link's MTU at b
too_big() {
	on_a ip link set kip0 mtu 16384 && kip_set a rx_depth 32 && kip_set b rx_depth 32 &&
		wait_for 10 kip_pings b $KA4 -W 1 -s 16356 -M "do" || return 1
	on_c ping -q -c 3 -i 0.2 -W 1 -s 16357 -M "do" $KA4
	wait_for 3 c_has_mtu $KA4 || { on_c ip route get $KA4; return 1; }
	on_c ping -q -c 3 -i 0.2 -W 1 -s 16337 -M "do" $KA6
	wait_for 3 c_has_mtu $KA6 || { on_c ip route get $KA6; return 1; }
	kip_pings c $KA4 -s 16356 -M "do" && kip_pings c $KA6 -s 16336 -M "do" && kip_stream c a $KA6 4
}

c_has_mtu() { on_c ip route get "$1" | grep -q 'mtu 16384'; }

# Broadcasts stay on the link.
broadcast_stays() {
	local before
	before=$(c_received)
	on_a ping -q -c 3 -i 0.05 -W 1 -b 10.9.0.255
	on_a ping -q -c 3 -i 0.05 -W 1 -t 8 239.1.2.3 -I kip0
	[ $(($(c_received) - before)) -lt 3 ]
}

c_received() { on_c awk '/vc:/ { print $3 }' /proc/net/dev; }

# ------------------------------------------------------------------------------------

KIP_GROUP=$GROUP6
if ! load_ip || ! topo_up || ! rdma_up || ! no_ipv4 || ! ip_up; then bail "no interfaces"; fi
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
t_run "the address is that of IPv6" address
t_run "packets of both kinds, by connection and group" first_ping
t_run "a stream from a to b" kip_stream a b $KB4 8
t_run "a stream from b to a, IPv6" kip_stream b a $KA6 8
t_run "peers instead of a group" peers
t_run "other addresses of the underlay" other_address
t_run "the underlay goes down and up" link_flaps
t_run "forwarded packets" forwards
t_run "forwarded packets that are too long" too_big
t_run "broadcasts are not forwarded" broadcast_stays
t_run "nothing was lost" kip_is_sound
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
ip_down
rdma_down
on_b ip netns del c
t_run "addresses as before" with_ipv4
topo_down
t_run "unload" unload_ip
done_testing
