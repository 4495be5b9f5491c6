#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: pages lent to TCP: completions wait for acknowledgments, and every end takes them back
# TIMEOUT: 300
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# DMESG-ALLOW: traps: ib_
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

no_crc() { set_policy crc n && set_policy fpdu large; }

# netem WHAT...: in both directions
netem() {
	on_a tc qdisc replace dev "$NETDEV" root netem "$@" &&
		on_b tc qdisc replace dev "$NETDEV" root netem "$@"
}

no_netem() { on_a tc qdisc del dev "$NETDEV" root && on_b tc qdisc del dev "$NETDEV" root; }

# offload TSO GRO: whether host a leaves the cutting of segments to the interface, and whether that of
# host b joins them again
offload() {
	on_a ethtool -K "$NETDEV" tso "$1" && on_b ethtool -K "$(netdev_of b)" gro "$2"
}

# deaf: nothing arrives at host a any more that the programs of writes() send to it.
deaf() { on_a nft "add table inet kiw; add chain inet kiw in { type filter hook input priority 0; };
	add rule inet kiw in tcp sport 18515 drop"; }

hearing() { on_a nft delete table inet kiw; }

lent_bytes() { cat "/sys/class/infiniband/$DEV_A/ports/1/zero_copy/lent_bytes"; }

has_lent() { [ "$(lent_bytes)" -gt "$1" ]; }

# held: what host a sends stays there.
held() { on_a tc qdisc replace dev "$NETDEV" root netem delay 250s; }

free() { on_a tc qdisc del dev "$NETDEV" root; }

# writes deaf|held: programs that write from host a to b until they are stopped. Then nothing arrives
# at host a, or nothing leaves it, any more.
writes() {
	local before
	before=$(lent_bytes)
	spawn server b timeout 100 ib_write_bw -R -F -d "$DEV_B" -s 65536 -D 90 &&
		wait_listen b 18515 || return 1
	LENT=0
	unrefused b lends "$before" && "$1" && wait_for 20 is_stuck && return
	tail -n 20 "$T_DIR/server.log" "$T_DIR/client.log"
	return 1
}

# lends N: begins to write, until more than N bytes were lent.
lends() {
	spawn client a timeout 100 ib_write_bw -R -F -d "$DEV_A" -s 65536 -D 90 "$B4"
	wait_for 20 has_lent "$1"
}

# is_stuck: nothing was sent since the last call.
is_stuck() {
	local last=$LENT
	LENT=$(lent_bytes)
	[ "$LENT" = "$last" ]
}

# ends deaf|held
ends() {
	if [ "$1" = held ]; then free; else hearing; fi
	spawn_stop server
	spawn_stop client
	wait_for 20 _not is_listening b 18515
}

client() { pgrep -P "$(cat "$T_DIR/client.pid")" || cat "$T_DIR/client.pid"; }

# The process has no time to do anything.
killed() {
	local pid
	writes "$1" || return 1
	pid=$(client)
	kill -9 "$pid" && wait_gone 30 runs "$pid" && wait_for 10 no_qps
}

no_qps() { ! rdma resource show qp link "$DEV_A/1" | grep -q 'state RTS'; }

# The device goes, and the process still has it open.
deleted() { writes "$1" && timeout 30 rdma link delete "$DEV_A" && rdma_add a; }

# The module has to wait for packets that this host keeps, and says so. With lockdep, it cannot even
# be told to go: the packets keep their sockets, and each of these keeps the module.
unloaded() {
	local pid ended
	writes held || return 1
	pid=$(client)
	spawn_stop server
	kill -9 "$pid" && wait_gone 30 runs "$pid" && rdma_down || return 1
	if [ -e /proc/lockdep_chains ]; then
		_not modprobe -r "${KIW_LINK_TYPE%-ext}" && free && unload_kiwarp
		return
	fi
	unload_kiwarp &
	pid=$!
	wait_for 40 waits_for_packets && runs "$pid"
	ended=$?
	free
	wait "$pid" && return "$ended"
}

waits_for_packets() { dmesg_since | grep -q 'kiwarp: waiting until this host has freed packets'; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "no CRC, large FPDUs" no_crc
t_run "zero_copy=on" set_policy zero_copy on
verbs_between a b "$B4" "" zc_rewritten zc_unaligned zc_waits zc_small zc_probing zc_dereg zc_error \
	zc_destroy zc_kept zc_fails zc_peer_dies zc_close zc_captured zc_rerouted \
	zc_unsignaled zc_read zc_both
verbs_between a a "$A4" "own address: " zc_off
while read -r what; do
	read -ra words <<<"$what"
	t_run "$what" netem "${words[@]}"
	verbs_between a b "$B4" "$what: " zc_rewritten
	t_run "$what ends" no_netem
done <<-END
	delay 1ms loss 1%
	delay 2ms reorder 25% 50%
END
if ! is_pair; then
	t_run "segments are cut by the stack" offload off on
	verbs_between a b "$B4" "cut: " zc_rewritten
	t_run "segments are cut by the interface" offload on off
fi
for how in deaf held; do
	t_run "a process is killed, $how" killed "$how"
	ends "$how"
	t_run "a device is deleted, $how" deleted "$how"
	ends "$how"
	t_run "no CRC, large FPDUs" no_crc
	t_run "zero_copy=on" set_policy zero_copy on
done
t_run "zero_copy=off" set_policy zero_copy off
verbs_between a b "$B4" "" zc_off
if ! is_pair; then
	t_run "zero_copy=auto" set_policy zero_copy auto
	verbs_between a b "$B4" "" zc_auto
fi
t_run "zero_copy=on" set_policy zero_copy on
t_run "the module is unloaded" unloaded
topo_down
done_testing
