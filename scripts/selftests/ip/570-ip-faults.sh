#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: faults at random under verified traffic; it recovers from each
# TIMEOUT: 240
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
#
# Packets are lost, late and out of order all the time. Once each, in a soak at random for KIW_SOAK
# seconds: interfaces, devices and the underlay go and come, settings change, the peer is silent.
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

FAULTS=(interface_down interface_deleted rdma_device_deleted underlay_down silent other_depth
	other_mtu other_mode)
RANDOM=$KIW_SEED
# What there was of it
TRAFFIC=

any_host() { if [ $((RANDOM % 2)) = 0 ]; then echo a; else echo b; fi; }
any_netem() {
	case $((RANDOM % 4)) in
	0) echo "delay 5ms 4ms" ;;
	1) echo "loss 2%" ;;
	2) echo "delay 10ms reorder 25% 50%" ;;
	*) echo "delay 2ms loss 1% duplicate 1%" ;;
	esac
}

# netem a|b [WHAT]
netem() {
	local what
	read -ra what <<<"${2:-$(any_netem)}"
	on "$1" tc qdisc replace dev eth0 root netem "${what[@]}"
}

# --- traffic -----------------------------------------------------------------------------

traffic_start() {
	rm -f "$T_DIR/stop"
	: >"$T_DIR/count"
	spawn server b "$SELFTESTS/ip_stream.py" "$KB4"
	wait_listen b 5002 || return 1
	spawn client a "$SELFTESTS/ip_stream.py" "$KB4" --stop "$T_DIR/stop" --progress "$T_DIR/count"
	spawn flood b ping -q -i 0.01 -s 9000 "$KA4"
	wait_for 20 test -s "$T_DIR/count"
}

answered() { local n=0; read -r n <"$T_DIR/count"; echo "${n:-0}"; }
answered_more() { [ "$(answered)" -gt "$1" ]; }

# recovers: messages are answered again, and long packets go
recovers() {
	wait_for 60 answered_more $(($(answered) + 3)) && wait_for 60 kip_pings a "$KB4" -W 1 -s 20000
}

traffic_end() {
	: >"$T_DIR/stop"
	spawn_stop flood
	spawn_wait client 60 || { spawn_log client; return 1; }
	spawn_running server || { spawn_log server; return 1; }
	spawn_stop server
	TRAFFIC=$(spawn_log client)
}

# --- faults --------------------------------------------------------------------------------

# sound a|b: whether the counters of what no fault may cause are 0. They are lost with the interface
# or the device, so this is called before either is deleted.
sound() { kip_is_zero "$1" rx_overrun rx_bad_control rx_bad_type rx_short rx_too_long; }
both_sound() { sound a && sound b; }

interface_down() {
	on "$1" ip link set kip0 down && on "$1" ip link set kip0 up
	# The interface loses its IPv6 addresses when it goes down.
	on "$1" ip addr replace "fd09::$(_kip_number "$1")/64" dev kip0 nodad
}

interface_deleted() {
	sound "$1" && on "$1" ip link del kip0 && kip_add "$1" && kip_set "$1" group "$KIP_GROUP" && kip_up "$1"
}

rdma_device_deleted() { sound "$1" && rdma_del "$1" && rdma_add "$1"; }
underlay_down() { on "$1" ip link set eth0 down && on "$1" ip link set eth0 up; }
other_depth() { kip_set "$1" rx_depth $((RANDOM % 64 + 1)); }

other_mtu() {
	local mtus=(1280 2044 9000 16384 65520)
	on "$1" ip link set kip0 mtu "${mtus[RANDOM % 5]}" && on "$1" ip link set kip0 mtu 65520
}

other_mode() { kip_set "$1" mode datagram && kip_set "$1" mode connected; }

# Nothing from that host arrives, until the other end has noticed, or a connection has failed.
silent() {
	local before
	before=$(lost_connections)
	netem "$1" "loss 100%" || return 1
	wait_for 30 noticed "$before"
	local status=$?
	netem "$1"
	return "$status"
}

lost_connections() {
	local host name sum=0
	for host in a b; do
		for name in conn_silent conn_failed conn_stalled; do
			sum=$((sum + $(kip_count "$host" "$name")))
		done
	done
	echo "$sum"
}

noticed() { [ "$(lost_connections)" -gt "$1" ]; }

# fault WHAT HOST
fault() {
	"$1" "$2" || { echo "$1 of $2 failed"; return 1; }
	recovers && return 0
	echo "after $1 of $2:"
	kip_counts a
	kip_counts b
	return 1
}

at_random() {
	local end=$((SECONDS + ${KIW_SOAK:-0})) what host count=0
	while ((SECONDS < end)); do
		what=${FAULTS[RANDOM % ${#FAULTS[@]}]} host=$(any_host)
		[ $((RANDOM % 3)) != 0 ] || { netem a && netem b; } || return 1
		fault "$what" "$host" || return 1
		count=$((count + 1))
	done
	TRAFFIC="$count faults"
}

if ! load_ip || ! topo_up || ! rdma_up || ! ip_up || ! traffic_start; then bail "no traffic"; fi
netem a && netem b
for what in "${FAULTS[@]}"; do t_run "$what" fault "$what" "$(any_host)"; done
[ -z "${KIW_SOAK:-}" ] || t_run "faults for $KIW_SOAK s" at_random
[ -z "${KIW_SOAK:-}" ] || diag "$TRAFFIC"
t_run "every message was right" traffic_end
diag "$TRAFFIC"
t_run "no rule was broken" both_sound
ip_down
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
