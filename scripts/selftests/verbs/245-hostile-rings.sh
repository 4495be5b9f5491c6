#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a process rewrites its rings during traffic; its neighbour notices nothing
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml-smp
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# Seconds
ATTACK=${KIW_SOAK:-3}

counter() { rdma statistic show link "$1/1" | grep -o "$2 [0-9]*" | cut -d' ' -f2; }

# invalid: entries so far that were refused, on both hosts
invalid() { echo "$(counter "$DEV_A" wr_invalid) $(counter "$DEV_B" wr_invalid)"; }

# refused COUNT_A COUNT_B
refused() {
	local a b a2 b2
	read -r a b <<<"$(invalid)"
	"$PROGRAMS/hostile" "$KIW_LINK_TYPE" refused || return 1
	read -r a2 b2 <<<"$(invalid)"
	[ "$((a2 - a)) $((b2 - b))" = "$1 $2" ] ||
		{ echo "wr_invalid: $a and $b, then $a2 and $b2"; return 1; }
}

# The data of another connection is verified during all of this.
attack() {
	local status=0
	"$PROGRAMS/sweep" 97 "$ATTACK" >"$T_DIR/neighbour.log" 2>&1 &
	"$PROGRAMS/hostile" "$KIW_LINK_TYPE" "$ATTACK" || status=1
	wait "$!" || { cat "$T_DIR/neighbour.log"; status=1; }
	return "$status"
}

killed() {
	local pid
	"$PROGRAMS/hostile" "$KIW_LINK_TYPE" 1000 >/dev/null 2>&1 &
	pid=$!
	_pause 0."$1"
	kill -9 "$pid"
	wait "$pid"
	[ $? = 137 ]
}

nothing_left() { ! rdma resource show qp | grep -q ' lqpn '; }

# all TYPE REFUSED_A REFUSED_B: devices of a link type, and how many entries are refused
all() {
	local KIW_LINK_TYPE=$1
	rdma_up || bail "no devices"
	t_run "$1: what makes no sense is refused" refused "$2" "$3"
	t_run "$1: everything rewritten at random" attack
	for tenths in "${kills[@]}"; do t_run "$1: killed after 0.$tenths s" killed "$tenths"; done
	t_run "$1: all queue pairs are gone" wait_for 10 nothing_left
	t_run "$1: the device still works" rping_to b $B4 -C 10 -S 4000
	rdma_down
}

{ load_kiwarp && topo_up 1500; } || bail "no two hosts"
kills=(1 3 5)
case $KIW_KERNEL in 6.12 | smp-*) kills=(4) ;; esac
all kiwarp 37 6
all kiwarp-ext 64 6
topo_down
t_run "unload" unload_kiwarp
done_testing
