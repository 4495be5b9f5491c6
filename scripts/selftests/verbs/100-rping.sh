#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rping both ways, IPv4 and IPv6, sizes, several clients, wildcards, link-local
# TIMEOUT: 60
# CHECK-KERNELS: 6.1 newest
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# ping_pong SERVER CLIENT BIND ADDRESS [OPTIONS...]: a server on host SERVER at
# BIND ("-": wherever it listens by default), a client on CLIENT to ADDRESS.
# Both verify the data. The client shows it, so that pings can be counted.
ping_pong() {
	local server=$1 client=$2 bind=$3 addr=$4 status=0 ended=0
	local -a listen=(rping -s -V)
	shift 4
	[ "$bind" = - ] || listen+=(-a "$bind")
	spawn rping "$server" timeout "$(at_most 15)" "${listen[@]}" "$@"
	if wait_listen "$server" 7174; then
		rping_client on "$client" timeout "$(at_most 20)" rping -c -v -V -a "$addr" "$@" || status=1
		spawn_wait rping 10 || ended=$?
		rping_ended "$ended" "$T_DIR/rping.log" || { echo "server: $ended"; status=1; }
	else
		echo "nobody listens"
		spawn_stop rping
		status=1
	fi
	spawn_log rping
	return "$status"
}

both_ways() {
	local a=$1 b=$2
	shift 2
	ping_pong b a "$b" "$b" "$@" && ping_pong a b "$a" "$a" "$@"
}

sizes() {
	local size
	for size in 23 24 63 64 65 1023 1460 4095 4096 4097 32768 65535; do
		ping_pong b a "$B4" "$B4" -C 3 -S "$size" ||
			{ echo "size $size"; return 1; }
	done
}

# A server that stays, clients one after another. Not at once: rping keeps a new request in
# one variable until it has been taken up, and a second one that comes meanwhile is lost.
persistent() {
	local i status=0
	spawn server b timeout "$(at_most 15)" rping -s -P -a "$B4" -V -S 18000
	wait_listen b 7174 || { spawn_stop server; return 1; }
	for i in 1 2 3 4 5 6; do
		rping_client on_a timeout "$(at_most 15)" rping -c -v -V -a "$B4" -C 5 -S $((i * 3000)) ||
			{ echo "client $i"; status=1; }
	done
	spawn_running server || { echo "the server has gone"; spawn_log server; status=1; }
	spawn_stop server
	[ "$status" = 0 ] && wait_gone 5 is_listening b 7174
}

wildcard() {
	ping_pong b a - "$B4" -C 5 && ping_pong a b - "$A4" -C 5 &&
		ping_pong b a :: "$B6" -C 5
}

own_address() {
	ping_pong a a "$A4" "$A4" -C 5 -S 9000 && ping_pong a a - "$A4" -C 5 &&
		ping_pong b b "$B6" "$B6" -C 5
}

# link_local HOST: its address, with the interface, once it can be used
link_local() {
	on "$1" ip -6 -o addr show dev "$NETDEV" scope link -tentative |
		awk -v dev="$NETDEV" '{ split($4, part, "/"); print part[1] "%" dev }' | grep .
}

link_locals() {
	wait_for 5 link_local a && wait_for 5 link_local b &&
		both_ways "$(link_local a)" "$(link_local b)" -C 5 -S 5000
}

# The programs leave no objects behind.
nothing_left() {
	local kind
	for kind in qp cq mr cm_id; do
		if ! wait_gone 5 objects_of a "$kind" || ! wait_gone 5 objects_of b "$kind"; then
			on_a rdma resource show
			return 1
		fi
	done
}

# objects_of HOST KIND: prints the objects of programs.
objects_of() { on "$1" rdma resource show "$2" | grep -w pid; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "IPv4, both ways" both_ways "$A4" "$B4" -C 20 -S 100
t_run "IPv6, both ways" both_ways "$A6" "$B6" -C 20 -S 5000
t_run "sizes from 16 bytes to 64K" sizes
t_run "one server, several clients" persistent
t_run "wildcard listeners" wildcard
t_run "the host's own address" own_address
t_run "link-local addresses, both ways" link_locals
t_run "no objects are left" nothing_left
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
