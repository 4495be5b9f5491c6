#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: memory windows of processes: a matrix of their rights, and their ends under traffic
# TIMEOUT: 240
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

KIW_LINK_TYPE=kiwarp-ext
TRACING=/sys/kernel/tracing

# Bindings are counted, and so are invalidations.
counted() {
	local bound inval
	bound=$(counter "$DEV_B" fast_registered) && inval=$(counter "$DEV_B" fast_invalidated) || return 1
	"$PROGRAMS/windows" busy && [ "$(counter "$DEV_B" fast_registered)" = $((bound + 4)) ] &&
		[ "$(counter "$DEV_B" fast_invalidated)" = $((inval + 1)) ]
}

# Each event of a window is traced. A window of type 1 that is bound to nothing is unbound.
traced() {
	local what
	echo >"$TRACING/trace" && echo 1 >"$TRACING/events/kiwarp/kiw_mr/enable" &&
		echo 1 >"$TRACING/tracing_on" && "$PROGRAMS/windows" matrix || return 1
	echo 0 >"$TRACING/tracing_on"
	echo 0 >"$TRACING/events/kiwarp/kiw_mr/enable"
	for what in allocated bound unbound invalidated 'invalidated by the peer' deregistered; do
		grep -q "kiw_mr: dev=$DEV_B stag=0x[0-9a-f]* $what base=0x" "$TRACING/trace" ||
			{ echo "no trace event: $what"; return 1; }
	done
	# All windows of this program are of 64 bytes, with all remote rights and nothing else.
	! grep -E "stag=0x[0-9a-f]* (bound|unbound|invalidated( by the peer)?) base=" \
		"$TRACING/trace" | grep -v 'length=64 access=0xe$'
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
for case in limits matrix rights binds inval local edges reconnected busy anew many exit; do
	t_run "$case" "$PROGRAMS/windows" "$case"
done
t_run "counters" counted
t_run "trace events" traced
t_run "ends under traffic" "$PROGRAMS/windows" race "${KIW_SOAK:-5}"
t_run "no window is left" none_left
t_run "none on kiwarp" none_on_kiwarp
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
