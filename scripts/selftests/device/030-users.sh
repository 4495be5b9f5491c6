#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: devices, netdevs and the module go, and programs die, while in use
# TIMEOUT: 80
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# --- programs -----------------------------------------------------------------

pid_of() { cat "$T_DIR/$1.pid"; }

watching() {
	spawn watch a ibv_asyncwatch -d "$DEV_A" && wait_for 5 has_objects "$DEV_A" ctx
}

listening() { spawn server a rping -s -a "$A4" -V && wait_listen a 7174; }

# DEV has received more than N FPDUs.
received() { [ "$(counter "$1" rx_fpdus)" -gt "$2" ]; }

# flows DEV: DEV receives data.
flows() {
	wait_for 60 received "$1" "$(($(counter "$1" rx_fpdus) + 20))" ||
		{ echo "nothing comes to $1"; return 1; }
}

connected() {
	listening && spawn client b rping -c -a "$A4" -V && flows "$DEV_A"
}

# A bandwidth test that runs for longer than the case.
under_traffic() {
	spawn server a ib_write_bw -R -F -d "$DEV_A" -D 120 && wait_listen a 18515 &&
		unrefused a writes
}

writes() { spawn client b ib_write_bw -R -F -d "$DEV_B" -D 120 "$A4" && flows "$DEV_A"; }

# ends NAME...: the programs end by themselves, in bounded time.
ends() {
	local name
	for name in "$@"; do
		spawn_wait "$name" 10
		[ $? != 124 ] || { echo "$name does not end"; spawn_log "$name"; return 1; }
	done
}

# fails NAME...: the same, with a status other than 0.
fails() {
	local name status
	for name in "$@"; do
		spawn_wait "$name" 10
		status=$?
		[ "$status" != 124 ] || echo "$name does not end"
		case $status in 0 | 124) spawn_log "$name"; return 1 ;; esac
	done
}

# killed NAME...: kills the programs, which have no chance to clean up.
killed() {
	local name
	for name in "$@"; do
		kill -9 "$(pid_of "$name")" || return 1
		spawn_wait "$name" 5
		[ $? = 137 ] || { echo "$name was not killed"; return 1; }
	done
}

stopped() { kill -STOP "$(pid_of server)" "$(pid_of client)"; }

# --- devices --------------------------------------------------------------------

gone() { ! link_exists "$1"; }

again() { rdma_add "$1" && wait_for 5 rdma_is_active "$1"; }

# The core waits for a device's users, so this must not take long.
delete_a() { timeout 30 rdma link delete "$DEV_A" && gone "$DEV_A"; }

# --- module -------------------------------------------------------------------

refuses_unload() { refused 'in use' '' rmmod "${KIW_LINK_TYPE%-ext}" && link_exists "$DEV_A"; }

unload_while_open() {
	watching || return 1
	refuses_unload || { spawn_stop watch; return 1; }
	spawn_stop watch
	nothing_left "$DEV_A"
}

unload_while_connected() {
	connected || return 1
	if ! refuses_unload || ! flows "$DEV_A"; then
		killed client server
		return 1
	fi
	killed client && ends server && nothing_left "$DEV_A" "$DEV_B"
}

# Links that nobody uses go with it.
unload_idle() {
	unload_kiwarp && gone "$DEV_A" && gone "$DEV_B" && load_kiwarp && rdma_up
}

# A burst needs many pages. A timer of the pool gives them back a second or two later.
unload_after_burst() {
	local status=0
	on_b tc qdisc add dev "$NETDEV" root netem delay 50ms limit 10000 || return 1
	under_traffic && wait_for 60 received "$DEV_A" 2000 && stopped &&
		killed client server && nothing_left "$DEV_A" "$DEV_B" && unload_idle || status=1
	on_b tc qdisc del dev "$NETDEV" root
	return "$status"
}

# --- link delete -----------------------------------------------------------------

delete_watched() {
	watching && delete_a && wait_for 5 grep -q DEVICE_FATAL "$T_DIR/watch.log" || return 1
	spawn_stop watch
	again a
}

delete_listening() {
	listening && delete_a && ends server || return 1
	wait_gone 5 is_listening a 7174 && again a
}

delete_connected() {
	connected && delete_a && ends server client && nothing_left "$DEV_B" && again a
}

delete_under_traffic() {
	under_traffic && delete_a && fails server client && nothing_left "$DEV_B" && again a
}

# --- sudden death -----------------------------------------------------------------

kill_listening() { listening && killed server && nothing_left "$DEV_A"; }

# Stopped programs do not help to bring the connection down.
kill_connected() {
	connected && stopped && killed client server && nothing_left "$DEV_A" "$DEV_B"
}

kill_client() {
	connected && killed client && ends server && nothing_left "$DEV_A" "$DEV_B"
}

kill_server() {
	connected && killed server && ends client && nothing_left "$DEV_A" "$DEV_B"
}

kill_sender() {
	under_traffic && killed client && fails server && nothing_left "$DEV_A" "$DEV_B"
}

kill_receiver() {
	under_traffic && killed server && fails client && nothing_left "$DEV_A" "$DEV_B"
}

# The same port can be used at once.
still_works() { rping_to a "$A4" -C 3 && nothing_left "$DEV_A" "$DEV_B"; }

# --- netdev -----------------------------------------------------------------------

# TCP bridges a short outage.
survives_outage() {
	connected && ip -n a link set "$NETDEV" down && wait_gone 5 rdma_is_active a &&
		ip -n a link set "$NETDEV" up && wait_for 5 rdma_is_active a &&
		flows "$DEV_A" && killed client && ends server && nothing_left "$DEV_A" "$DEV_B"
}

# Both ends of the cable go.
remove_netdev() {
	under_traffic && timeout 60 ip -n a link del "$NETDEV" &&
		wait_for 10 gone "$DEV_A" && wait_for 10 gone "$DEV_B" && fails server client
}

remove_netdev_connected() {
	connected && timeout 60 ip -n a link del "$NETDEV" &&
		wait_for 10 gone "$DEV_A" && wait_for 10 gone "$DEV_B" && ends server client
}

# ------------------------------------------------------------------------------

if ! load_kiwarp || ! topo_up || ! rdma_up; then bail "no devices"; fi
t_run "unload is refused while a program has the device open" unload_while_open
t_run "unload is refused while connected" unload_while_connected
t_run "unload with idle links" unload_idle
t_run "unload after a burst" unload_after_burst
t_run "link delete while a program watches" delete_watched
t_run "link delete while a program listens" delete_listening
t_run "link delete while connected" delete_connected
t_run "link delete under traffic" delete_under_traffic
t_run "kill -9 while listening" kill_listening
t_run "kill -9 of both ends at once" kill_connected
t_run "kill -9 of a connected client" kill_client
t_run "kill -9 of a connected server" kill_server
t_run "kill -9 of a sender" kill_sender
t_run "kill -9 of a receiver" kill_receiver
t_run "it works as before" still_works
t_run "a short outage of the netdev" survives_outage
t_run "netdev removed while connected" remove_netdev_connected
topo_down
if ! topo_up || ! rdma_up; then bail "no devices"; fi
t_run "netdev removed under traffic" remove_netdev
topo_down
t_run "unload" unload_kiwarp
done_testing
