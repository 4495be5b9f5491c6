#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Runs on host a of lent.sh: writes to host b with each setting. Prints where the module is in
# memory and, for each pair of counts, the setting and the number of Writes.

# shellcheck source=scripts/selftests/lib/rc
. /host/selftests/lib/rc
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# The emulated guests are slow, and so may be the machine.
export KIW_SLOW=20

# few and many Writes: the difference is what Writes cost
WRITES="200 1200"
T_DIR=$(mktemp -d)

lent_bytes() { cat "/sys/class/infiniband/$DEV_A/ports/1/zero_copy/lent_bytes"; }

# count SETTING WRITES
count() {
	local before
	before=$(lent_bytes)
	/host/job/mark
	perf b ib_write_bw "$B4" "$2" -s 65536 || exit 1
	/host/job/mark
	echo "ROW $1 $2 $(($(lent_bytes) - before))"
}

{ load_kiwarp && topo_up 1500 && kiwarp_crc n; } || exit 1
grep '^kiwarp ' /proc/modules
ethtool -k "$NETDEV" | grep -E '^(tx-checksumming|scatter-gather|tcp-segmentation-offload):'
for round in 1 2 3; do
	for setting in off on auto; do
		echo "$setting" >/sys/module/kiwarp/parameters/zero_copy && rdma_up || exit 1
		for writes in $WRITES; do
			count "$setting" "$writes"
		done
		rdma_down
	done
	echo "round $round"
done
