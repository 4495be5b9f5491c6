#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: Receive Flow Steering: segments arrive on the CPU where the program posts
# TIMEOUT: 120
# KERNELS: 6.12
# CHECK-KERNELS: 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

ENTRIES=/proc/sys/net/core/rps_sock_flow_entries
ROUNDS=500

# steering FLOWS: for so many flows; 0 turns it off.
steering() {
	local host
	echo "$1" >$ENTRIES || return 1
	for host in a b; do
		# This mounts the namespace's /sys.
		ip netns exec $host sh -c \
			"echo $1 >/sys/class/net/$NETDEV/queues/rx-0/rps_flow_cnt" || return 1
	done
}

# moved CPU: how often packets were passed on to this CPU
moved() {
	local line
	line=$(sed -n "$(($1 + 1))p" /proc/net/softnet_stat)
	# shellcheck disable=SC2086 # words
	set -- $line
	echo $((16#${10}))
}

# turns: a ping-pong between a program on each CPU. MOVED0, MOVED1: how often packets were passed on
turns() {
	local before0 before1
	before0=$(moved 0)
	before1=$(moved 1)
	unrefused b ping_pong || return 1
	MOVED0=$(($(moved 0) - before0))
	MOVED1=$(($(moved 1) - before1))
	echo "passed on to CPU 0: $MOVED0, to CPU 1: $MOVED1"
}

ping_pong() {
	spawn perf b timeout 50 taskset -c 1 ib_send_lat -R -F -d "$DEV_B" -n "$ROUNDS"
	wait_listen b 18515 || return 1
	on_a timeout 80 taskset -c 0 ib_send_lat -R -F -d "$DEV_A" -n "$ROUNDS" "$B4" &&
		spawn_wait perf 20
}

# Unless it is on, packets stay where they were sent.
off() {
	steering 0 && turns && [ "$MOVED0" -lt $((ROUNDS / 10)) ] &&
		[ "$MOVED1" -lt $((ROUNDS / 10)) ]
}

# Each message and its answer
on_other_cpu() {
	steering 1024 && turns && [ "$MOVED0" -gt $((ROUNDS / 2)) ] &&
		[ "$MOVED1" -gt $((ROUNDS / 2)) ]
}

if [ "$(nproc)" = 1 ]; then
	skip "steering" "one CPU"
	done_testing
	exit
fi
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "off" off
t_run "on" on_other_cpu
steering 0
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
