#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: perftest: write, read, send; bandwidth and latency; events, QPs, SRQ
# TIMEOUT: 90
# TOPOLOGY: any
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"

# perf TOOL ITERATIONS OPTIONS...: perftest ends with status 0 even when it did
# nothing, so its report has to have the line with that number of iterations.
perf() {
	local tool=$1 count=$2 log=$T_DIR/perf.out total=$2
	shift 2
	case " $* " in *" -q 4 "*) total=$((4 * count)) ;; esac
	perftest_to b "$tool" "$B4" -n "$count" "$@" >"$log" 2>&1 ||
		{ cat "$log"; return 1; }
	awk -v n="$total" '$1 ~ /^[0-9]+$/ && $2 == n { found = 1 } END { exit !found }' "$log" ||
		{ echo "no line of $total iterations"; cat "$log"; return 1; }
}

{ load_kiwarp && topo_up 9000 && rdma_up; } || bail "no two hosts"
for op in write read send; do
	t_run "ib_${op}_bw 64K" perf "ib_${op}_bw" 100 -s 65536
	t_run "ib_${op}_lat" perf "ib_${op}_lat" 20 -s 64
done
t_run "ib_write_bw of odd size" perf ib_write_bw 100 -s 4097
t_run "ib_send_bw, events" perf ib_send_bw 100 -s 16384 -e
t_run "ib_read_bw, events" perf ib_read_bw 100 -s 16384 -e
t_run "ib_send_lat, events" perf ib_send_lat 20 -s 100 -e
t_run "ib_write_bw, 4 QPs" perf ib_write_bw 50 -s 32768 -q 4
t_run "ib_read_bw, 4 QPs" perf ib_read_bw 50 -s 32768 -q 4
t_run "ib_send_bw, SRQ" perf ib_send_bw 100 -s 8192 --use-srq
t_run "ib_send_bw, both directions" perf ib_send_bw 100 -s 16384 -b
t_run "ib_write_lat, inline" perf ib_write_lat 20 -s 64 -I 64
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
