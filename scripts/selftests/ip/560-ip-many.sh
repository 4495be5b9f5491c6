#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: many peers at once, and the limits on connections and memory
# TIMEOUT: 180
# CHECK-KERNELS: uml
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

# Each peer is a namespace with a macvlan of b's eth0, an RDMA device and a kip0 on it. Their MTU
# is small, because they are one machine: each connection has its receives at both ends.
PEERS=${KIW_SOAK:+250}
PEERS=${PEERS:-24}
PEER_MTU=2044

on_peer() { nsenter "--net=/run/netns/peer$1" -- "${@:2}"; }

# address PREFIX N: prints the address of peer N; a has PREFIX.8.1
address() { echo "$1.$(($2 / 200)).$(($2 % 200 + 2))"; }

# peer_up N
peer_up() {
	ip netns add "peer$1" && on_b ip link add link eth0 name "mv$1" type macvlan mode bridge &&
		on_b ip link set "mv$1" netns "peer$1" name eth0 &&
		on_peer "$1" ip addr add "$(address 10.78 "$1")/16" dev eth0 &&
		on_peer "$1" ip link set eth0 up &&
		on_peer "$1" rdma link add "kiwp$1" type kiwarp netdev eth0 &&
		on_peer "$1" ip link add link eth0 name kip0 mtu "$PEER_MTU" type kiwarp_ip &&
		ip netns exec "peer$1" bash -c "echo $KIP_GROUP >/sys/class/net/kip0/kiwarp_ip/group" &&
		on_peer "$1" ip addr add "$(address 10.9 "$1")/16" dev kip0 &&
		on_peer "$1" ip link set kip0 up
}

peers_up() {
	local n
	on_a ip addr add 10.78.8.1/16 dev eth0 && on_a ip addr del "$A4/24" dev eth0 &&
		kip_add a && kip_set a group "$KIP_GROUP" && on_a ip link set kip0 mtu "$PEER_MTU" &&
		on_a ip addr add 10.9.8.1/16 dev kip0 && on_a ip link set kip0 up || return 1
	for n in $(seq "$PEERS"); do peer_up "$n" || { echo "peer $n"; return 1; }; done
	wait_for 5 kip_listens a
}

has_connections() { [ "$(kip_streams a)" = "$1" ]; }

# ask SIZE: pings all peers at the same time; each has to answer
ask() {
	local n bad=0
	for n in $(seq "$PEERS"); do
		spawn "ping$n" a ping -q -c 3 -i 0.2 -W 20 -s "$1" "$(address 10.9 "$n")"
	done
	for n in $(seq "$PEERS"); do
		spawn_wait "ping$n" 30 || { echo "peer $n:"; spawn_log "ping$n"; bad=1; }
	done
	return "$bad"
}

# max_conns limits connections; nodes beyond it are served by datagrams.
limited() {
	local refused
	kip_set a max_conns 10 && ask 500 || return 1
	refused=$(kip_count a conn_no_room)
	echo "$(kip_streams a) connections, $refused refused"
	[ "$(kip_streams a)" -le 10 ] && [ "$(kip_streams a)" -ge 1 ] && [ "$refused" -ge 1 ] &&
		[ "$(kip_count a tx_datagrams)" -ge $((PEERS - 10)) ]
}

unlimited() {
	kip_set a max_conns $((PEERS + 10)) && ask 1900 || return 1
	wait_for 40 all_connected || { echo "$(kip_streams a) connections"; kip_counts a; return 1; }
}

# The first packet to a peer starts a connection.
all_connected() { ask 100 && has_connections "$PEERS"; }

# flood ADDRESS: as much as may wait for a node, all the time
flood() {
	spawn flood a python3 -c "
import contextlib, socket, time
all = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(16)]
while True:
    for s in all:
        with contextlib.suppress(BlockingIOError):
            s.sendto(bytes(1000), socket.MSG_DONTWAIT, ('$1', 9))
    time.sleep(0.001)"
}

queue_is_full() { [ "$(kip_count a tx_queue_full)" -gt "$1" ]; }

# The answers of one, and its credit, are late. No others have to wait for it, or lose anything.
slow_peer() {
	local n bad=0
	on_peer 1 tc qdisc add dev eth0 root netem delay $((1000 * ${KIW_SLOW:-1}))ms || return 1
	n=$(kip_count a tx_queue_full)
	flood "$(address 10.9 1)"
	wait_for 20 queue_is_full "$n" || { kip_counts a; bad=1; }
	for n in 2 3; do
		kip_pings_each a "$(address 10.9 "$n")" 20 >"$T_DIR/ping" || bad=1
		cat "$T_DIR/ping"
		awk -v most=$((500 * ${KIW_SLOW:-1})) 'END { exit !(NR == 21 && $1 < most) }' "$T_DIR/ping" ||
			bad=1
	done
	spawn_stop flood
	on_peer 1 tc qdisc del dev eth0 root
	wait_for 20 kip_pings a "$(address 10.9 1)" -W 1 -s 1900 && return "$bad"
}

# All peers are removed at the same time; no connection may stay.
peers_down() {
	local n
	for n in $(seq "$PEERS"); do on_peer "$n" rdma link delete "kiwp$n"; ip netns del "peer$n"; done
	wait_for 30 has_connections 0
}

# --- containers -----------------------------------------------------------------------

TRIES=1000
# Maximum number of nodes of an interface, and of all interfaces of containers
MOST=4096

# container SCRIPT [ARGS...]: root of its own user and network namespace, nobody outside of it, with
# two underlays
# shellcheck disable=SC2016 # for the inner shell
container() {
	setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urnm timeout 100 bash -c '
		mount -t sysfs sysfs /sys && ip link set lo up || exit 200
		for n in 0 1; do
			ip link add d$n type dummy && ip addr add 10.$((80 + n)).0.1/16 dev d$n &&
				ip link set d$n up || exit 200
		done
		'"$1" - "${@:2}"
}

# Each attempt fails, because the port is in use.
# shellcheck disable=SC2016 # for the inner shell
log_of_container() {
	local n begun=$SECONDS
	log_mark
	container '
		ip link add link d0 name k0 type kiwarp_ip && ip link add link d0 name k1 type kiwarp_ip &&
			ip link set k0 up || exit 200
		ip link set k1 up && { echo "the port is not in use"; exit 201; }
		for ((n = 0; n < $1; n++)); do echo link set k1 up; done | ip -force -batch - 2>&1 |
			grep -c "Address already in use"' "$TRIES" || return 1
	n=$(dmesg --nopager | sed "1,/$D_MARK/d" | grep -c 'cannot open the datagram service')
	echo "$n lines in $((SECONDS - begun)) s"
	# net.core.message_burst: 10, net.core.message_cost: 5 s
	[ "$n" -ge 1 ] && [ "$n" -le $((20 + 2 * (SECONDS - begun))) ] && [ "$n" -lt "$TRIES" ]
}

# Packets to as many nodes as an interface may have, on each of two
# shellcheck disable=SC2016 # for the inner shell
peers_of_container() {
	local none
	container '
		for n in 0 1; do
			ip link add link d$n name k$n type kiwarp_ip && ip link set k$n up || exit 200
		done
		python3 "$2" "$1" k0 k1 || exit 201
		for n in 0 1; do ethtool -S k$n; done' "$MOST" "$SELFTESTS/many_peers.py" \
		>"$T_DIR/peers.log" 2>&1 || { cat "$T_DIR/peers.log"; return 1; }
	none=$(awk '$1 == "tx_no_peer:" { n += $2 } END { print n + 0 }' "$T_DIR/peers.log")
	echo "of $((2 * MOST)) nodes $none are no peers"
	# Some may have been forgotten in between.
	[ "$none" -ge $((MOST / 2)) ] || { cat "$T_DIR/peers.log"; return 1; }
}

# --- peers that are forgotten ---------------------------------------------------------

in_c() { ip netns exec c "$@"; }
no_peer() { in_c ethtool -S kip0 | sed -n 's/^ *tx_no_peer: //p'; }

# Can a node that was no peer not become one? Nobody is there.
is_full() {
	local before
	before=$(no_peer)
	in_c ping -q -c 1 -W 0.1 10.9.0.9
	[ "$(no_peer)" -gt "$before" ]
}

has_room() { ! is_full; }

# c: an interface with as many peers as it can have, and without an RDMA device
filled() {
	ip netns add c && ip -n c link add d0 type dummy && ip -n c addr add 10.80.0.1/16 dev d0 &&
		ip -n c link set d0 up && ip -n c link set lo up &&
		ip -n c link add link d0 name kip0 type kiwarp_ip &&
		ip -n c addr add 10.9.0.1/16 dev kip0 && ip -n c link set kip0 up &&
		in_c python3 "$SELFTESTS/many_peers.py" "$MOST" kip0 &&
		ip -n c neigh replace 10.9.0.9 dev kip0 nud permanent \
			lladdr 80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:50:ff:09 && is_full
}

# For a minute nobody has used them.
forgotten() { wait_for 90 has_room && ip netns del c; }

# --- containers, again ----------------------------------------------------------------

# Four of five interfaces can list all their nodes. When one is deleted, the fifth can, too.
# shellcheck disable=SC2016 # for the inner shell
listed_of_container() {
	local got
	got=$(container '
		list() {
			local n
			for ((n = 0; n < 1024; n++)); do
				echo "+10.90.$((n / 200)).$((1 + n % 200))" >"/sys/class/net/l$1/kiwarp_ip/peers" ||
					break
			done
			echo "$n"
		}
		for k in 0 1 2 3 4; do
			ip link add link d0 name l$k type kiwarp_ip && list $k || exit 200
		done
		ip link del l0 && list 4' 2>"$T_DIR/listed.log" | paste -sd" ")
	echo "$got"
	sort -u "$T_DIR/listed.log"
	[ "$got" = "1024 1024 1024 1024 0 1024" ] && grep 'No space' "$T_DIR/listed.log"
}

listed_again() { wait_for 30 listed_of_container; }

if ! load_ip || ! topo_up || ! rdma_up; then bail "no hosts"; fi
t_run "as many nodes as an interface can have" filled
t_run "$PEERS peers come" peers_up
t_run "10 connections at most: datagrams for the others" limited
t_run "a connection to each of them" unlimited
t_run "large packets to each of them" ask 1900
t_run "a slow one delays no others" slow_peer
t_run "nothing was lost" kip_is_zero a rx_overrun rx_bad_control rx_bad_type rx_short rx_no_memory
t_run "all of them go" peers_down
t_run "of a container: an interface that does not come up does not flood the log" log_of_container
t_run "of a container: peers of all interfaces together are limited" peers_of_container
t_run "of a container: listed nodes of all interfaces together are limited" listed_of_container
t_run "of a container: the next one can list as many" listed_again
t_run "nodes that are not used any more are forgotten" forgotten
on_a ip link del kip0
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
