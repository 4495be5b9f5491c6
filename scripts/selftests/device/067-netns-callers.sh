#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: programs of other network namespaces get no socket in a device's
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

listens_nowhere() { ! is_listening a "$1" && ! is_listening b "$1"; }

# waits NAME CMD...: starts CMD in the background, and waits until it has an rdma_cm listener.
waits() {
	local name=$1 before
	shift
	before=$(listeners)
	"$@" >"$T_DIR/$name.log" 2>&1 </dev/null &
	echo $! >"$T_DIR/$name.pid"
	wait_for 10 more_listeners "$before" || { spawn_log "$name"; spawn_stop "$name"; return 1; }
}

listeners() { rdma res show cm_id | grep -c 'state LISTEN'; }

more_listeners() { [ "$(listeners)" -gt "$1" ]; }

# calls a|b ADDRESS [PORT]: a client on that host connects and is served.
calls() {
	rping_client on "$1" timeout 30 rping -c -a "$2" -p "${3:-7174}" -v -C 2
}

# --- wildcards ------------------------------------------------------------------

# In the first namespace there is no device.
from_the_first() {
	local status=0
	waits server rping -s || return 1
	listens_nowhere 7174 || status=1
	spawn_stop server
	return "$status"
}

in_its_own_only() {
	local status=0
	waits server nsenter --net=/run/netns/a -- rping -s -a "$1" || return 1
	is_listening a 7174 || { echo "does not listen"; status=1; }
	if is_listening b 7174; then echo "listens in b"; status=1; fi
	calls b "$2" || status=1
	spawn_stop server
	return "$status"
}

same_port_twice() {
	local status=0
	spawn server a timeout 60 rping -s -p 7001 && wait_listen a 7001 &&
		spawn other b timeout 60 rping -s -p 7001 && wait_listen b 7001 || status=1
	calls b "$A4" 7001 || status=1
	calls a "$B4" 7001 || status=1
	spawn_stop server
	spawn_stop other
	return "$status"
}

# If TCP uses the port in this namespace, listening fails for all devices; elsewhere it does not.
port_of_another() {
	local status=0
	spawn tcp b python3 -c "import socket, time
s = socket.create_server(('', 7002)); time.sleep(60)"
	wait_listen b 7002 || return 1
	on_b timeout 30 rping -s -p 7002 >"$T_DIR/busy.log" 2>&1 && status=1
	grep 'Address already in use' "$T_DIR/busy.log" || status=1
	spawn server a timeout 60 rping -s -p 7002
	wait_listen a 7002 || status=1
	calls b "$A4" 7002 || status=1
	spawn_stop server
	spawn_stop tcp
	return "$status"
}

# num_listening HOST PORT COUNT
num_listening() { [ "$(on "$1" ss -Hltn "sport = :$2" | wc -l)" = "$3" ]; }

# A device that comes later gets a socket of a listener of its namespace, and of no other.
later_devices() {
	local status=0
	waits server nsenter --net=/run/netns/a -- rping -s || return 1
	ip -n a link add x0 type dummy && ip -n b link add x0 type dummy &&
		rdma_add a x0 kiwx && rdma_add b x0 kiwy || status=1
	wait_for 10 num_listening a 7174 2 || status=1
	num_listening b 7174 0 || status=1
	ip -n a link del x0
	ip -n b link del x0
	wait_for 10 num_listening a 7174 1 || status=1
	spawn_stop server
	return "$status"
}

# --- an interface like the device's -----------------------------------------------

# What a user without rights can make: a namespace with the device's hardware address and the
# host's IP address. rdma_cm of Linux 6.1 takes it for the device. In a subshell.
# shellcheck disable=SC2016 # for the inner shell
likeness() {
	exec setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urn timeout 40 bash -c '
		ip link set lo up && ip link add d0 type dummy && ip link set d0 address "$1" &&
			ip addr add "$2/24" dev d0 && ip link set d0 up || exit 200
		shift 2
		exec "$@"' - "$(on_a ip -o link show "$NETDEV" | sed 's/.*link.ether \([^ ]*\).*/\1/')" "$A4" "$@"
}

# fails_as_likeness CMD...: CMD fails with the look-alike interface, and not because that could not
# be made. rping does not always end when it cannot connect.
fails_as_likeness() {
	local status=0
	(likeness "$@") >"$T_DIR/likeness" 2>&1 || status=$?
	cat "$T_DIR/likeness"
	echo "status $status"
	case $status in
	0 | 200) return 1 ;;
	124) grep -q '^rdma_connect: ' "$T_DIR/likeness" ;;
	esac
}

is_found() { case $KIW_KERNEL in 6.1) return 0 ;; esac; return 1; }

refusals() { counter "$DEV_A" conn_other_netns; }

# is_refused BEFORE: the driver has refused it, if rdma_cm has called the driver at all.
is_refused() {
	echo "$(refusals) refused after $1"
	if is_found; then [ "$(refusals)" -gt "$1" ]; else [ "$(refusals)" = "$1" ]; fi
}

no_connect() {
	local before status=0
	before=$(refusals)
	spawn server b timeout 60 rping -s -a "$B4" -P
	wait_listen b 7174 || return 1
	fails_as_likeness timeout 10 rping -c -a "$B4" -C 1 || status=1
	is_refused "$before" || status=1
	on_b ss -Htn state established "sport = :7174" | grep . && status=1
	calls a "$B4" || status=1
	spawn_stop server
	return "$status"
}

no_listen() {
	local before
	before=$(refusals)
	fails_as_likeness rping -s -a "$A4" && is_refused "$before" && listens_nowhere 7174
}

no_wildcard() {
	local status=0
	waits server likeness rping -s || return 1
	listens_nowhere 7174 || status=1
	spawn_stop server
	return "$status"
}

# ------------------------------------------------------------------------------

{ load_kiwarp && topo_up && rdma_up && modprobe dummy; } || bail "no devices"
chmod 666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs*
t_run "a wildcard listener of the first namespace" from_the_first
t_run "a wildcard listener" in_its_own_only 0.0.0.0 "$A4"
t_run "a wildcard listener, IPv6" in_its_own_only :: "$A6"
t_run "the same wildcard port in two namespaces" same_port_twice
t_run "a port that TCP has in one namespace" port_of_another
t_run "a wildcard listener and devices that come later" later_devices
t_run "an interface that looks like the device's cannot connect" no_connect
t_run "an interface that looks like the device's cannot listen" no_listen
t_run "an interface that looks like the device's listens at the wildcard, in vain" no_wildcard
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
