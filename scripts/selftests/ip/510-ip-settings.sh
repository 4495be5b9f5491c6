#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip: MTUs, modes, peers, settings and what they refuse
# TIMEOUT: 180
# CHECK-KERNELS: uml
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

# Clears routes and neighbours. Those of a are the last: b may be probing whether a is still there,
# and a would learn b's address from the probe. If a probe is not answered, the address stays
# unresolved for some seconds.
fresh() {
	on_a ip route flush cache
	on_b ip neigh flush all
	on_a ip neigh flush all
}

route_mtu() { on_a ip route get "$1" | grep -o 'mtu [0-9]*'; }

# --- link ----------------------------------------------------------------------------

first_link() {
	must_fail ip_is_loaded && ip_up && ip_is_loaded && on_a ip -s -d link show kip0 | tee /dev/stderr |
		grep -q '^ *kiwarp_ip '
}

ip_is_loaded() { grep '^kiwarp_ip ' /proc/modules; }

links() {
	refused 'underlying interface is needed' '' on_a ip link add kip1 type kiwarp_ip &&
		refused 'address follows' '' on_a \
			ip link add link eth0 name kip1 address 80:00:00:01:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:00:00:01 type kiwarp_ip &&
		refused 'must not be' '' on_a ip link add link kip0 name kip1 type kiwarp_ip &&
		refused 'Invalid|less than|MTU' '' on_a ip link set kip0 mtu 1279 &&
		refused 'Invalid|greater than|MTU' '' on_a ip link set kip0 mtu 65521
}

# If the underlay has no address, the interface waits for one.
late_address() {
	local bad=0
	on_a ip link add kd0 type dummy && on_a ip link add link kd0 name kip1 type kiwarp_ip &&
		on_a ip link set kip1 up && on_a ip link set kd0 up || return 1
	on_a ip link show kip1 | grep -q 'NO-CARRIER' || bad=1
	on_a ip addr add 10.99.0.7/24 dev kd0 && wait_for 5 kip1_is 0a:63:00:07 || bad=1
	on_a ip link show kip1 | grep -q 'LOWER_UP' || bad=1
	on_a ip addr add 10.98.0.8/24 dev kd0 && on_a ip addr del 10.99.0.7/24 dev kd0 &&
		wait_for 5 kip1_is 0a:62:00:08 || bad=1
	on_a ip link show kip1
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

# Addresses that peers would not accept are not chosen, and do not hide others.
unusable_address() {
	local bad=0
	on_a ip link add kd0 type dummy && on_a ip link add link kd0 name kip1 type kiwarp_ip &&
		on_a ip link set kip1 up && on_a ip link set kd0 up || return 1
	on_a ip addr add 240.0.0.7/24 dev kd0 && on_a ip addr add 64:ff9b:1::7/64 dev kd0 nodad &&
		on_a ip addr add fd99::7/64 dev kd0 nodad || bad=1
	wait_for 5 kip1_is_fd99 || bad=1
	on_a ip link show kip1
	on_a ip addr add 10.99.0.7/24 dev kd0 && on_a ip addr del fd99::7/64 dev kd0 &&
		wait_for 5 kip1_is 0a:63:00:07 || bad=1
	on_a ip link show kip1
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

kip1_is_fd99() { on_a ip link show kip1 | grep -q 'infiniband 80:00:fc:f3:fd:99:00:00:.*:00:07 '; }

# Detection of duplicates takes three seconds, in which kip1 looks at the address again and again.
# That is announced once, when there is an address.
tentative_address() {
	local bad=0
	on_a ip link add kd0 type veth peer name kd1 && on_a sysctl -qw net.ipv6.conf.kd0.dad_transmits=3 &&
		on_a ip link add link kd0 name kip1 type kiwarp_ip && on_a ip link set kip1 up &&
		on_a ip link set kd1 up && on_a ip link set kd0 up || return 1
	spawn monitor a ip -d monitor link
	wait_for 10 is_monitored || bad=1
	on_a ip addr add fd99::7/64 dev kd0 && wait_for 20 kip1_is_fd99 && wait_for 5 is_announced || bad=1
	grep -c 'kip1@.*NOTIFY PEERS' "$T_DIR/monitor.log"
	[ "$(grep -c 'kip1@.*NOTIFY PEERS' "$T_DIR/monitor.log")" = 1 ] || { spawn_log monitor; bad=1; }
	spawn_stop monitor
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

is_monitored() { on_a ip link set kd1 mtu $((1400 + RANDOM % 100)) && grep -q kd1 "$T_DIR/monitor.log"; }
is_announced() { grep -q 'kip1@.*NOTIFY PEERS' "$T_DIR/monitor.log"; }

# The underlay gets an address of another family than that of the group and a peer.
late_family() {
	local bad=0
	on_a ip link add kd0 type dummy && on_a ip link add link kd0 name kip1 type kiwarp_ip || return 1
	_in_sys a "cd /sys/class/net/kip1/kiwarp_ip && echo 239.1.1.1 >group && echo +10.1.1.1 >peers" || bad=1
	log_mark
	on_a ip link set kip1 up && on_a ip link set kd0 up &&
		on_a ip addr add fd99::1/64 dev kd0 nodad || bad=1
	wait_for 5 log_says 'kip1: the group is of another address family.* kd0: not joined' || bad=1
	log_says 'kip1: 1 peers are of another address family.* kd0: not reached' || bad=1
	[ "$(_in_sys a "cat /sys/class/net/kip1/kiwarp_ip/group")" = 239.1.1.1 ] || bad=1
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

ifupdown() {
	_in_sys a "$1 --interfaces=/host/packaging/samples/kip0.conf --state-dir=$T_DIR/ifupdown kip0"
}

sample() {
	local bad=0
	mkdir "$T_DIR/ifupdown" && kip_add b && kip_set b group "$KIP_GROUP" && kip_up b || return 1
	ifupdown ifup || bad=1
	wait_for 10 on_a ping -c 1 -W 1 -M "do" -s 60000 "$KB4" || { echo "no answer"; bad=1; }
	ifupdown ifdown || bad=1
	must_fail on_a ip link show kip0 || bad=1
	on_b ip link del kip0
	return "$bad"
}

# Two interfaces on one underlay need two ports, even in different partitions.
second_link() {
	local bad=0
	on_a ip link add link eth0 name kip1 type kiwarp_ip &&
		refused 'Address already in use' 'cannot open the datagram service' \
			on_a ip link set kip1 up || bad=1
	_in_sys a "echo 64756 >/sys/class/net/kip1/kiwarp_ip/port" && on_a ip link set kip1 up || bad=1
	on_a ip link show kip1 | grep -q '80:00:fc:f4:' || bad=1
	refused 'Address already in use' 'cannot open the datagram service' \
		_in_sys a "echo 64755 >/sys/class/net/kip1/kiwarp_ip/port" || bad=1
	[ "$(_in_sys a "cat /sys/class/net/kip1/kiwarp_ip/port")" = 64756 ] || bad=1
	on_a ip link show kip1 | grep LOWER_UP || bad=1
	on_a ip link del kip1
	return "$bad"
}

has_socket() { [ -n "$(on_a ss -Hulpn "sport = 64757")" ]; }
kip1_has_carrier() { on_a ip link show kip1 | grep -q LOWER_UP; }

# While the underlay had no address, a process has taken the port.
port_in_use() {
	local bad=0
	on_a ip link add kd0 type dummy && on_a ip link set kd0 up &&
		on_a ip link add link kd0 name kip1 type kiwarp_ip &&
		_in_sys a "echo 64757 >/sys/class/net/kip1/kiwarp_ip/port" || return 1
	spawn holder a python3 -c 'import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
s.bind(("10.99.0.7", 64757))
signal.pause()'
	wait_for 10 has_socket || bad=1
	log_mark
	on_a ip link set kip1 up && on_a ip addr add 10.99.0.7/24 dev kd0 || bad=1
	wait_for 5 log_says 'kip1: cannot open the datagram service on kd0, port 64757: -EADDRINUSE' || bad=1
	! kip1_has_carrier || bad=1
	spawn_stop holder
	wait_for 10 kip1_has_carrier || { echo "no carrier"; bad=1; }
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

# It follows that of the underlay, of which nothing else tells the interface.
carrier() {
	local bad=0
	on_a ip link add kd0 type dummy && on_a ip link set kd0 up &&
		on_a ip addr add 10.99.0.7/24 dev kd0 &&
		on_a ip link add link kd0 name kip1 type kiwarp_ip &&
		_in_sys a "echo 64757 >/sys/class/net/kip1/kiwarp_ip/port" &&
		on_a ip link set kip1 up && wait_for 5 kip1_has_carrier || bad=1
	# Twice: an event that is still pending may hide the first change.
	for _ in 1 2; do
		on_a ip link set kd0 carrier off && wait_gone 5 kip1_has_carrier || bad=1
		on_a ip link set kd0 carrier on && wait_for 5 kip1_has_carrier || bad=1
	done
	on_a ip link del kd0
	wait_gone 5 on_a ip link show kip1 || bad=1
	return "$bad"
}

# Each second interface is ours, and would hide those below it from the kernel's limit. Removing the
# lowest one removes the others from within.
stacked() {
	local n bad=0 name=kd0 text
	on_a ip link add kd0 type dummy || return 1
	for ((n = 1; n < 40; n++)); do
		text=$(on_a ip link add link "$name" name "ks$n" type kiwarp_ip 2>&1) || break
		name=kv$n
		text=$(on_a ip link add "$name" type vxlan id "$n" dstport "$((5000 + n))" \
			dev "ks$n" remote 10.66.0.1 2>&1) || break
	done
	echo "$n: $text"
	[ "$n" -gt 1 ] && [ "$n" -lt 8 ] && [[ $text == *"Too many links"* ]] || bad=1
	on_a ip link del kd0
	wait_gone 10 on_a ip link show ks1 || bad=1
	return "$bad"
}

# Packets to nodes that are off wait for link-layer addresses of the underlay. Those to others pass.
nodes_off() {
	local n own bad=0
	kip_set a mode datagram && wait_for 10 on_a ping -q -c 1 -W 1 "$KB4" || return 1
	own=$(_in_sys a "cat /sys/class/net/kip0/address")
	for n in 61 62 63 64; do
		on_a ip neigh replace "10.9.0.$n" dev kip0 nud permanent \
			lladdr "${own%:*}:$(printf %02x "$n")" || bad=1
	done
	on_a python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(2000):
    s.sendto(bytes(1400), (f"10.9.0.{61 + n % 4}", 9))' || bad=1
	kip_pings_each a "$KB4" 3 || bad=1
	on_a ip neigh show dev "$NETDEV"
	kip_counts a
	[ "$(kip_count a tx_udp_errors)" = 0 ] || bad=1
	for n in 61 62 63 64; do on_a ip neigh del "10.9.0.$n" dev kip0; done
	kip_set a mode connected && wait_for 5 kip_listens a && return "$bad"
}

kip1_is() { on_a ip link show kip1 | grep -q "ff:ff:$1"; }

# --- settings ------------------------------------------------------------------------

# each: name, bad value, errno, what the log says
bad_settings() {
	cat <<-'END'
	mode|both|Invalid argument|mode is connected or datagram
	port|0|out of range|from 1 to 65535
	port|65536|out of range|from 1 to 65535
	port|x|Invalid argument|from 1 to 65535
	pkey|0x8000|Invalid argument|not valid
	pkey|65536|out of range|from 1 to
	qkey|0x100000000|out of range|from 0 to
	datagram_mtu|1279|out of range|from 1280 to 9000
	datagram_mtu|9001|out of range|from 1280 to 9000
	rx_depth|0|out of range|from 1 to 1024
	rx_depth|1025|out of range|from 1 to 1024
	max_conns|4097|out of range|from 0 to 4096
	idle_s|86401|out of range|from 0 to 86400
	learn|maybe|Invalid argument|from 0 to 86400
	listed_only|maybe|Invalid argument|0 or 1
	group|10.0.0.1|Invalid argument|multicast address, or none
	group|239.1.1|Invalid argument|multicast address, or none
	group||Invalid argument|multicast address, or none
	group|ff15::1|not supported|another address family
	peers|10.0.0.1|Invalid argument|\+ADDRESS or -ADDRESS
	peers|+239.1.1.1|Invalid argument|\+ADDRESS or -ADDRESS
	peers|+fd77::9|not supported|another address family
	peers|+::ffff:10.77.0.9|Invalid argument|\+ADDRESS or -ADDRESS
	peers|-10.0.0.9|No such file|
	END
}

settings_refused() {
	local name value errno text before
	while IFS='|' read -r name value errno text; do
		before=$(kip_get a "$name")
		refused "$errno" "$text" kip_set a "$name" "$value" || { echo "$name $value"; return 1; }
		[ "$(kip_get a "$name")" = "$before" ] || { echo "$name changed"; return 1; }
	done < <(bad_settings)
}

settings_taken() {
	local pair
	for pair in "port 4791" "pkey 0x8123" "qkey 0x80000001" "datagram_mtu 1500" "rx_depth 4" \
		"max_conns 3" "rx_mem 1000000" "idle_s 7" "learn 0" "listed_only 1" "group none"; do
		# shellcheck disable=SC2086 # two words
		set -- $pair
		if ! kip_set a "$1" "$2" || [ "$(kip_get a "$1")" != "$2" ]; then
			echo "$pair"
			return 1
		fi
	done
	on_a ip link show kip0
	on_a ip link show kip0 | grep -q '80:00:12:b7:.* brd 00:ff:ff:ff:ff:12:40:1b:81:23:'
}

# --- MTU -----------------------------------------------------------------------------

# RFC 4755 5.1: both ends use the smaller, whoever connects
mtu_of_peer() {
	local mtu=$1
	on_b ip link set kip0 mtu "$mtu" || return 1
	kip_set a rx_depth 32
	kip_set b rx_depth 32
	fresh
	wait_for 10 kip_pings a "$KB4" -W 1 -s $((mtu - 28)) -M "do" || { echo "exactly the MTU"; return 1; }
	on_a ping -q -c 2 -i 0.2 -W 1 -s $((mtu - 27)) -M "do" "$KB4"
	wait_for 3 has_route_mtu "$KB4" "$mtu" || { route_mtu "$KB4"; return 1; }
	wait_for 3 kip_pings a "$KB4" -s 20000 || { echo "fragments"; return 1; }
	on_a ping -q -c 2 -i 0.2 -W 1 -s $((mtu - 47)) -M "do" "$KB6"
	wait_for 3 has_route_mtu "$KB6" "$mtu" && has_counted a tx_too_long && kip_stream a b "$KB4" 4 && kip_stream b a "$KA4" 4
}

has_route_mtu() { [ "$(route_mtu "$1")" = "mtu $2" ]; }

# long_multicast GROUP MTU-DISCOVERY: whether a long multicast arrives within three attempts; with
# IPv6 the first one returns an error to the sender
long_multicast() {
	spawn listener b python3 -u -c '
import socket, struct, sys
group = sys.argv[1]
if ":" in group:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("", 7777))
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(
        socket.AF_INET6, group) + struct.pack("I", socket.if_nametoindex("kip0")))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 7777))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) +
                 socket.inet_aton(sys.argv[2]))
print("ready")
data = s.recv(70000)
print("received", data == bytes(range(250)) * 120)' "$1" "$KB4"
	wait_for 10 grep -q ready "$T_DIR/listener.log" || return 1
	on_a python3 -c '
import socket, sys, time
IP_MTU_DISCOVER = 10
group = sys.argv[1]
s = socket.socket(socket.AF_INET6 if ":" in group else socket.AF_INET, socket.SOCK_DGRAM)
if ":" in group:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("kip0"))
else:
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[2]))
    s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, int(sys.argv[3]))
for _ in range(3):
    try:
        s.sendto(bytes(range(250)) * 120, (group, 7777))
    except OSError as error:
        print(error)
    time.sleep(0.2)' "$1" "$KA4" "${2:-1}"
	wait_for "${3:-5}" grep -q 'received True' "$T_DIR/listener.log"
	local status=$?
	spawn_log listener
	spawn_stop listener
	return "$status"
}

# IPv4 reports no error for a multicast that is too long. It is fragmented or, if the sender forbids
# that, dropped.
long_multicasts() {
	local dont=0 want=1 must=2 before
	long_multicast 239.1.2.3 "$want" && long_multicast 239.1.2.3 "$dont" &&
		on_a ip route add 239.0.0.0/8 dev kip0 && long_multicast 239.1.2.3 "$want" &&
		on_a ip route del 239.0.0.0/8 dev kip0 && long_multicast ff05::1234 || return 1
	[ "$(kip_count a tx_fragmented)" -ge 9 ] || return 1
	before=$(kip_count a tx_too_long)
	! long_multicast 239.1.2.3 "$must" 1 && [ "$(kip_count a tx_too_long)" -gt "$before" ]
}

# --- modes ---------------------------------------------------------------------------

messages() { echo "$(kip_count a tx_messages) $(kip_count b tx_messages)"; }

# The address says that there are no connections (RFC 4755 3.1), and b connects to nobody
datagram_mode() {
	local before
	kip_set b mode datagram && on_b ip link show kip0 | grep -q 'infiniband 00:00:fc:f3' || return 1
	fresh
	before=$(messages)
	kip_pings a "$KB4" -s 1000 && kip_pings b "$KA4" -s 2016 -M "do" && kip_pings a "$KB6" &&
		[ "$(messages)" = "$before" ] || return 1
	kip_counts_as 1 1028 on_a ping -q -c 1 -W 20 -s 1000 "$KB4" || return 1
	on_a ping -q -c 2 -i 0.2 -W 1 -s 2017 -M "do" "$KB4"
	wait_for 3 has_route_mtu "$KB4" 2044 && kip_stream a b "$KB4" 2 && kip_stream b a "$KA4" 2
}

connected_again() {
	kip_set b mode connected && wait_for 5 kip_listens b || return 1
	fresh
	kip_pings a "$KB4" -s 60000 -M "do"
}

# --- who hears of everything ---------------------------------------------------------

# The group is joined on the underlay for as long as it is set and used. It shows by its Ethernet
# address: "ip maddr" has IP addresses only where the kernel has IGMP, and User Mode Linux's has none.
joined() {
	has_joined 1 && kip_set a group 239.77.0.2 && has_joined 2 && must_fail has_joined 1 &&
		on_a ip link set kip0 down && must_fail has_joined 2 && kip_set a group 239.77.0.3 &&
		on_a ip link set kip0 up && has_joined 3 && kip_set a port 64756 && has_joined 3 &&
		kip_set a port 64755 && has_joined 3 && kip_set a group none && must_fail has_joined 3 &&
		kip_set a group "$KIP_GROUP" && has_joined 1
}

# The kernel has no memory for what a socket is to remember of a group.
no_join() {
	local bad=0 before
	before=$(optmem) && optmem 0 || return 1
	refused 'No buffer space' 'kip0: the group cannot be joined' kip_set a group 239.77.0.4 || bad=1
	[ "$(kip_get a group)" = "$KIP_GROUP" ] || { kip_get a group; bad=1; }
	on_a ip link show kip0 | grep NO-CARRIER || bad=1
	optmem "$before"
	kip_set a group "$KIP_GROUP" && wait_for 5 kip_listens a && wait_for 5 kip_pings a "$KB4" -W 1 -s 50000 &&
		return "$bad"
}

# optmem [BYTES]: the limit on that memory; since 6.8 each network namespace has its own.
optmem() {
	local where=on_a
	on_a test -e /proc/sys/net/core/optmem_max || where=
	$where sysctl -n net.core.optmem_max"${1:+=$1}"
}

# has_joined N: 239.77.0.N
has_joined() { on_a ip maddr show dev eth0 | tee /dev/stderr | grep -q "link  01:00:5e:4d:00:0$1"; }

# What came from the other host while only one of them had no group: it made a neighbour or a peer.
is_unheard() {
	local host peer
	fresh
	for host in a b; do
		for peer in $(kip_get "$host" peers | sed 's/ .*//'); do
			kip_set "$host" peers "-$peer"
		done
	done
	! kip_pings a "$KB4" -W 1
}

peers() {
	kip_set a group none && kip_set b group none || return 1
	wait_for 10 is_unheard || { echo "heard without group and peers"; return 1; }
	[ "$(kip_count a tx_no_group)" -ge 1 ] && kip_set a peers +10.77.0.2 || return 1
	fresh
	kip_pings a "$KB4" && kip_multicast a || return 1
	kip_get b peers
	kip_get b peers | grep -q '10.77.0.1 learned' && has_counted b peers_learned &&
		kip_multicast b
}

# The peers of a new port are those that were listed. Learned ones are learned again.
peers_of_port() {
	local status=0
	b_has_learned && kip_set b port 64756 && wait_for 5 b_listens 64756 || return 1
	# As long as a has the former port, none of its datagrams reaches b.
	! b_has_learned || status=1
	kip_set a port 64756 || return 1
	fresh
	kip_pings a "$KB4" && kip_multicast a && b_has_learned && kip_multicast b || status=1
	kip_set a port 64755 && kip_set b port 64755 && wait_for 5 b_listens 64755 || return 1
	fresh
	kip_pings a "$KB4" && kip_multicast a && b_has_learned && return "$status"
}

# The file of the peers shows all of them; it is not limited to a page.
many_peers() {
	kip_set a group none && kip_set a learn 0 || return 1
	_in_sys a "for n in {1..1024}; do
			echo +10.77.\$((100 + n / 200)).\$((1 + n % 200)) >$(_kip_file peers) || exit 1
			echo 10.77.\$((100 + n / 200)).\$((1 + n % 200)) >&3
		done" 3>"$T_DIR/listed" &&
		refused 'No space' 'too many peers' kip_set a peers +10.77.0.9 || return 1
	kip_get a peers | diff - "$T_DIR/listed" || return 1
	# Read in blocks that do not end with a line
	_in_sys a "dd if=$(_kip_file peers) bs=100 status=none" | diff - "$T_DIR/listed" || return 1
	_in_sys a "while read -r peer; do echo -\$peer >$(_kip_file peers) || exit 1; done" <"$T_DIR/listed" &&
		[ -z "$(kip_get a peers)" ] && kip_set a learn 300 && kip_set a group "$KIP_GROUP"
}

# What is sent to the group does not go to learned peers as well.
learned_replaced() {
	b_has_learned && kip_set b group "$KIP_GROUP" && ! b_has_learned && kip_set b group none || return 1
	fresh
	kip_pings a "$KB4" && kip_multicast a && b_has_learned
}

# A learned peer whose time has passed is no peer any more when it is heard of again.
learned_late() {
	local status before
	b_has_learned && before=$(kip_count b rx_udp_sender) && kip_set b listed_only 1 &&
		kip_set b learn 0 || return 1
	on_a ping -q -c 1 -W 0.1 ff02::1%kip0
	wait_for 5 counts_more b rx_udp_sender "$before"
	status=$?
	kip_set b learn 300 && kip_set b listed_only 0 || return 1
	fresh
	kip_pings a "$KB4" && kip_multicast a && b_has_learned && return "$status"
}

# counts_more a|b COUNTER BEFORE
counts_more() { [ "$(kip_count "$1" "$2")" -gt "$3" ]; }

# A learned peer that is not heard of again is forgotten, because datagrams can have false senders.
learned_expire() {
	local status
	kip_set b learn 1 && kip_pings a "$KB4" || return 1
	b_has_learned || { echo "forgotten while there is a connection"; return 1; }
	kip_set b rx_mem 0 && kip_set b rx_depth 32 && wait_gone 10 b_has_learned
	status=$?
	kip_set b rx_mem 268435456 && kip_set b learn 0 && return "$status"
}

b_has_learned() { kip_get b peers | grep 'learned'; }

listed_only() {
	kip_set b listed_only 1 || return 1
	fresh
	! kip_pings a "$KB4" -W 1 && [ "$(kip_count b rx_udp_sender)" -ge 1 ] &&
		kip_set b peers +10.77.0.1 && wait_for 5 kip_pings a "$KB4"
}

# With static neighbours, a Request can come without a datagram before it.
unlisted_request() {
	local lladdr ANSWERED=
	lladdr=$(_in_sys b "cat /sys/class/net/kip0/address")
	kip_set b peers -10.77.0.1 && kip_set a rx_depth 32 && kip_set b rx_depth 32 &&
		on_a ip neigh replace "$KB4" dev kip0 lladdr "$lladdr" nud permanent || return 1
	wait_for 10 is_not_listed && [ -z "$ANSWERED" ] &&
		on_a ip neigh del "$KB4" dev kip0 && kip_set b peers +10.77.0.1 &&
		kip_set a rx_depth 32 && wait_for 10 kip_pings a "$KB4" -W 1
}

# b listens again a moment after its depth was set. ANSWERED: no ping may be.
is_not_listed() {
	! kip_pings a "$KB4" -W 1 || ANSWERED=1
	[ -n "$ANSWERED" ] || has_counted b conn_unlisted
}

# A node that does not exist: packets to it wait until there is no route, for two seconds. If this
# host does not get there in time, they leave as datagrams.
waiting_packets() {
	local lladdr=80:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:4d LOST=
	on_a ip neigh replace "${KB4%.*}.77" dev kip0 lladdr "$lladdr" nud permanent || return 1
	wait_for 20 loses_packets || return 1
	echo "lost:$LOST"
	[ -z "${LOST//[ 03]/}" ]
}

# loses_packets: all three in one try, none in others. LOST: how many in each.
loses_packets() {
	local before lost
	before=$(kip_count a tx_no_connection)
	on_a ping -q -c 3 -i 0.01 -W 0.1 "${KB4%.*}.77"
	on_a ip link set kip0 down && on_a ip link set kip0 up || return 1
	lost=$(($(kip_count a tx_no_connection) - before))
	LOST+=" $lost"
	[ "$lost" = 3 ]
}

static_neighbours() {
	local a b
	kip_set a peers -10.77.0.2 && kip_set b peers -10.77.0.1 && kip_set b listed_only 0 || return 1
	fresh
	a=$(_in_sys a "cat /sys/class/net/kip0/address")
	b=$(_in_sys b "cat /sys/class/net/kip0/address")
	on_a ip neigh replace "$KB4" dev kip0 lladdr "$b" nud permanent &&
		on_b ip neigh replace "$KA4" dev kip0 lladdr "$a" nud permanent &&
		kip_pings a "$KB4" -s 50000 && on_a ip neigh del "$KB4" dev kip0 &&
		on_b ip neigh del "$KA4" dev kip0
}

# Datagrams and Requests go to the QPN in the peer's address, which need not be this end's.
other_port() {
	local bad=0 before
	kip_set b port 64756 && wait_for 5 b_listens 64756 || return 1
	{ neighbours 80 fc:f4 && kip_pings a "$KB4" -s 50000; } || { echo "by connection"; bad=1; }
	if ! loops 64756 || ! loops 64755 || loops 64757; then echo "segments"; bad=1; fi
	# A change of the depth ends connections. b makes the next one.
	{ kip_set a rx_depth 33 && wait_for 10 must_fail loops 64756 && kip_set a rx_depth 32 &&
		wait_for 10 kip_pings b "$KA4" -s 50000 && loops 64756; } || { echo "accepted"; bad=1; }
	before=$(messages)
	{ neighbours 00 fc:f4 && kip_pings a "$KB4" -s 1000 && [ "$(messages)" = "$before" ]; } ||
		{ echo "by datagram"; bad=1; }
	on_a ip neigh del "$KB4" dev kip0 && on_b ip neigh del "$KA4" dev kip0 && kip_set b port 64755 &&
		wait_for 5 b_listens 64755 && return "$bad"
}

# loops PORT: whether a takes a segment from the address of its underlay to that port of b for one of
# a connection that is routed through kip0
loops() {
	local before
	before=$(kip_count a tx_loop)
	on_a python3 -c '
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("kip0", 0))
b = bytes.fromhex("8000fcf4" + "00" * 10 + "ffff" + "0a4d0002")
ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0)
s.send(b + b"\x08\0\0\0" + ip + bytes([10, 77, 0, 1, 10, 77, 0, 2]) +
       struct.pack(">HHIIBBHHH", 40000, int(sys.argv[1]), 1, 0, 0x50, 4, 0, 0, 0))' "$1"
	[ "$(kip_count a tx_loop)" -gt "$before" ]
}

# Copies for a learned peer go to the port from which it was heard last, those for a listed one to
# that of the interface.
ports_of_peers() {
	local status=0
	if ! { speaks 64756 fc:f4 && hears; }; then echo "learned"; status=1; fi
	if ! { speaks 64755 fc:f3 && hears; }; then echo "learned at its next port"; status=1; fi
	if ! { speaks 64756 fc:f4 && kip_set b port 64755 && kip_set a peers +10.77.0.2 && hears; }; then
		echo "listed"
		status=1
	fi
	kip_get a peers
	kip_set a peers -10.77.0.2
	on_a ip neigh del "$KB4" dev kip0
	return "$status"
}

# speaks PORT QPN: b has that port, and a hears a datagram from there.
speaks() {
	local before
	before=$(kip_count a rx_datagrams)
	kip_set b port "$1" && neighbours 00 "$2" && on_b ping -q -c 1 -W 0.1 "$KA4"
	wait_for 5 counts_more a rx_datagrams "$before"
}

# Whether a multicast of a reaches b
hears() {
	local before
	before=$(kip_count b rx_datagrams)
	on_a ping -q -c 1 -W 0.1 ff02::1%kip0
	wait_for 3 counts_more b rx_datagrams "$before"
}

b_listens() { on_b ss -Hltn "sport = :$1" | grep -q .; }

# neighbours FLAGS QPN: what a knows of b; b knows the same of a, except for its QPN
neighbours() {
	local gid=00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00
	on_a ip neigh replace "$KB4" dev kip0 lladdr "$1:00:$2:$gid:02" nud permanent &&
		on_b ip neigh replace "$KA4" dev kip0 lladdr "$1:00:fc:f3:$gid:01" nud permanent
}

# Another partition is another link (RFC 4391 4.1)
partitions() {
	kip_set a group "$KIP_GROUP" && kip_set b group "$KIP_GROUP" && kip_set a pkey 0x8001 || return 1
	fresh
	! kip_pings a "$KB4" -W 1 && [ "$(kip_count b rx_udp_pkey)" -ge 1 ] || return 1
	kip_set b pkey 1 && wait_for 5 kip_pings a "$KB4" -s 5000 || return 1
	kip_set a qkey 7 || return 1
	fresh
	! kip_pings a "$KB4" -W 1 && [ "$(kip_count b rx_udp_qkey)" -ge 1 ] &&
		kip_set b qkey 0x80000007 && wait_for 5 kip_pings a "$KB4"
}

# --- limits --------------------------------------------------------------------------

# A packet socket can send any header.
bad_frames() {
	on_a python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("kip0", 0))
own = bytes.fromhex("8000fcf3" + "00" * 10 + "ffff" + "0a4d0001")
peer = own[:-1] + b"\2"
ip = b"\x08\0\0\0"
for address in (own, peer[:2] + b"\0\0" + peer[4:], b"\0" * 20, peer[:-4] + b"\x7f\0\0\1"):
    s.send(address + ip + bytes(40))
for head in (b"\x12\x34\0\0", b"\x88\xb5\0\0", b"\x08\0\0\1"):
    s.send(peer + head + bytes(40))
' && [ "$(kip_count a tx_bad_address)" = 4 ] && [ "$(kip_count a tx_bad_type)" = 3 ]
}

# Neighbour discovery is not for connections, also if its headers are not in one piece, as in a
# packet socket's frame of more than a page. That is too long for a datagram.
split_headers() {
	local before
	before=$(kip_count a tx_too_long)
	on_a python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("kip0", 0))
peer = bytes.fromhex("8000fcf3" + "00" * 10 + "ffff" + "0a4d0002")
ip = b"\x60\0\0\0" + (8000).to_bytes(2, "big") + b"\x3a\xff" + bytes(32)
s.send(peer + b"\x86\xdd\0\0" + ip + b"\x87" + bytes(7999))' &&
		[ "$(kip_count a tx_too_long)" = $((before + 1)) ]
}

# Peers to which UDP cannot send: a broadcast address, and the interface's own.
bad_peers() {
	kip_set a peers +10.77.0.255 && kip_set a peers +10.77.0.1 || return 1
	on_a ping -q -c 1 -W 1 ff02::1%kip0
	wait_for 5 has_counted a tx_udp_errors && wait_for 5 has_counted a rx_udp_own &&
		kip_set a peers -10.77.0.255 && kip_set a peers -10.77.0.1
}

dropped() { _in_sys a "cat /sys/class/net/kip0/statistics/tx_dropped"; }
dropped_more() { [ "$(dropped)" -gt "$1" ]; }

# A packet to all nodes of which UDP has accepted no copy was not sent.
sent_to_nobody() {
	local before status
	kip_set a learn 0 && kip_set a group none && kip_set a peers +10.77.0.255 &&
		[ "$(kip_get a peers)" = 10.77.0.255 ] && before=$(dropped) || return 1
	on_a ping -q -c 1 -W 0.1 ff02::1%kip0
	wait_for 5 dropped_more "$before"
	status=$?
	kip_set a peers -10.77.0.255 && kip_set a learn 300 && kip_set a group "$KIP_GROUP" &&
		return "$status"
}

# Root of a user namespace cannot raise the limit above the default.
rx_mem_of_user() {
	unshare -Urnm bash -e -c '
		mount -t sysfs sysfs /sys
		ip link add kd0 type dummy
		ip link add link kd0 name kip1 type kiwarp_ip
		echo 1000 >/sys/class/net/kip1/kiwarp_ip/rx_mem
		echo 268435456 >/sys/class/net/kip1/kiwarp_ip/rx_mem
		! echo 268435457 >/sys/class/net/kip1/kiwarp_ip/rx_mem
		cat /sys/class/net/kip1/kiwarp_ip/rx_mem' | tee /dev/stderr | grep -qx 268435456
}

# Root of a container, who is not the host's, changes the mode of an interface that the host has moved
# there.
mode_of_moved() {
	local pid bad=0
	on_a ip link add kd0 type dummy && on_a ip link add link kd0 name kip2 type kiwarp_ip || return 1
	spawn owner a setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urn tail -f /dev/null
	pid=$(cat "$T_DIR/owner.pid")
	wait_for 10 grep -q '^ *0 *65534 ' "/proc/$pid/uid_map" && on_a ip link set kip2 netns "$pid" &&
		nsenter -U -n -t "$pid" unshare -m bash -e -c '
			mount -t sysfs sysfs /sys
			echo datagram >/sys/class/net/kip2/mode
			grep -x datagram /sys/class/net/kip2/mode' || bad=1
	spawn_stop owner
	on_a ip link del kd0
	return "$bad"
}

in_box() { nsenter --preserve-credentials -U -n -m -t "$(cat "$T_DIR/box.pid")" "$@"; }
box_net() { nsenter "--net=/proc/$(cat "$T_DIR/box.pid")/ns/net" "$@"; }
box_is() { [ "$(awk '{ print $3 }' "/proc/$(cat "$T_DIR/box.pid")/uid_map")" = 1 ]; }
box_listens() { box_net ss -Hltn "sport = :$1" | grep -q .; }
a_listens() { on_a ss -Hltn "sport = :$1" | grep -q .; }

# A container, root of which has made kip0 and kip1. The host has moved kip2 there. Each connection
# needs 70 MiB.
box_up() {
	local eth='ip addr add 10.66.0.1/24 dev ethb && ip link set ethb up' sys=/sys/class/net
	spawn box a unshare --user --map-root-user --net --mount tail -f /dev/null
	wait_for 10 box_is && ip link add ethb netns "$(cat "$T_DIR/box.pid")" type veth \
		peer name ethb netns b && on_b ip addr add 10.66.0.2/24 dev ethb &&
		on_b ip link set ethb up && in_box bash -c "ip link set lo up && $eth" &&
		box_net rdma link add kiwx type kiwarp netdev ethb &&
		on_a ip link add link eth0 name kip2 type kiwarp_ip &&
		_in_sys a "echo 64757 >$sys/kip2/kiwarp_ip/port && echo 1024 >$sys/kip2/kiwarp_ip/rx_depth" &&
		on_a ip link set kip2 netns "$(cat "$T_DIR/box.pid")" && in_box bash -e -c "
			mount -t sysfs sysfs /sys
			ip link add link ethb name kip0 type kiwarp_ip
			ip link add link ethb name kip1 type kiwarp_ip
			echo 64756 >$sys/kip1/kiwarp_ip/port
			echo 1024 | tee $sys/kip[01]/kiwarp_ip/rx_depth
			for n in 0 1 2; do ip link set kip\$n up; done
			must_not() { ! \"\$@\"; }
			must_not bash -c 'echo 4 >$sys/kip2/kiwarp_ip/rx_depth'
			must_not bash -c 'echo 1 >$sys/kip2/kiwarp_ip/rx_mem'" &&
		wait_for 10 box_listens 64755 && wait_for 10 box_listens 64756 && wait_for 10 a_listens 64757
}

box_down() {
	box_net rdma link delete kiwx
	spawn_stop box
	wait_gone 20 on_b ip link show ethb && wait_gone 20 a_listens 64757
}

# accepted RESULT ADDRESS:PORT:NUMBER...: of that many Requests each, that many are accepted
accepted() {
	local got
	got=$(on_b env "PYTHONPATH=$SELFTESTS/../.." timeout 60 python3 -c '
import contextlib, sys
from peer import ip, startup
counts = []
with contextlib.ExitStack() as held:
    for ask in sys.argv[1:]:
        ip.ADDRESS, port, number = ask.split(":")
        ip.PORT, good = int(port), 0
        for qpn in range(1, int(number) + 1):
            with contextlib.suppress(startup.Rejected):
                held.enter_context(ip.request(ip.pdata(qpn=qpn)))
                good += 1
        counts.append(good)
print(*counts)' "${@:2}")
	echo "$got"
	[ "$got" = "$1" ]
}

# Interfaces that root of a container has made share the default limit, except one whose limit the
# host has raised. An interface that the host has made and moved there has its own limit.
shared_memory() {
	local status all=(10.66.0.1:64755:3 10.66.0.1:64756:1 10.77.0.1:64757:1)
	box_up && accepted "3 0 1" "${all[@]}" && box_net unshare --mount bash -e -c "
		mount -t sysfs sysfs /sys
		echo 536870912 >/sys/class/net/kip1/kiwarp_ip/rx_mem" &&
		wait_for 30 accepted "3 1 1" "${all[@]}"
	status=$?
	box_down && return "$status"
}

# If there is no memory for receives, packets are sent as datagrams.
no_room() {
	kip_set b rx_mem 100000 && kip_set b rx_depth 32 && kip_set a rx_depth 32 || return 1
	fresh
	wait_for 10 kip_pings a "$KB4" -W 1 || return 1
	[ "$(kip_count b conn_no_room)" -ge 1 ] && [ "$(kip_count a conn_refused_by_peer)" -ge 1 ] &&
		kip_set b rx_mem 268435456 && kip_set a rx_depth 32 && kip_pings a "$KB4" -s 50000
}

# An end that has no room does not ask for a connection. Nobody has that port.
no_room_to_ask() {
	local most full failed bad=0
	most=$(kip_get b max_conns) full=$(kip_count b conn_no_room) failed=$(kip_count b conn_failed)
	kip_set b max_conns 0 && on_b ip neigh replace 10.9.0.78 dev kip0 nud permanent \
		lladdr 80:00:fc:f5:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:01 || return 1
	on_b ping -q -c 1 -W 1 10.9.0.78
	wait_for 5 counts_more b conn_no_room "$full" || bad=1
	[ "$(kip_count b conn_failed)" = "$failed" ] || { kip_counts b; bad=1; }
	on_b ip neigh del 10.9.0.78 dev kip0
	kip_set b max_conns "$most" && return "$bad"
}

idle() {
	kip_set a idle_s 1 && kip_pings a "$KB4" || return 1
	wait_for 5 counts_idle && kip_pings a "$KB4" -s 50000 && kip_set a idle_s 300
}

counts_idle() { [ "$(kip_count a conn_idle)" -ge 1 ]; }

# A single posted receive is enough.
depth_one() {
	kip_set a rx_depth 1 && kip_set b rx_depth 1 && kip_stream a b "$KB4" 2 && kip_stream b a "$KA4" 2 &&
		kip_set a rx_depth 32 && kip_set b rx_depth 32
}

# ------------------------------------------------------------------------------------

if ! load_kiwarp || ! topo_up || ! rdma_up; then bail "no devices"; fi
t_run "the first link loads the module" first_link
t_run "what ip link refuses" links
t_run "an underlay that gets its address later" late_address
t_run "addresses that no peer accepts" unusable_address
t_run "an address that is tentative" tentative_address
t_run "an address of another family than the group" late_family
t_run "two interfaces on one underlay" second_link
t_run "a port that a process has taken" port_in_use
t_run "the carrier of the underlay" carrier
t_run "a stack of interfaces" stacked
t_run "settings: refused" settings_refused
t_run "MTU 16384 at the other end" mtu_of_peer 16384
t_run "MTU 1280 at the other end" mtu_of_peer 1280
on_b ip link set kip0 mtu 65520
t_run "long multicasts" long_multicasts
t_run "1024 peers" many_peers
t_run "datagram mode" datagram_mode
t_run "nodes that are off" nodes_off
t_run "connected mode again" connected_again
t_run "the group is joined and left" joined
t_run "peers instead of a group" peers
t_run "peers when the port changes" peers_of_port
t_run "learned peers, then a group" learned_replaced
t_run "learned peers whose time has passed" learned_late
t_run "learned peers are forgotten" learned_expire
t_run "listed peers only" listed_only
t_run "Requests of listed peers only" unlisted_request
t_run "packets that wait when the interface goes down" waiting_packets
t_run "static neighbours, nothing else" static_neighbours
t_run "a port that is not the peer's" other_port
t_run "ports of learned and listed peers" ports_of_peers
t_run "partitions and Q_Keys" partitions
t_run "a group that cannot be joined" no_join
t_run "no room for receives" no_room
t_run "no room to ask" no_room_to_ask
t_run "frames with bad addresses and types" bad_frames
t_run "neighbour discovery with split headers" split_headers
t_run "impossible peers are counted" bad_peers
t_run "what UDP sends to nobody is dropped" sent_to_nobody
t_run "memory in another user namespace" rx_mem_of_user
t_run "memory of interfaces in a container" shared_memory
t_run "the mode of an interface in a container" mode_of_moved
t_run "an idle connection ends" idle
t_run "a depth of 1" depth_one
t_run "nothing was lost" kip_is_sound
t_run "settings: taken" settings_taken
diag "a: $(kip_counts a | paste -sd' ')"
diag "b: $(kip_counts b | paste -sd' ')"
ip_down
t_run "the sample for ifupdown" sample
rdma_down
topo_down
t_run "unload" unload_ip
done_testing
