#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: crossing Requests, peers that go and come, deletion under traffic
# TIMEOUT: 240
# CHECK-KERNELS: uml
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

ROUNDS=${KIW_SOAK:+1000}
ROUNDS=${ROUNDS:-10}

sum() { echo $(($(kip_count a "$1") + $(kip_count b "$1"))); }

# RFC 4755 3.3. Neighbours are permanent and the cable is long, so that the Requests meet.
crossing() {
	local a b status=0
	a=$(_in_sys a "cat /sys/class/net/kip0/address")
	b=$(_in_sys b "cat /sys/class/net/kip0/address")
	on_a ip neigh replace "$KB4" dev kip0 lladdr "$b" nud permanent
	on_b ip neigh replace "$KA4" dev kip0 lladdr "$a" nud permanent
	on_a tc qdisc add dev eth0 root netem delay 40ms
	on_b tc qdisc add dev eth0 root netem delay 40ms
	"$SELFTESTS/ip_crossing.py" "$ROUNDS" || status=1
	on_a tc qdisc del dev eth0 root
	on_b tc qdisc del dev eth0 root
	on_a ip neigh del "$KB4" dev kip0
	on_b ip neigh del "$KA4" dev kip0
	diag "crossed: $(sum conn_crossed_won) rejects, $(sum conn_crossed_lost) drops"
	[ "$status" = 0 ] && [ "$(sum conn_crossed_won)" -ge 1 ] && [ "$(sum conn_crossed_lost)" -ge 1 ]
}

# b restarts its interface silently. Its new Request replaces the old connection at a.
silent_restart() {
	local before
	kip_pings a "$KB4" || return 1
	before=$(kip_count a conn_replaced)
	on_b tc qdisc add dev eth0 root netem loss 100% || return 1
	on_b ip link set kip0 down && on_b ip link set kip0 up && on_b ip addr replace fd09::2/64 dev kip0 nodad
	on_b tc qdisc del dev eth0 root
	wait_for 10 kip_pings b "$KA4" -W 1 || return 1
	kip_pings a "$KB4" -s 50000 && [ $(($(kip_count a conn_replaced) + $(kip_count a conn_accepted))) -gt "$before" ]
}

orderly_restart() {
	local ended failed
	kip_pings a "$KB4" || return 1
	ended=$(kip_count a conn_ended)
	failed=$(kip_count a conn_failed)
	on_b ip link set kip0 down && wait_for 5 counts_more a conn_ended "$ended" || return 1
	[ "$(kip_count a conn_failed)" = "$failed" ] || { kip_counts a; return 1; }
	on_b ip link set kip0 up && wait_for 10 kip_pings a "$KB4" -W 1 -s 40000
}

# counts_more a|b NAME THAN
counts_more() { [ "$(kip_count "$1" "$2")" -gt "$3" ]; }

# Connecting to a node that does not exist fails.
nowhere() {
	local failed
	failed=$(kip_count a conn_failed)
	on_a ip neigh replace 10.9.0.50 dev kip0 nud permanent \
		lladdr 80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:32 || return 1
	must_fail kip_pings a 10.9.0.50 -W 1
	wait_for 10 counts_more a conn_failed "$failed" && on_a ip neigh del 10.9.0.50 dev kip0
}

# Nothing arrives any more: a notices it within 10 seconds, and connects again afterwards.
cut() {
	local before
	before=$(kip_count a conn_silent)
	kip_pings a "$KB4" && on_b tc qdisc add dev eth0 root netem loss 100% || return 1
	spawn pings a ping -q -i 0.2 "$KB4"
	wait_for 20 counts_more a conn_silent "$before" || { spawn_stop pings; on_b tc qdisc del dev eth0 root; return 1; }
	on_b tc qdisc del dev eth0 root
	spawn_stop pings
	wait_for 40 kip_pings a "$KB4" -W 1 -s 40000
}

# While there is no RDMA device, packets are sent as datagrams; then there is a connection again.
rdma_device() {
	spawn flood a ping -q -f -s 1500 "$KB4"
	wait_for 5 sent_more "$(kip_count a tx_messages)" || return 1
	rdma_del a && wait_for 10 kip_pings a "$KB4" -W 1 || return 1
	rdma_add a && wait_for 40 kip_pings a "$KB4" -W 1 -s 40000
	local status=$?
	spawn_stop flood
	return "$status"
}

# If connecting fails, long packets are dropped. After three failures the sender gets an error.
told() {
	local before status
	before=$(kip_count a tx_too_long)
	rdma_del b && kip_set a rx_depth 32 && wait_for 5 kip_pings a "$KB4" -W 1 &&
		must_fail kip_pings a "$KB4" -W 1 -s 5000 -M "do" &&
		[ "$(kip_count a tx_no_connection)" -ge 1 ] &&
		[ "$(kip_count a tx_too_long)" = "$before" ] && wait_for 20 is_told
	status=$?
	kip_counts a
	rdma_add b && wait_for 5 kip_listens b && kip_set a rx_depth 32 &&
		on_a ip route flush cache && wait_for 10 kip_pings a "$KB4" -W 1 -s 40000 -M "do" &&
		return "$status"
}

is_told() {
	must_fail on_a ping -c 1 -W 1 -s 5000 -M "do" "$KB4" && on_a ip route get "$KB4" | grep 'mtu 2044'
}

sent_more() { [ "$(kip_count a tx_messages)" -gt $(($1 + 100)) ]; }

# More than the workqueue ends at a time
ATTEMPTS=300

in_c() { ip netns exec c "$@"; }

# One whose address or route takes too long is made again when there is another packet.
attempts_begun() {
	in_c python3 "$SELFTESTS/many_peers.py" "$ATTEMPTS" kip0 || return 1
	[ "$(in_c ethtool -S kip0 | sed -n 's/^ *conn_requested: //p')" -ge "$ATTEMPTS" ]
}

# c: an interface whose peers do not answer. What it gives up does not wait for its peers.
silent_peers() {
	ip netns add c && ip -n c link add d0 type dummy && ip -n c addr add 10.80.0.1/16 dev d0 &&
		ip -n c link set d0 up && ip -n c link set lo up &&
		in_c rdma link add kiwc type "$KIW_LINK_TYPE" netdev d0 &&
		echo 60000 >/sys/class/infiniband/kiwc/policy/startup_ms &&
		ip -n c link add link d0 name kip0 mtu 1280 type kiwarp_ip &&
		in_c bash -c "cd /sys/class/net/kip0/kiwarp_ip && echo $ATTEMPTS >max_conns && echo 1 >rx_depth" &&
		ip -n c link set kip0 up &&
		wait_for 30 attempts_begun
}

other_listens() {
	local status=0
	silent_peers || { in_c ethtool -S kip0; status=1; }
	ip -n c link set kip0 down && on_a ip link set kip0 down || status=1
	wait_gone 10 kip_listens a || { echo "a's listener has not ended"; status=1; }
	on_a ip link set kip0 up && on_a ip addr replace fd09::1/64 dev kip0 nodad &&
		wait_for 10 kip_listens a && wait_for 10 kip_pings a "$KB4" -W 1 || status=1
	in_c rdma link delete kiwc
	ip netns del c
	return "$status"
}

# The interface moves to another namespace, as into a container; the underlay stays.
other_namespace() {
	local bad=0
	ip netns add c && on_b ip link set kip0 netns c || return 1
	ip -n c addr add 10.9.0.2/24 dev kip0 && ip -n c link set lo up && ip -n c link set kip0 up || bad=1
	wait_for 10 kip_pings a "$KB4" -W 1 -s 30000 || bad=1
	spawn flood a ping -q -f "$KB4"
	ip netns del c || bad=1
	spawn_stop flood
	wait_gone 10 kip_listens b || bad=1
	kip_add b && kip_set b group "$KIP_GROUP" && kip_up b && wait_for 10 kip_pings a "$KB4" -W 1 || bad=1
	return "$bad"
}

# A greater MTU and another depth end all connections, which senders are using at that time.
renewed() {
	local n status=1
	spawn flood a ping -q -f -s 20000 "$KB4"
	spawn stream a python3 -c '
import contextlib, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    with contextlib.suppress(OSError):
        s.sendto(bytes(1000), (sys.argv[1], 7777))' "$KB4"
	for ((n = 0; n < ROUNDS; n++)); do
		wait_for 20 sent_more "$(kip_count a tx_messages)" || break
		kip_set a rx_depth $((16 + n % 2)) || break
		wait_for 20 sent_more "$(kip_count a tx_messages)" || break
		on_a ip link set kip0 mtu 30000 || break
		on_a ip link set kip0 mtu 65520 || break
	done
	[ "$n" = "$ROUNDS" ] && status=0
	spawn_stop flood
	spawn_stop stream
	kip_set a rx_depth 32 && wait_for 10 kip_pings a "$KB4" -W 1 -s 40000 && return "$status"
}

available() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo
}
has_available() { [ "$(available)" -ge "$1" ]; }

# Each connection has 30 MiB for receives.
receives_freed() {
	local n before bad=0
	kip_set a rx_depth 32 && wait_for 10 kip_pings a "$KB4" -W 1 || return 1
	before=$(available)
	for n in 1 2 3 4 5; do
		kip_set a rx_depth $((512 - n)) && wait_for 10 kip_pings a "$KB4" -W 1 || bad=1
	done
	kip_set a rx_depth 32 && wait_for 10 kip_pings a "$KB4" -W 1 || bad=1
	wait_for 20 has_available $((before - 50)) || bad=1
	echo "MiB: $before, $(available)"
	return "$bad"
}

# What is refused leaves nothing behind (kmemleak).
listed_twice() {
	local n bad=0
	kip_set a peers "+$B4" || return 1
	for n in 1 2 3 4 5; do must_fail kip_set a peers "+$B4" || bad=1; done
	kip_set a peers "-$B4" && return "$bad"
}

deleted() {
	spawn flood a ping -q -f -s 20000 "$KB4"
	wait_for 5 sent_more "$(kip_count a tx_messages)" && on_b ip link del kip0 || return 1
	spawn_stop flood
	kip_add b && kip_set b group "$KIP_GROUP" && kip_up b && wait_for 10 kip_pings a "$KB4" -W 1
}

underlay_flaps() {
	on_b ip link set eth0 down || return 1
	on_b ip link show kip0 | grep -q NO-CARRIER || return 1
	on_b ip link set eth0 up && wait_for 40 kip_pings a "$KB4" -W 1 -s 30000
}

# c: a host on the cable of a and b, which can be there again. It has the same Ethernet address then:
# with another one, a would send to the former until it asks for it again.
c_up() {
	on_b ip link add link eth0 name mv0 address 02:77:00:00:00:03 type macvlan mode bridge &&
		on_b ip link set mv0 netns c name eth0 && ip -n c addr add 10.77.0.3/24 dev eth0 &&
		ip -n c link set eth0 up && in_c rdma link add kiwc type "$KIW_LINK_TYPE" netdev eth0 &&
		ip -n c link add link eth0 name kip0 type kiwarp_ip &&
		in_c bash -c "echo $KIP_GROUP >/sys/class/net/kip0/kiwarp_ip/group" &&
		ip -n c addr add 10.9.0.3/24 dev kip0 && ip -n c link set kip0 up &&
		wait_for 20 kip_pings a 10.9.0.3 -W 1 -s 30000
}

c_has_devices() { ip -n c link show kip0 || [ -e /sys/class/infiniband/kiwc ]; }

# The interface goes with its underlay, and so does the RDMA device.
underlay_deleted() {
	local status
	ip netns add c && ip -n c link set lo up && c_up &&
		spawn flood a ping -q -f -s 20000 10.9.0.3 &&
		wait_for 5 sent_more "$(kip_count a tx_messages)" && ip -n c link del eth0 &&
		wait_gone 10 c_has_devices && c_up
	status=$?
	spawn_stop flood
	in_c rdma link delete kiwc
	ip netns del c
	return "$status"
}

# Its interface does not keep the namespace
namespace_deleted() {
	spawn flood a ping -q -f -s 20000 "$KB4"
	wait_for 5 sent_more "$(kip_count a tx_messages)" || return 1
	rdma_del b
	ip netns del b
	spawn_stop flood
	wait_gone 20 on_a ip link show eth0
}

# ------------------------------------------------------------------------------------

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up; then bail "no interfaces"; fi
t_run "$ROUNDS times Requests at once" crossing
t_run "a peer that starts anew in order" orderly_restart
t_run "a peer that starts anew without a word" silent_restart
t_run "a peer that is cut off" cut
t_run "a peer that is not there" nowhere
t_run "$ATTEMPTS attempts of another interface end" other_listens
t_run "the RDMA device goes and comes under traffic" rdma_device
t_run "long packets while there is no connection" told
t_run "in another namespace, which goes under traffic" other_namespace
t_run "$ROUNDS times another depth and MTU under traffic" renewed
t_run "memory of receives" receives_freed
t_run "a peer that is listed twice" listed_twice
t_run "the interface is deleted under traffic" deleted
t_run "the underlay goes down and up" underlay_flaps
t_run "the underlay is deleted under traffic" underlay_deleted
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
t_run "the underlay's namespace goes under traffic" namespace_deleted
on_a ip link del kip0 2>/dev/null
rdma_del a 2>/dev/null
ip netns del a
t_run "unload" unload_ip
done_testing
