#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma_rxe beside devices of the type kiwarp-ext, which have its driver id
# TIMEOUT: 120
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

KIW_LINK_TYPE=kiwarp-ext
PORT=18515
# Where `ibv_rc_pingpong` finds the address of a device among its GIDs
declare -A GIDS

# The GIDs of RoCE are made of addresses. ib_core takes the peer's, where one is given with the
# address, as ulp_topo_up does. So the hosts have routes instead.
addresses() {
	ip addr del "$A4" peer "$B4/32" dev "$NETDEV" && ip addr add "$A4/32" dev "$NETDEV" &&
		ip addr del "$B4" peer "$A4/32" dev "$NETDEV_B" &&
		ip addr add "$B4/32" dev "$NETDEV_B" && routes
}

routes() {
	ip route replace "$B4" dev "$NETDEV" src "$A4" && ip route replace "$A4" dev "$NETDEV_B" src "$B4"
}

# Packets to RoCE's port, of all opcodes. rdma_rxe looks for a device of its own on the netdev.
roce() {
	python3 - "$A4" <<-'END'
		import os, socket, sys
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for n in range(1024):
		    packet = bytes([n % 256, 0x40, 0xff, 0xff, 0, 0, n // 256, n % 256]) + os.urandom(60)
		    sock.sendto(packet, (sys.argv[1], 4791))
	END
}

changes() {
	ip link set "$NETDEV" mtu 1280 && ip link set "$NETDEV" down && ip link set "$NETDEV" up &&
		routes && ip link set "$NETDEV" mtu "$ULP_MTU" && wait_for 10 ping -q -c 1 -W 1 "$B4" &&
		wait_for 5 rdma_is_active a
}

alone() { modprobe rdma_rxe && roce && changes && roce && link_exists "$DEV_A"; }

on_one_netdev() {
	rdma link add rxe0 type rxe netdev "$NETDEV" && link_exists "$DEV_A" && link_exists rxe0 &&
		roce && changes && roce && rdma link delete rxe0 && link_exists "$DEV_A"
}

# --- traffic of ours, which is verified, until it is stopped -----------------------

ours_start() {
	spawn ours-server b rping -s -a "$B4" -V -S 4000 && wait_listen b 7174 &&
		spawn ours-client a rping -c -a "$B4" -V -S 4000 && ours_move
}

_octets_beyond() { [ "$(counter "$DEV_A" rx_bytes)" -gt "$1" ]; }

# It goes on, in both directions, as rping does only if all of it was right.
ours_move() {
	local now
	now=$(counter "$DEV_A" rx_bytes) && wait_for 10 _octets_beyond $((now + 100000)) &&
		spawn_running ours-client && spawn_running ours-server && return
	spawn_log ours-client
	spawn_log ours-server
	return 1
}

ours_run() { spawn_running ours-client || spawn_running ours-server; }

ours_stop() {
	ours_move || return 1
	spawn_stop ours-client
	spawn_stop ours-server
	nothing_left "$DEV_A" "$DEV_B"
}

# --- traffic of rdma_rxe ------------------------------------------------------------

# gid_index DEV ADDRESS: the GID of RoCE version 2 with that address
gid_index() {
	local dir=/sys/class/infiniband/$1/ports/1 octets end n
	IFS=. read -ra octets <<<"$2"
	printf -v end 'ffff:%02x%02x:%02x%02x' "${octets[@]}"
	for n in {0..9}; do
		grep -q "$end" "$dir/gids/$n" && grep -q 'RoCE v2' "$dir/gid_attrs/types/$n" &&
			echo "$n" && return
	done 2>/dev/null
	grep . "$dir/gids"/{0..9} >&2
	return 1
}

_has_gids() { GIDS[rxe0]=$(gid_index rxe0 "$A4") && GIDS[rxe1]=$(gid_index rxe1 "$B4"); }

rxe_up() {
	rdma link add rxe0 type rxe netdev "$NETDEV" && rdma link add rxe1 type rxe netdev "$NETDEV_B" &&
		{ wait_for 10 _has_gids || { _has_gids; return 1; }; }
}

rxe_down() { rdma link delete rxe0 && rdma link delete rxe1; }

rxe_packets() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/rcvd_pkts"; }

# pingpong NAME HOST DEV ARGUMENT...
pingpong() {
	spawn "$1" "$2" ibv_rc_pingpong -d "$3" -g "${GIDS[$3]}" -p "$PORT" -s 4000 -c -e "${@:4}"
}

# pingpong_start COUNT, pingpong_end: between both hosts; the server looks at the data
pingpong_start() {
	pingpong rxe-server b rxe1 -n "$1" && wait_listen b "$PORT" &&
		pingpong rxe-client a rxe0 -n "$1" "$B4"
}

pingpong_end() {
	local status=0 name
	for name in client server; do
		spawn_wait "rxe-$name" 40 || status=$?
		spawn_log "rxe-$name"
		! grep -q 'invalid data' "$T_DIR/rxe-$name.log" || status=1
	done
	return "$status"
}

# The packets go over the cable: rdma_rxe counts those that it receives.
roce_works() {
	local before after
	before=$(rxe_packets rxe0)
	pingpong_start 200 && pingpong_end || return 1
	after=$(rxe_packets rxe0)
	echo "$((after - before)) packets"
	[ $((after - before)) -ge 200 ]
}

both() { rxe_up && roce_works && ours_move && roce_works; }

# Devices of rdma_rxe come and go.
rxe_again() { rxe_down && ours_move && rxe_up && roce_works && rxe_down && ours_move; }

has_received() { [ "$(rxe_packets rxe0)" -gt "$1" ]; }

# Can rdma_rxe not take a device away from a program?
keeps_module() { ! grep -q ' rxe_disassociate_ucontext' /proc/kallsyms; }

# If not, a program that has opened a device keeps the module. Traffic of both goes on in any case.
in_use() {
	local before
	rxe_up && before=$(rxe_packets rxe0) && pingpong_start 1000000 &&
		wait_for 10 has_received "$before" || return 1
	! keeps_module || refused 'in use' '' rmmod rdma_rxe || return 1
	ours_move && spawn_running rxe-client && spawn_running rxe-server || return 1
	spawn_stop rxe-client
	spawn_stop rxe-server
	ours_move
}

# ib_unregister_driver() takes all devices of the driver id. The programs see theirs go, and end.
# With lockdep, the sockets of 7.3's rdma_rxe keep it, so its own devices have to go first.
removed() {
	{ [ "$(cat /sys/module/rdma_rxe/refcnt)" = 0 ] || rxe_down; } &&
		{ wait_for 5 modprobe -r rdma_rxe || modprobe -r rdma_rxe; } &&
		wait_gone 10 link_exists "$DEV_A" &&
		wait_gone 10 link_exists "$DEV_B" && wait_gone 10 ours_run
	spawn_log ours-client
	spawn_log ours-server
	! ours_run
}

added_again() { rdma_up && ours_start && modprobe rdma_rxe && ours_move; }

unloaded_first() { ours_stop && rdma_down && rxe_down && modprobe -r rdma_rxe; }

{ load_kiwarp && ulp_topo_up && addresses && rdma_up; } || bail "no two hosts"
t_run "rdma_rxe does not take packets or events of ours" alone
t_run "both on one netdev" on_one_netdev
t_run "traffic of ours" ours_start
t_run "RoCE on the same cable" both
t_run "rdma_rxe's devices go and come back" rxe_again
t_run "rdma_rxe cannot be unloaded while it is in use" in_use
t_run "rdma_rxe takes our devices along" removed
t_run "they come back, and so does rdma_rxe" added_again
t_run "RoCE on the same cable again" both
t_run "the end of both" unloaded_first
ulp_topo_down
t_run "unload" unload_kiwarp
done_testing
