#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a device follows its netdev: state, MTU, address, name, end
# TIMEOUT: 40
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

set_a() { ip -n a link set "$NETDEV" "$@"; }

# --- events -------------------------------------------------------------------

watch() {
	spawn watch a stdbuf -oL ibv_asyncwatch -d $DEV_A &&
		wait_for 5 has_objects $DEV_A ctx
}

saw() { grep -q -E -e "$1" "$T_DIR/watch.log"; }

# expect EVENT CMD...: CMD succeeds, and the watching program gets EVENT.
expect() {
	local event=$1 before
	shift
	before=$(grep -c "$event" "$T_DIR/watch.log")
	"$@" || return 1
	wait_for 5 more_events "$event" "$before" ||
		{ echo "no $event after: $*"; spawn_log watch; return 1; }
}

more_events() { [ "$(grep -c "$1" "$T_DIR/watch.log")" -gt "$2" ]; }

# --- port ---------------------------------------------------------------------

port_is() { link_shows "$DEV_A" "state $1 physical_state $2 "; }

devinfo_says() { ibv_devinfo -d "$DEV_A" | grep -q -E -e "$1"; }

follows_admin_state() {
	port_is ACTIVE LINK_UP || return 1
	expect PORT_ERR set_a down && wait_for 5 port_is DOWN DISABLED &&
		devinfo_says 'PORT_DOWN' || return 1
	expect PORT_ACTIVE set_a up && wait_for 5 port_is ACTIVE LINK_UP &&
		devinfo_says 'PORT_ACTIVE'
}

# The other end of the cable.
follows_carrier() {
	expect PORT_ERR ip -n b link set "$NETDEV" down && wait_for 5 port_is DOWN DISABLED &&
		expect PORT_ACTIVE ip -n b link set "$NETDEV" up && wait_for 5 port_is ACTIVE LINK_UP
}

follows_mtu() {
	local mtu shown
	while read -r mtu shown; do
		set_a mtu "$mtu" || return 1
		wait_for 5 devinfo_says "active_mtu:[[:space:]]*$shown " ||
			{ echo "MTU $mtu"; ibv_devinfo -d "$DEV_A"; return 1; }
	done <<-END
	9000 4096
	4096 4096
	2048 2048
	1500 1024
	1280 1024
	END
}

# --- address ------------------------------------------------------------------

mac_of_a() { ip netns exec a cat "/sys/class/net/$NETDEV/address"; }

gid_is_mac() {
	local mac
	mac=$(mac_of_a)
	echo "$mac $(gid_of "$DEV_A")"
	[ "$(gid_of "$DEV_A")" = "${mac//:/}00000000000000000000" ]
}

# rdma_cm of old kernels finds the device by this. Programs are not told: of iWARP
# devices, ib_core keeps this event for itself.
follows_address() {
	gid_is_mac && set_a address 02:11:22:33:44:55 || return 1
	[ "$(mac_of_a)" = 02:11:22:33:44:55 ] || { echo "still $(mac_of_a)"; return 1; }
	wait_for 5 gid_is_mac || { gid_is_mac; return 1; }
	ip -n a neigh flush all
	ip -n b neigh flush all
	wait_for 10 on_a ping -q -c 1 -W 1 "$B4" || { ip -n a neigh; ip -n b neigh; return 1; }
	rping_to b "$B4" -C 2 && rping_to a "$A4" -C 2
}

# --- name ---------------------------------------------------------------------

follows_name() {
	set_a down && set_a name wire0 && ip -n a link set wire0 up || return 1
	on_a rdma link show "$DEV_A"/1
	on_a rdma link show "$DEV_A"/1 | grep -q 'netdev wire0' || return 1
	wait_for 5 rdma_is_active a && wait_for 10 on_a ping -q -c 1 -W 1 "$B4" || return 1
	rping_to a "$A4" -C 2 || return 1
	ip -n a link set wire0 down && ip -n a link set wire0 name "$NETDEV" && set_a up &&
		wait_for 5 rdma_is_active a
}

# --- the end --------------------------------------------------------------------

gone() { ! link_exists "$1"; }

# A program that waits for events does not delay the removal, and gets an event.
follows_namespace() {
	ip netns add c && set_a netns c && wait_for 5 gone "$DEV_A" || return 1
	wait_for 5 saw DEVICE_FATAL || { spawn_log watch; return 1; }
	nsenter --net=/run/netns/c -- rdma link add "$DEV_A" type "$KIW_LINK_TYPE" \
		netdev "$NETDEV" && link_exists "$DEV_A" || return 1
	ip -n c link set "$NETDEV" netns a && wait_for 5 gone "$DEV_A" && ip netns del c
}

removed_with_netdev() {
	ip link add d0 type dummy && ip link set d0 up &&
		rdma link add kiw0 type "$KIW_LINK_TYPE" netdev d0 && link_exists kiw0 || return 1
	# This returns when nobody holds the netdev any more.
	timeout 30 ip link del d0 && wait_for 5 gone kiw0
}

# The core finds the device again by its name and netdev.
comes_again() {
	local round
	for round in 1 2 3; do
		echo "round $round"
		ip link add d0 type dummy && ip link set d0 up &&
			rdma link add kiw0 type "$KIW_LINK_TYPE" netdev d0 &&
			timeout 30 ip link del d0 && wait_for 5 gone kiw0 || return 1
	done
}

KTEST_HOLD=/sys/kernel/debug/kiwarp_ktest/hold

is_held() { [ "$(<"$KTEST_HOLD")" = 1 ]; }

# waits_inside PID FUNCTION: the process waits in the kernel, and no signal could wake it up. It waits
# in FUNCTION if the kernel tells. Starting a program can make it wait elsewhere.
waits_inside() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
	case ${stat##*) } in D*) ;; *) return 1 ;; esac
	! grep -q . "/proc/$1/stack" || grep -q "$2" "/proc/$1/stack"
}

# The registration of kiwh is held up, and so is that of kiw1, whose netdev has it already. The
# netdev tells only once that it leaves its namespace.
leaves_while_added() {
	local held added status=0
	log_mark
	ip netns add c && ip link add d0 type dummy && ip link add d1 type dummy &&
		echo kiwh >"$KTEST_HOLD" || return 1
	rdma link add kiwh type "$KIW_LINK_TYPE" netdev d0 &
	held=$!
	wait_for 10 is_held || status=1
	rdma link add kiw1 type "$KIW_LINK_TYPE" netdev d1 &
	added=$!
	wait_for 10 waits_inside "$added" nldev_newlink || status=1
	ip link set d1 netns c || status=1
	waits_inside "$added" nldev_newlink || status=1
	echo >"$KTEST_HOLD"
	wait "$held" && wait "$added" && link_exists kiwh || status=1
	log_says 'kiw1: kiwarp [0-9.]* on d1' || status=1
	wait_for 5 gone kiw1 || status=1
	rdma link delete kiwh
	ip link del d0
	ip netns del c
	return "$status"
}

# The core has found the netdev for the new device before it was deleted. Of a command that changes
# links, ip first asks the kernel whether it knows such commands, which takes rtnetlink's mutex, too.
# This ip has done so before the mutex is held. It deletes by the group: a name would have to be
# looked up.
deleted_before_added() {
	local held deleted added commands status=0
	ip link add d0 type dummy && ip link add d1 group 77 type dummy && mkfifo "$T_DIR/commands" ||
		return 1
	ip -batch - <"$T_DIR/commands" &
	deleted=$!
	exec {commands}>"$T_DIR/commands"
	echo link set dev d1 alias asked >&"$commands"
	wait_for 10 grep -q asked /sys/class/net/d1/ifalias || status=1
	echo kiwh rtnl >"$KTEST_HOLD" || status=1
	rdma link add kiwh type "$KIW_LINK_TYPE" netdev d0 &
	held=$!
	wait_for 10 is_held || status=1
	echo link del group 77 >&"$commands"
	exec {commands}>&-
	wait_for 10 waits_inside "$deleted" rtnetlink_rcv_msg || status=1
	LC_ALL=C rdma link add kiw1 type "$KIW_LINK_TYPE" netdev d1 >"$T_DIR/added" 2>&1 &
	added=$!
	wait_for 10 waits_inside "$added" nldev_newlink || status=1
	echo >"$KTEST_HOLD"
	wait "$held" && wait "$deleted" || status=1
	! wait "$added" || status=1
	cat "$T_DIR/added"
	grep -q 'No such device' "$T_DIR/added" && gone kiw1 && ! ip link show d1 || status=1
	rdma link delete kiwh
	ip link del d0
	return "$status"
}

# --- a listener that was there before -------------------------------------------

PORT=7010

# An unprivileged process with a wildcard listener, whose port it also occupies for TCP
holds_port() {
	chmod 666 /dev/infiniband/rdma_cm
	PYTHONPATH=$SELFTESTS PYTHONDONTWRITEBYTECODE=1 \
		setpriv --reuid 65534 --regid 65534 --clear-groups timeout 60 \
		python3 -c "import socket, time, rdmacm
tcp = socket.create_server(('', $PORT))
ident = rdmacm.Id(rdmacm.Channel())
ident.listen('0.0.0.0', $PORT, 8)
print('listens', flush=True)
time.sleep(60)" >"$T_DIR/holder.log" 2>&1 </dev/null &
	echo $! >"$T_DIR/holder.pid"
	wait_for 10 grep -q listens "$T_DIR/holder.log" || { spawn_log holder; return 1; }
}

listens_there() { ss -Hltn "sport = :7174" | grep -q "10.80.0.1:"; }

# Others can use the device. If adding the listener failed, rdma_cm would not know the device.
listener_in_the_way() {
	local status=0
	log_mark
	holds_port || { spawn_stop holder; return 1; }
	ip link add d0 type dummy && ip addr add 10.80.0.1/24 dev d0 && ip link set d0 up &&
		rdma link add kiw0 type "$KIW_LINK_TYPE" netdev d0 || status=1
	log_says "0.0.0.0:$PORT" || status=1
	timeout 30 rping -s -a 10.80.0.1 >"$T_DIR/server.log" 2>&1 </dev/null &
	echo $! >"$T_DIR/server.pid"
	wait_for 10 listens_there || { spawn_log server; status=1; }
	spawn_stop server
	spawn_stop holder
	ip link del d0 && wait_for 5 gone kiw0 || status=1
	return "$status"
}

# ------------------------------------------------------------------------------

if ! load_kiwarp || ! topo_up || ! rdma_up || ! modprobe kiwarp_ktest; then bail "no devices"; fi
watch || bail "ibv_asyncwatch does not start"
t_run "netdev down and up" follows_admin_state
t_run "carrier lost and found" follows_carrier
t_run "MTU" follows_mtu
t_run "hardware address" follows_address
t_run "name" follows_name
t_run "moved to another namespace" follows_namespace
t_run "the watching program can go" spawn_stop watch
t_run "a new device, and a listener whose port TCP has" listener_in_the_way
t_run "removed with its netdev" removed_with_netdev
t_run "three times the same again" comes_again
t_run "moved to another namespace while its device is being added" leaves_while_added
t_run "deleted before its device is added" deleted_before_added
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_del b
topo_down
t_run "unload" unload_kiwarp
done_testing
