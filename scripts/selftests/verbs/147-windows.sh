#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: memory windows of processes: a matrix of their rights, and their ends under traffic
# TIMEOUT: 180
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

KIW_LINK_TYPE=kiwarp-ext

# Bindings are counted, and so are invalidations.
counted() {
	local bound inval
	bound=$(counter "$DEV_B" fast_registered) && inval=$(counter "$DEV_B" fast_invalidated) || return 1
	"$PROGRAMS/windows" busy && [ "$(counter "$DEV_B" fast_registered)" = $((bound + 4)) ] &&
		[ "$(counter "$DEV_B" fast_invalidated)" = $((inval + 1)) ]
}

# What processes leave behind is deallocated when they end.
none_left() {
	local created
	created=$(counter "$DEV_B" mr_created)
	[ "$created" -gt 1000 ] && [ "$(counter "$DEV_B" mr_destroyed)" = "$created" ]
}

# On the other link type there are none.
none_on_kiwarp() {
	rdma_down && KIW_LINK_TYPE=kiwarp rdma_up || return 1
	"$PROGRAMS/windows" limits 2>&1 | tee /dev/stderr | grep -q 'not so: attr.max_mw'
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for case in limits matrix rights binds inval local busy many exit; do
	t_run "$case" "$PROGRAMS/windows" "$case"
done
t_run "counters" counted
t_run "ends under traffic" "$PROGRAMS/windows" race "${KIW_SOAK:-5}"
t_run "no window is left" none_left
t_run "none on kiwarp" none_on_kiwarp
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
