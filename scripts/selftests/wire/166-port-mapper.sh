#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the iWARP port mapper: ports that TCP has, wanted or not, there or not
# CHECK-PAIRS: none
# TIMEOUT: 120
# KERNELS: uml uml-debug
# CHECK-KERNELS: uml-debug
# TOPOLOGY: any
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-iwpm
. "$SELFTESTS/rc-iwpm"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"

# rping's
PORT=7174

# --- a process that poses as the port mapper --------------------------------------------

OTHER_PORT=7175

poser_begins() {
	spawn poser b setpriv --reuid 65534 --regid 65534 --clear-groups \
		python3 "$SELFTESTS/false_mapper.py" $PORT $OTHER_PORT
	wait_for 10 grep -q -e ready -e denied "$T_DIR/poser.log" || { spawn_log poser; return 1; }
}

poser_ends() {
	spawn_stop poser
	grep -e asked -e denied "$T_DIR/poser.log"
}

# The mapper is asked, but its answer is ignored. A kernel with iwcm-port-mapper.patch or
# nl-groups.patch does not let that process be the mapper.
false_mapper() {
	local status=0
	mappings n n && poser_begins || return 1
	server -a "$B4" -P && is_real || status=1
	rping_client on_a timeout 20 rping -c -v -a "$B4" -C 1 -V || status=1
	server_ends
	spawn thief b timeout 30 rping -s -a "$B4" -p $OTHER_PORT -P
	wait_listen b $OTHER_PORT || status=1
	! on_a timeout 20 rping -c -a "$B4" -C 1 || { echo "went to another port"; status=1; }
	spawn_stop thief
	poser_ends || status=1
	return $status
}

# --- a program of TCP that has the port ---------------------------------------------

hold() { spawn holder b nc -l -k "$B4" $PORT && wait_listen b $PORT; }
let_go() { spawn_stop holder; wait_gone 10 is_listening b $PORT; }

# --- who listens, who connects ------------------------------------------------------

cm_ids() { on "$1" rdma res show cm_id | grep "^link $(dev_of "$1")/"; }
listens() { cm_ids b | grep -q "state LISTEN .*:$PORT "; }

# server [OPTIONS of rping]: starts a server, which listens on what it sees as its port.
server() {
	spawn rping b timeout 60 rping -s -V "$@"
	wait_for 10 listens || { spawn_log rping; spawn_stop rping; return 1; }
}

server_ends() {
	spawn_stop rping
	wait_gone 10 listens
}

# client ADDRESS: connects and verifies data.
client() {
	local status=0
	rping_client on_a timeout 50 rping -c -a "$1" -v -V -C 3 || return 1
	spawn_wait rping 10 || status=$?
	rping_ended $status "$T_DIR/rping.log" || { spawn_log rping; return 1; }
	wait_gone 10 listens
}

# is_real, is_mapped: the TCP port of the only listener is the consumer's, or the mapper's.
is_real() { kernel_listens b && kernel_listens b | grep -q ":$PORT\$"; }
is_mapped() { kernel_listens b && ! kernel_listens b | grep -q ":$PORT\$"; }

in_use() {
	! on_b timeout 20 rping -s -a "$B4" >"$T_DIR/in_use" 2>&1 &&
		grep 'rdma_listen: Address already in use' "$T_DIR/in_use"
}

# as_ever: a server listens on its own port, and a port that TCP uses is refused.
as_ever() {
	server -a "$B4" && is_real && client "$B4" && hold && in_use && let_go
}

wanted_in_vain() { mappings y y && as_ever; }
not_wanted() { mappings n n && as_ever; }

# --- with the port mapper -----------------------------------------------------------

# The ports of TCP, as both ends have them, and those of the consumers.
tcp_ports() {
	on_a ss -Htn state established dst "$B4" | awk '{ print $3, $4 }' | grep -v -E ':(7700|22)$'
}

connected() { cm_ids a | grep -q "state CONNECT .*dst-addr $B4:$PORT "; }
consumers_ports() { cm_ids a && cm_ids b; }

watch() {
	spawn dump a timeout 60 tcpdump --immediate-mode -l -n -i "$NETDEV" \
		'udp port 3935 or (tcp[13] & 2 != 0 and not port 7700)'
	wait_for 10 grep -q 'listening on' "$T_DIR/dump.log"
}

# The other host's mapper was asked, and TCP connects to the port that it has answered.
on_the_wire() {
	local port=$1
	wait_for 10 grep -q "IP $A4.* > $B4\.3935: UDP" "$T_DIR/dump.log" &&
		wait_for 10 grep -q "IP $A4.* > $B4\.$port: Flags \[S\]" "$T_DIR/dump.log" &&
		! grep "\.$PORT:" "$T_DIR/dump.log"
}

# A lasting connection, as TCP and both consumers see it.
served() {
	local port status=1
	hold && watch && mappings y y && server -a "$B4" && is_mapped || return 1
	port=$(kernel_listens b)
	port=${port##*:}
	spawn client a timeout 60 rping -c -a "$B4" -C 100000000
	if wait_for 10 connected; then
		tcp_ports
		consumers_ports
		tcp_ports | grep -q "$B4:$port\$" && cm_ids b | grep -q "$B4:$PORT dst-addr $A4:" &&
			on_the_wire "$port" && both_agree && status=0
	fi
	spawn_stop client
	server_ends
	spawn_stop dump
	[ $status = 0 ] || spawn_log dump
	let_go && return $status
}

# b sees the port that a sees, although that port is mapped, too.
both_agree() {
	local ours
	ours=$(cm_ids a | sed -n "s/.*src-addr \($A4:[0-9]*\) dst-addr $B4:$PORT .*/\1/p")
	[ -n "$ours" ] && cm_ids b | grep -q "dst-addr $ours " && ! tcp_ports | grep "$ours "
}

# The mapper tells an end that wants it that the other is not mapped. One that does not want it
# does not find the other.
by_one() {
	mappings y n && server -a "$B4" && is_real && client "$B4" || return 1
	mappings n y && server -a "$B4" -P && is_mapped || return 1
	! on_a timeout 20 rping -c -a "$B4" -C 1 && mapping a y &&
		rping_client on_a timeout 20 rping -c -v -a "$B4" -C 1 -V && server_ends
}

any_address() { hold && mappings y y && server && is_mapped && client "$B4" && let_go; }

version6() {
	mappings y y && server -a "$B6" && is_mapped && client "$B6"
}

# A change of the setting does not affect existing listeners and connections.
changes() {
	local n status=0
	mappings y y && server -a "$B4" -P && is_mapped || return 1
	spawn client a timeout 60 rping -c -a "$B4" -V -C 100000000
	wait_for 10 connected || status=1
	for ((n = 0; n < 5; n++)); do
		mappings n n && mappings y y || status=1
	done
	rping_client on_a timeout 20 rping -c -v -a "$B4" -C 1 -V || status=1
	spawn_running client && is_mapped || status=1
	spawn_stop client
	server_ends
	return $status
}

# The port mapper does not know that namespace: nobody else's port there is touched.
elsewhere() {
	local status=1
	ip netns add c && ip -n c link set lo up && ip -n c link add c0 type dummy &&
		ip -n c addr add 10.79.0.1/24 dev c0 && ip -n c link set c0 up &&
		nsenter --net=/run/netns/c rdma link add kiwc type "$KIW_LINK_TYPE" netdev c0 &&
		echo y >/sys/class/infiniband/kiwc/policy/port_mapper || return 1
	nsenter --net=/run/netns/c timeout 50 rping -s -a 10.79.0.1 >"$T_DIR/c.log" 2>&1 &
	wait_for 10 c_listens && status=0
	kill $!
	wait $! 2>/dev/null
	rdma link delete kiwc
	ip netns del c
	return $status
}

c_listens() { nsenter --net=/run/netns/c ss -Hltn | grep -q "10.79.0.1:$PORT "; }

# 10.77.0.99, a node that takes datagrams only, and does not exist
NOBODY=00:00:fc:f3:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:63

# hung SETTING VALUE [CMD...]: writes a setting of kip0 while its work item waits for a port mapper
# that hangs; the kernel does so for 10 seconds. CMD runs while the write waits for the work item. It
# must not need the RTNL, for which it would wait, too.
hung() {
	local status=0 writer
	pkill -STOP -x iwpmd
	{ on_a ip link set kip0 up && wait_for 5 asks_mapper &&
		on_a ip neigh replace "$KB4" dev kip0 nud permanent lladdr "$NOBODY"; } ||
		{ echo "the mapper is not asked"; status=1; }
	kip_set a "$1" "$2" &
	writer=$!
	wait_for 5 is_waiting $writer || { echo "the setting does not wait"; status=1; }
	"${@:3}" || status=1
	is_waiting $writer || { echo "the setting did not wait for long"; status=1; }
	pkill -CONT -x iwpmd
	wait $writer || status=1
	[ "$(kip_get a "$1")" = "$2" ] || { kip_get a "$1"; status=1; }
	wait_for 15 listens_ip || { kernel_listens a; status=1; }
	return $status
}

# kiwarp_ip changes the depth when its work item, which posts receives and tells their number, has
# stopped. A packet that is sent while the interface restarts leaves afterwards.
settings_wait() {
	local status=0 before
	mappings n n && load_module kiwarp_ip && kip_add a &&
		on_a sysctl -qw net.ipv6.conf.kip0.disable_ipv6=1 &&
		on_a ip addr add "$KA4/24" dev kip0 || return 1
	hung rx_depth 7 has_depth 32 || { echo "depth"; status=1; }
	on_a ip link set kip0 down || status=1
	before=$(kip_count a tx_datagrams)
	hung group 239.77.0.9 sends_one || { echo "group"; status=1; }
	wait_for 5 has_sent "$before" || { echo "packet: $before"; status=1; }
	kip_counts a
	on_a ip link del kip0
	unload_module kiwarp_ip && return $status
}

asks_mapper() { cat /proc/[0-9]*/stat 2>/dev/null | grep -q 'kworker[^)]*+kiwarp_ip) D'; }
# Of a process or of its only child; while it tries to get the RTNL, it does not sleep.
is_waiting() { cat "/proc/$1/stat" "/proc/$(pgrep -P "$1")/stat" 2>/dev/null | grep -q ') D '; }
has_depth() { kip_get a rx_depth && [ "$(kip_get a rx_depth)" = "$1" ]; }
sends_one() { ! on_a ping -q -c 1 -W 0.2 "$KB4"; }
has_sent() { [ "$(kip_count a tx_datagrams)" -gt "$1" ]; }
listens_ip() { kernel_listens a | grep -q "$A4:64755\$"; }

is_kiwarp || bail "this is about a policy of kiwarp"
ulp_up || bail "no two hosts"
t_run "policy off, no port mapper" as_ever
t_run "policy on, no port mapper" wanted_in_vain
is_pair || t_run "a false port mapper" false_mapper
t_run "the port mapper begins" mapper_up
t_run "policy off, with a port mapper" not_wanted
t_run "a port that TCP has is served, by another name" served
t_run "the policy is on at one end only" by_one
t_run "all addresses" any_address
t_run "IPv6" version6
t_run "the policy changes while there are connections" changes
is_pair || t_run "a device in another namespace keeps its ports" elsewhere
is_pair || t_run "settings of kiwarp_ip, with a port mapper that hangs" settings_wait
t_run "the port mapper ends" mapper_down
t_run "policy on, after the port mapper" wanted_in_vain
ulp_down
done_testing
