#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: devices and their sockets belong to the netdev's network namespace
# TIMEOUT: 40
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

gone() { ! link_exists "$1"; }

in_c() { nsenter --net=/run/netns/c -- "$@"; }

# --- adding ---------------------------------------------------------------------

# As an administrator would do it: ip mounts another /sys.
add_in_netns() {
	ip netns exec a rdma link add kiwx type "$KIW_LINK_TYPE" netdev x0 &&
		ip netns exec a rdma link show kiwx/1 | grep -q 'netdev x0' && rdma link delete kiwx
}

# The netdev is looked up in the caller's namespace.
not_from_outside() {
	refused 'No such device' '' rdma link add kiwx type "$KIW_LINK_TYPE" netdev x0 &&
		refused 'No such device' '' on_b rdma link add kiwx type "$KIW_LINK_TYPE" netdev x0
}

# As long as namespaces share devices, the name of a device is unique in all of them.
names_are_global() {
	refused 'File exists' '' on_a rdma link add "$DEV_B" type "$KIW_LINK_TYPE" netdev x0
}

# --- sockets --------------------------------------------------------------------

listens() { ss -Hltn "sport = :$1" | grep .; }

listener() {
	local bad=0
	spawn server a rping -s -a "$A4" && wait_listen a 7174 || return 1
	on_a ss -Hltn 'sport = :7174' | grep -q "$A4:7174" || bad=1
	if listens 7174; then echo "listens in the first namespace"; bad=1; fi
	if is_listening b 7174; then echo "listens in b"; bad=1; fi
	spawn_stop server
	wait_gone 5 is_listening a 7174 || { echo "listens for ever"; bad=1; }
	return "$bad"
}

connection() {
	local bad=0
	spawn server a rping -s -a "$A4" && wait_listen a 7174 &&
		spawn client b rping -c -a "$A4" || return 1
	wait_for 5 established a && wait_for 5 established b || bad=1
	if ss -Htn 'sport = :7174 or dport = :7174' | grep .; then bad=1; fi
	spawn_stop client
	spawn_wait server 10
	nothing_left "$DEV_A" "$DEV_B" || bad=1
	return "$bad"
}

established() { on "$1" ss -Htn state established '( sport = :7174 or dport = :7174 )' | grep -q .; }

# A rule of a namespace applies to the connections of its devices, and to no others.
firewall() {
	local bad=0
	spawn server a rping -s -a "$A4" && wait_listen a 7174 &&
		on_a nft "add table inet kiw; add chain inet kiw in { type filter hook input priority 0; };
			add rule inet kiw in tcp dport 7174 counter reject with tcp reset" || return 1
	if on_b timeout 30 rping -c -a "$A4" -C 1; then echo "the rule is ignored"; bad=1; fi
	on_a nft list table inet kiw | grep -q 'packets [1-9]' || { echo "no packet met it"; bad=1; }
	rping_to b "$B4" -C 1 || { echo "the rule is for b, too"; bad=1; }
	on_a nft delete table inet kiw &&
		rping_client on_b timeout 30 rping -c -v -a "$A4" -C 1 || bad=1
	spawn_wait server 10
	return "$bad"
}

# A program that listens from outside on the device's address, and one inside
# that connects: the sockets are the device's.
two_ports() {
	spawn server a rping -s -a "$A4" -p 7001 && spawn other b rping -s -a "$B4" -p 7001 &&
		wait_listen a 7001 && wait_listen b 7001 || return 1
	rping_client on_b timeout 30 rping -c -v -a "$A4" -p 7001 -C 2 &&
		rping_client on_a timeout 30 rping -c -v -a "$B4" -p 7001 -C 2
	local status=$?
	spawn_wait server 10
	spawn_wait other 10
	return "$status"
}

# --- the end of a namespace -------------------------------------------------------

third() {
	ip netns add c && ip -n c link set lo up && ip -n c link add d0 type dummy &&
		ip -n c addr add 10.79.0.1/24 dev d0 && ip -n c link set d0 up &&
		in_c rdma link add kiwc type "$KIW_LINK_TYPE" netdev d0 && link_exists kiwc
}

idle_end() { third && ip netns del c && wait_for 10 gone kiwc; }

# A namespace that is in use exists without its name, until its last user is gone.
used_end() {
	third && spawn server c rping -s -a 10.79.0.1 && wait_for 5 has_objects kiwc cm_id &&
		ip netns del c && link_exists kiwc || return 1
	kill -9 "$(cat "$T_DIR/server.pid")"
	spawn_wait server 5
	wait_for 20 gone kiwc
}

# The same with a connection, to the host's own address.
connected_end() {
	third && spawn server c rping -s -a 10.79.0.1 && wait_for 5 has_objects kiwc cm_id &&
		spawn client c rping -c -a 10.79.0.1 && wait_for 5 has_objects kiwc qp &&
		ip netns del c && link_exists kiwc || return 1
	kill -9 "$(cat "$T_DIR/server.pid")" "$(cat "$T_DIR/client.pid")"
	spawn_wait server 5
	spawn_wait client 5
	wait_for 20 gone kiwc
}

# The sockets of processes hold their namespace as any others do, also when the process is gone and
# the stream waits for its peer, which is elsewhere.
lingering_end() {
	local status=0
	ip netns add c && ip -n c link set lo up &&
		ip link add d0 netns c type veth peer name c0 netns b &&
		ip -n c addr add 10.79.0.1/24 dev d0 && ip -n c link set d0 up &&
		ip -n b addr add 10.79.0.2/24 dev c0 && ip -n b link set c0 up &&
		in_c rdma link add kiwc type "$KIW_LINK_TYPE" netdev d0 && link_exists kiwc || return 1
	spawn server c rping -s -P -a 10.79.0.1 && wait_for 5 has_objects kiwc cm_id || return 1
	mkfifo "$T_DIR/hold" && exec {HOLD}<>"$T_DIR/hold"
	on_b env PYTHONDONTWRITEBYTECODE=1 python3 "$SELFTESTS/refused.py" 10.79.0.1 7174 1 \
		<"$T_DIR/hold" >"$T_DIR/caller.log" 2>&1 {HOLD}>&- &
	wait_for 10 grep -q 'done' "$T_DIR/caller.log" || status=1
	ip netns del c
	kill -9 "$(cat "$T_DIR/server.pid")"
	spawn_wait server 5
	wait_for 20 gone kiwc || status=1
	exec {HOLD}>&-
	wait "$!"
	return "$status"
}

# ------------------------------------------------------------------------------

if ! load_kiwarp || ! topo_up || ! rdma_up; then bail "no devices"; fi
if ! ip -n a link add x0 type dummy || ! ip -n a link set x0 up; then bail "no dummy"; fi
t_run "add and delete with ip netns exec" add_in_netns
t_run "a netdev of another namespace" not_from_outside
t_run "a name of another namespace" names_are_global
t_run "the listener's namespace" listener
t_run "the connection's namespace" connection
t_run "the firewall of a namespace" firewall
t_run "the same port in two namespaces" two_ports
t_run "a namespace ends with an idle device" idle_end
t_run "a namespace ends with a listener" used_end
t_run "a namespace ends with a connection" connected_end
t_run "a namespace ends with a lingering stream" lingering_end
t_run "the others work" rping_to a "$A4" -C 2
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
