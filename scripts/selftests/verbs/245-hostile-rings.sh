#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a process rewrites its rings during traffic; its neighbour notices nothing
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.12 smp-kcsan
# CHECK-KERNELS: uml-debug 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# Seconds
ATTACK=${KIW_SOAK:-3}

counter() { rdma statistic show link "$1/1" | grep -o "$2 [0-9]*" | cut -d' ' -f2; }

refused() {
	local before after
	before=$(counter "$DEV_A" wr_invalid)
	"$PROGRAMS/hostile" refused || return 1
	after=$(counter "$DEV_A" wr_invalid)
	[ $((after - before)) = 31 ] || { echo "wr_invalid: $before, then $after"; return 1; }
}

# The data of another connection is verified during all of this.
attack() {
	local status=0
	"$PROGRAMS/sweep" 97 "$ATTACK" >"$T_DIR/neighbour.log" 2>&1 &
	"$PROGRAMS/hostile" "$ATTACK" || status=1
	wait "$!" || { cat "$T_DIR/neighbour.log"; status=1; }
	return "$status"
}

killed() {
	local pid
	"$PROGRAMS/hostile" 1000 >/dev/null 2>&1 &
	pid=$!
	_pause 0."$1"
	kill -9 "$pid"
	wait "$pid"
	[ $? = 137 ]
}

nothing_left() { ! rdma resource show qp | grep -q ' lqpn '; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "what makes no sense is refused" refused
t_run "everything rewritten at random" attack
kills=(1 3 5)
case $KIW_KERNEL in 6.12 | smp-*) kills=(4) ;; esac
for tenths in "${kills[@]}"; do t_run "killed after 0.$tenths s" killed "$tenths"; done
t_run "all queue pairs are gone" wait_for 10 nothing_left
t_run "the device is of use" rping_to b $B4 -C 10 -S 4000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
