#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a CPU goes offline and returns under transfers, when the module loads and unloads
# TIMEOUT: 120
# SMP: 2
# KERNELS: 6.12
# EXCEPT: uml-smp
# CHECK-KERNELS: 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

ONLINE=/sys/devices/system/cpu/cpu1/online
SECONDS_EACH=$((2 * ${KIW_SLOW:-1}))
[ -z "${KIW_SOAK:-}" ] || SECONDS_EACH=$KIW_SOAK
CONNECTIONS=30

online() { echo 1 >"$ONLINE"; }
offline() { echo 0 >"$ONLINE"; }

# on_cpu1 CMD: runs it there. When the CPU goes, the kernel moves it to the other one.
on_cpu1() { taskset -c 1 "$@"; }

sent() { counter "$DEV_A" tx_writes; }

# sent_more COUNT PID: more Writes were sent, or the process has ended.
sent_more() { [ "$(sent)" -gt "$1" ] || ! runs "$2"; }

# once CMD...: runs CMD while CPU 1 goes and returns; counts in rounds. The CPU stays for some
# transfers, and stays away for some.
once() {
	local pid
	"$@" &
	pid=$!
	while runs "$pid"; do
		wait_for 5 sent_more $(($(sent) + 50)) "$pid"
		offline || break
		wait_for 5 sent_more $(($(sent) + 50)) "$pid"
		online || break
		rounds=$((rounds + 1))
	done
	online
	wait "$pid"
}

# under CMD...: the CPU goes and returns at least twice, for which a slow machine needs more than one
# run of CMD.
under() {
	local rounds=0 status=0 left=10
	while [ "$status" = 0 ] && [ "$rounds" -lt 2 ] && [ "$left" -gt 0 ]; do
		once "$@" || status=1
		left=$((left - 1))
	done
	echo "CPU 1 was offline $rounds times"
	[ "$status" = 0 ] && [ "$rounds" -ge 2 ]
}

transfers() { KIW_SEED=$RANDOM on_cpu1 "$PROGRAMS/sweep" long "$SECONDS_EACH"; }
storm() { KIW_SEED=$RANDOM on_cpu1 "$PROGRAMS/storm" "$CONNECTIONS" "$SECONDS_EACH"; }

# What it has counted still counts.
counts() {
	local before after
	transfers || return 1
	before=$(sent)
	offline || return 1
	after=$(sent)
	online
	echo "Writes before: $before, after: $after"
	[ "$after" = "$before" ]
}

# Its pool of buffers is in use then.
unload_without() { transfers && offline && rdma_down && unload_kiwarp; }

load_without() {
	load_kiwarp && rdma_up && KIW_SEED=$RANDOM "$PROGRAMS/sweep" long 1 && online && transfers
}

[ -w "$ONLINE" ] || bail "CPU 1 cannot go offline"
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
RANDOM=$KIW_SEED
t_run "verified transfers" under transfers
t_run "random verbs" under storm
t_run "counters without the CPU" counts
t_run "unload without the CPU" unload_without
t_run "load without the CPU" load_without
online
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
