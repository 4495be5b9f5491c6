#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: Messages of a congested sender share segments where FPDUs are large, and only there
# TIMEOUT: 60
# KERNELS: uml 6.1
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

COUNT=1000

# sent: the segments that a has sent
# shellcheck disable=SC2016 # awk's
sent() { on_a awk '/^Tcp:/ && $2 ~ /^[0-9]/ { print $12 }' /proc/net/snmp; }

# writes FPDU: COUNT small Writes over a slow link. BATCHES and SEGMENTS: what the driver passed to
# TCP, and what TCP sent.
writes() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$1" >"/sys/class/infiniband/$dev/policy/fpdu" || return 1
	done
	BATCHES=$(counter "$DEV_A" tx_batches)
	SEGMENTS=$(sent)
	perf b ib_write_bw "$B4" "$COUNT" -s 64 -t 32 -b || return 1
	BATCHES=$(($(counter "$DEV_A" tx_batches) - BATCHES))
	SEGMENTS=$(($(sent) - SEGMENTS))
	echo "fpdu=$1: $BATCHES batches in $SEGMENTS segments"
	[ "$BATCHES" -ge $((COUNT / 10)) ]
}

# RFC 5044 5.1: an FPDU begins a segment, so a batch does.
apart() { writes segment && [ "$SEGMENTS" -ge "$BATCHES" ]; }

shared() { writes auto && [ "$SEGMENTS" -le $((BATCHES / 2)) ]; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
# So that packets are still in the interface's queue when more is posted
t_run "a slow link" on_a tc qdisc add dev eth0 root tbf rate 1mbit burst 2kb limit 1mb
t_run "segment: batches begin segments" apart
t_run "auto: batches share segments" shared
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
