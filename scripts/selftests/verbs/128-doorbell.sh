#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: doorbells: many entries on the way are sent together, and none is left or late
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml uml-smp
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

ROUNDS=400

# late WAY ROUNDS: doorbells whose entry waited for others meanwhile, in LATE
late() {
	local before
	before=$(counter "$DEV_A" doorbells_late)
	"$PROGRAMS/doorbell" "$@" || return 1
	LATE=$(($(counter "$DEV_A" doorbells_late) - before))
	echo "$LATE of $*"
}

# A slow kernel may take longer than what counts as posting one after the other.
stream() {
	late stream "$ROUNDS" || return 1
	[ "$KIW_KERNEL" != uml ] || [ "$LATE" -gt $((ROUNDS / 4)) ]
}

# Each post rings there, and ends the delay of the one before. How many are delayed depends on how
# fast the process rings.
stream_ext() { late stream "$ROUNDS" && [ "$LATE" -gt 0 ]; }

alone() { late alone "$ROUNDS" && [ "$LATE" = 0 ]; }

lazy() { late lazy "$ROUNDS" && [ "$LATE" -lt $((ROUNDS / 8)) ]; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "many on the way" stream
t_run "one on the way" alone
t_run "completions stay where they are" lazy
rdma_down
KIW_LINK_TYPE=kiwarp-ext rdma_up || bail "no kiwarp-ext"
t_run "many on the way, on kiwarp-ext" stream_ext
t_run "one on the way, on kiwarp-ext" alone
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
