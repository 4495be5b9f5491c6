#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Runs in the guest of count.sh: does a fixed number of operations of each kind. Prints where the
# module is in memory and, before each measurement, its name.

# shellcheck source=scripts/selftests/lib/rc
. /host/selftests/lib/rc

# While the guest waits for its disk, its clock jumps from timer to timer, so a minute may pass at
# once. Allow for that: the host limits the time instead.
export KIW_SLOW=1000

# count NAME OPS ARGS...
count() {
	local name=$1 ops=$2
	shift 2
	echo "ROW $ops $name"
	"/host/job/bench" "$@" "ops=$ops" || exit 1
}

with_crc() {
	echo "$1" >/sys/module/kiwarp/parameters/crc && rdma_up
}

{ load_kiwarp && topo_up 1500; } || exit 1
grep '^kiwarp ' /proc/modules
with_crc Y || exit 1
for op in write read send; do
	count "$op 64 KiB, crc on" 192 $op size=65536
done
rdma_down
echo Y >/sys/module/kiwarp/parameters/markers && with_crc Y || exit 1
for op in write send; do
	count "$op 64 KiB, markers" 192 $op size=65536
done
rdma_down
echo N >/sys/module/kiwarp/parameters/markers && with_crc N || exit 1
for op in write read send; do
	count "$op 64 KiB, crc off" 192 $op size=65536
	count "$op 64 KiB x16, crc off" 192 $op size=65536 batch=16
	count "$op 64 B x16, crc off" 4096 $op size=64 batch=16
done
