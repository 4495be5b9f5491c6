#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: random verbs on hundreds of queue pairs, each completion checked; random kill
# TIMEOUT: 80
# KERNELS: uml uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml-smp
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

CONNECTIONS=120
SECONDS_EACH=3
SECONDS_SLOW=1
KILLS=3
case $KIW_KERNEL in
6.12 | smp-*) CONNECTIONS=30 KILLS=1 SECONDS_EACH=2 SECONDS_SLOW= ;;
uml-debug) CONNECTIONS=50 KILLS=1 SECONDS_EACH=2 ;;
esac
# Most of a soak in one life, the rest in short ones
if [ -n "${KIW_SOAK:-}" ]; then
	SECONDS_EACH=$KIW_SOAK SECONDS_SLOW=$((KIW_SOAK / 4)) KILLS=$((KIW_SOAK / 20))
	CONNECTIONS=120
fi

# storm CONNECTIONS SECONDS
storm() { KIW_SEED=$RANDOM "$PROGRAMS/storm" "$@"; }

# Messages in segments of their own wait for their turn, so they are in flight for a while.
slow_link() {
	local host
	for host in a b; do
		tc -n "$host" qdisc add dev "$NETDEV" root netem rate 30mbit limit 10000
		on "$host" ethtool -K "$NETDEV" tso off gso off gro off
	done
}

# is_in_progress: it has made most of its connections.
is_in_progress() { [ "$(rdma resource show qp | grep -c ' lqpn ')" -gt "$CONNECTIONS" ]; }

killed() {
	local pid
	KIW_SEED=$RANDOM "$PROGRAMS/storm" "$CONNECTIONS" 1000 &
	pid=$!
	wait_for 20 is_in_progress
	_pause 0."$((RANDOM % 5))"
	kill -9 "$pid"
	wait "$pid"
	[ $? = 137 ] && wait_for 20 nothing_left
}

nothing_left() { ! rdma resource show qp | grep -q ' lqpn '; }

kills() {
	local i
	for ((i = 0; i < KILLS; i++)); do killed || { echo "round $i"; return 1; }; done
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
RANDOM=$KIW_SEED
t_run "random verbs" storm "$CONNECTIONS" "$SECONDS_EACH"
t_run "random kill" kills
if [ -n "$SECONDS_SLOW" ]; then
	slow_link
	t_run "a slow link: messages are cut in the middle" storm 8 "$SECONDS_SLOW"
fi
t_run "the device still works" rping_to b "$B4" -C 5 -S 4000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
