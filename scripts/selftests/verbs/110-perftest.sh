#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: perftest: write, read, send; bandwidth and latency; events, QPs, SRQ
# TIMEOUT: 90
# CHECK-KERNELS: uml-debug
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

to_b() {
	local tool=$1
	shift
	perf b "$tool" "$B4" "$@"
}

{ load_kiwarp && topo_up 9000 && rdma_up; } || bail "no two hosts"
for op in write read send; do
	t_run "ib_${op}_bw 64K" to_b "ib_${op}_bw" 100 -s 65536
	t_run "ib_${op}_lat" to_b "ib_${op}_lat" 20 -s 64
done
t_run "ib_write_bw of odd size" to_b ib_write_bw 100 -s 4097
# Not ib_send_bw: over iWARP it waits for a credit of the receiver before the last SEND,
# which is the only signaled one, and with -e it may wait for that one's event instead.
t_run "ib_read_bw, events" to_b ib_read_bw 100 -s 16384 -e
t_run "ib_send_lat, events" to_b ib_send_lat 20 -s 100 -e
t_run "ib_write_bw, 4 QPs" to_b ib_write_bw 50 -s 32768 -q 4
t_run "ib_read_bw, 4 QPs" to_b ib_read_bw 50 -s 32768 -q 4
t_run "ib_send_bw, SRQ" to_b ib_send_bw 100 -s 8192 --use-srq
t_run "ib_send_bw, both directions" to_b ib_send_bw 100 -s 16384 -b
t_run "ib_write_lat, inline" to_b ib_write_lat 20 -s 64 -I 64
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
