#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: RDMA devices that belong to one network namespace each, and move
# TIMEOUT: 60
# KERNELS: uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# In a namespace of its own /sys shows other devices.
within() { ip netns exec "$@"; }

# sees NAMESPACE DEV
sees() { within "$1" rdma link show "$2/1" >/dev/null 2>&1; }

cannot_use() { ! within "$1" ibv_devinfo -d "$2"; }

is_only_in() {
	local n
	for n in first a b; do
		if [ "$n" = "$1" ]; then
			sees "$n" "$2" || { echo "$2 is not in $n"; return 1; }
		elif sees "$n" "$2"; then
			echo "$2 is in $n"
			return 1
		fi
	done
}

nowhere() { ! sees first "$1" && ! sees a "$1" && ! sees b "$1"; }

all_gone() { ! sees first "$DEV_A" && ! sees first "$DEV_B"; }

move() { rdma dev set "$1" netns "$2"; }

move_back() { within "$1" rdma dev set "$2" netns first; }

# begin NAME NAMESPACE CMD...: as spawn, but with the namespace's /sys.
begin() {
	ip netns exec "$2" "${@:3}" >"$T_DIR/$1.log" 2>&1 </dev/null &
	echo $! >"$T_DIR/$1.pid"
}

listens() { within "$1" ss -Hltn "sport = :$2" | grep -q .; }

# serves NAMESPACE PORT CMD...: starts CMD as "server", and waits until it listens.
serves() {
	begin server "$1" timeout 60 "${@:3}"
	wait_for 10 listens "$1" "$2" || { spawn_log server; spawn_stop server; return 1; }
}

# pings SERVER_NS CLIENT_NS ADDRESS
pings() {
	serves "$1" 7174 rping -s -a "$3" -C 3 || return 1
	rping_client within "$2" timeout 50 rping -c -a "$3" -C 3 -v -V ||
		{ spawn_stop server; return 1; }
	spawn_wait server 10
	[ $? != 124 ]
}

# --- cases ----------------------------------------------------------------------

# The core puts a new device into the first namespace, wherever its netdev is.
begins_in_first() {
	is_only_in first "$DEV_A" && is_only_in first "$DEV_B" &&
		rdma link show "$DEV_A/1" && cannot_use a "$DEV_A"
}

# rdma_cm wants the device in the namespace of the address.
useless_apart() {
	must_fail within a timeout $((20 * ${KIW_SLOW:-1})) rping -c -a "$B4" -C 1 &&
		must_fail within a timeout $((20 * ${KIW_SLOW:-1})) rping -s -a "$A4" -C 1
}

together() {
	move "$DEV_A" a && move "$DEV_B" b && is_only_in a "$DEV_A" && is_only_in b "$DEV_B" &&
		within a rdma link show "$DEV_A/1" | grep -q "netdev $NETDEV" &&
		cannot_use first "$DEV_A" && pings b a "$B4" && pings a b "$A4"
}

# Its users get an event, and the device can be used again at once.
moves_while_watched() {
	begin watch a stdbuf -oL ibv_asyncwatch -d "$DEV_A"
	wait_for 10 grep -q "$DEV_A" "$T_DIR/watch.log" && move_back a "$DEV_A" &&
		is_only_in first "$DEV_A" && wait_for 10 grep -q DEVICE_FATAL "$T_DIR/watch.log" &&
		move "$DEV_A" a && is_only_in a "$DEV_A" && pings b a "$B4"
	local status=$?
	spawn_stop watch
	return "$status"
}

moves_under_load() {
	serves a 18515 ib_write_bw -R -F -d "$DEV_A" -D 50 || return 1
	unrefused a writes && move_back a "$DEV_A" && is_only_in first "$DEV_A"
	local status=$?
	[ "$status" = 0 ] || { spawn_stop server; spawn_stop client; return 1; }
	fails server && fails client && move "$DEV_A" a && is_only_in a "$DEV_A" && pings b a "$B4"
}

writes() {
	begin client b timeout 60 ib_write_bw -R -F -d "$DEV_B" -D 50 "$A4"
	wait_for 10 flows
}

# fails NAME: the program fails by itself, in bounded time.
fails() {
	local status=0
	spawn_wait "$1" 20 || status=$?
	case $status in 0 | 124) echo "$1: $status"; spawn_log "$1"; return 1 ;; esac
}

flows() {
	[ "$(within a rdma statistic show link "$DEV_A/1" |
		sed 's/.* rx_fpdus \([0-9]*\).*/\1/')" -gt 100 ]
}

renamed_in_use() {
	local status
	serves a 7174 rping -s -a "$A4" -C 2 && within a rdma dev set "$DEV_A" name other &&
		is_only_in a other && ! sees a "$DEV_A" &&
		rping_client within b timeout 30 rping -c -v -a "$A4" -C 2
	status=$?
	spawn_wait server 10
	within a rdma dev set other name "$DEV_A" && return "$status"
}

# When the netdev leaves its namespace, its device is removed, in whichever namespace it is.
netdev_leaves() {
	local status
	ip netns add c && ip -n a link set "$NETDEV" netns c && wait_for 10 nowhere "$DEV_A" &&
		ip -n c link set "$NETDEV" netns a
	status=$?
	ip netns del c
	ip -n a addr add "$A4/24" dev "$NETDEV"
	ip -n a link set "$NETDEV" up
	rdma_add a && move "$DEV_A" a && is_only_in a "$DEV_A" && return "$status"
}

# Both at once, in any order: no device stays on a netdev that has moved.
both_move() {
	local round mover
	ip netns add c
	for round in 1 2 3 4 5 6; do
		ip -n a link add d0 type dummy && ip -n a link set d0 up &&
			on_a rdma link add kiw0 type "$KIW_LINK_TYPE" netdev d0 || return 1
		(move kiw0 a; move_back a kiw0) >"$T_DIR/mover.log" 2>&1 &
		mover=$!
		[ $((round % 2)) = 1 ] || _pause 0.02
		ip -n a link set d0 netns c || return 1
		wait "$mover"
		wait_for 10 nowhere kiw0 || { echo "round $round"; rdma link show; return 1; }
		ip -n c link del d0 || return 1
	done
	ip netns del c
}

# When a namespace ends, the core moves the device to the initial one, and it is removed with its
# netdev.
namespace_ends() {
	local pids
	ip netns add c && ip -n c link add d0 type dummy && ip -n c addr add 10.79.0.1/24 dev d0 &&
		ip -n c link set d0 up && within c rdma link add kiw0 type "$KIW_LINK_TYPE" netdev d0 &&
		move kiw0 c && sees c kiw0 || return 1
	if [ "$1" = busy ]; then
		serves c 7174 rping -s -a 10.79.0.1 || return 1
	fi
	mapfile -t pids < <(ip netns pids c)
	ip netns del c || return 1
	[ "${#pids[@]}" = 0 ] || kill -9 "${pids[@]}"
	[ "${#pids[@]}" = 0 ] || spawn_wait server 5
	wait_for 20 nowhere kiw0
}

# ------------------------------------------------------------------------------

load_kiwarp || bail "no module"
ip netns attach first 1 || bail "the first namespace gets no name"
# The core refuses while a namespace of the test before is still being deleted.
wait_for 20 rdma system set netns exclusive || bail "the mode cannot be changed"
if ! topo_up || ! rdma_add a || ! rdma_add b; then bail "no devices"; fi
t_run "a device begins in the first namespace" begins_in_first
t_run "device and netdev apart" useless_apart
t_run "device and netdev together" together
t_run "moved while a program watches" moves_while_watched
t_run "moved under load" moves_under_load
t_run "renamed while a program listens" renamed_in_use
t_run "the netdev moves alone" netdev_leaves
t_run "both move at once" both_move
t_run "a namespace ends with an idle device" namespace_ends idle
t_run "a namespace ends with a listener" namespace_ends busy
t_run "a namespace with devices is deleted" topo_down
t_run "their devices go" wait_for 10 all_gone
ip netns del first
t_run "shared again" wait_for 10 rdma system set netns shared
t_run "unload" unload_kiwarp
done_testing
