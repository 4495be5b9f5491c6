#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the link type kiwarp-ext: immediates, atomics and extended queues of processes
# TIMEOUT: 120
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

KIW_LINK_TYPE=kiwarp-ext

to_b() {
	local tool=$1
	shift
	perf b "$tool" "$B4" "$@"
}

# Each atomic operation of libfabric, between two programs
libfabric() {
	spawn fabric b "$PROGRAMS/fabric" server "$B4" 7480
	{ wait_listen b 7480 10 && on_a "$PROGRAMS/fabric" client "$B4" 7480; } ||
		{ spawn_log fabric; spawn_stop fabric; return 1; }
	spawn_wait fabric 10 || { spawn_log fabric; return 1; }
}

# full CASE: without what it does to the network, should it fail
full() {
	"$PROGRAMS/full" "$1" && return
	tc -n b qdisc del dev "$NETDEV" root
	return 1
}

# The first device loads the module that has its type.
autoloaded() {
	unload_kiwarp && { ! grep -q '^kiwarp ' /proc/modules; } && rdma_up &&
		grep '^kiwarp ' /proc/modules
}

# The netdev has one device, of whichever type.
one_device() {
	refused 'File exists' '' on_a rdma link add other type kiwarp netdev "$NETDEV"
}

{ load_kiwarp && topo_up 9000; } || bail "no two hosts"
t_run "autoload" autoloaded
t_run "one device on a netdev" one_device
for case in limits immediate atomic policy sum builder poller events resize resize-srq; do
	t_run "$case" "$PROGRAMS/ext" "$case"
done
for case in signaled unsignaled flushed closed reset; do
	t_run "a full send queue, $case" full "$case"
done
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	t_run "ib_atomic_bw, $kind" to_b ib_atomic_bw 100 -A "$kind"
	t_run "ib_atomic_lat, $kind" to_b ib_atomic_lat 20 -A "$kind"
done
t_run "ib_write_bw" to_b ib_write_bw 100 -s 65536
# The perftest of Debian 12 does not have this option yet.
if ! grep -q bookworm /etc/os-release; then
	t_run "ib_write_bw, with immediate" to_b ib_write_bw 100 -s 65536 --write_with_imm
	t_run "ib_write_bw, with immediate, 4 QPs" to_b ib_write_bw 50 -s 4096 -q 4 --write_with_imm
	t_run "ib_write_bw, with immediate, both directions" \
		to_b ib_write_bw 100 -s 4096 -b --write_with_imm
	t_run "ib_write_lat, with immediate" to_b ib_write_lat 20 -s 64 --write_with_imm
fi
t_run "ib_read_bw" to_b ib_read_bw 100 -s 65536
t_run "ib_send_bw" to_b ib_send_bw 100 -s 65536
for what in rc_rdma_write_bw rc_rdma_write_lat rc_compare_swap_mr rc_fetch_add_mr; do
	t_run "qperf $what" qperf_to_b "$what"
done
t_run "libfabric's atomics" libfabric
t_run "rping" rping_to b $B4 -C 10 -S 4000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
