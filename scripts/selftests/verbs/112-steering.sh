#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: CPUs: segments arrive where the program posts, work items run where they are queued
# TIMEOUT: 120
# KERNELS: 6.12
# CHECK-KERNELS: 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

TRACING=/sys/kernel/tracing
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
	spawn perf b timeout "$(at_most 15)" taskset -c 1 ib_send_lat -R -F -d "$DEV_B" -n "$ROUNDS"
	wait_listen b 18515 || return 1
	on_a timeout "$(at_most 20)" taskset -c 0 ib_send_lat -R -F -d "$DEV_A" -n "$ROUNDS" "$B4" &&
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

yields() { echo $(($(counter "$DEV_A" run_yields) + $(counter "$DEV_B" run_yields))); }
yielded() { [ "$(yields)" -gt "$1" ]; }

# busy NICE NAME...: a task on CPU 1 that never sleeps for each name
busy() {
	local name nice=$1
	shift
	for name in "$@"; do
		spawn "$name" a nice -n "$nice" taskset -c 1 bash -c 'while :; do :; done'
	done
}

# writes CPU: a stream of Writes between two programs on this CPU
writes() {
	local before seconds=$((60 * ${KIW_SLOW:-1}))
	before=$(counter "$DEV_A" tx_writes)
	spawn server b taskset -c "$1" ib_write_bw -R -F -d "$DEV_B" -s 65536 -D "$seconds"
	wait_listen b 18515 || return 1
	spawn client a taskset -c "$1" ib_write_bw -R -F -d "$DEV_A" -s 65536 -D "$seconds" "$B4"
	wait_for 20 written $((before + 100))
}

written() { [ "$(counter "$DEV_A" tx_writes)" -gt "$1" ]; }

# traced FUNCTION: prints "same" or "other" for each time that this work item ran: was it queued on
# the CPU on which it ran?
traced() {
	awk -v name="$1" '{ cpu = ""; for (i = 1; i <= NF; i++) if ($i ~ /^\[[0-9]+\]$/) cpu = $i }
		$0 ~ "workqueue_queue_work: .*function=" name && match($0, /struct=[0-9a-f]+/) {
			queued[substr($0, RSTART + 7, RLENGTH - 7)] = cpu }
		$0 ~ "workqueue_execute_start: .*function " name && match($0, /struct [0-9a-f]+/) {
			item = substr($0, RSTART + 7, RLENGTH - 7)
			if (item in queued) print queued[item] == cpu ? "same" : "other"
			delete queued[item] }' "$TRACING/trace"
}

ran() { traced "$1" | grep -c "$2"; }

# An item that is queued while it runs on another CPU runs there again, which is rare.
stays() {
	local same other
	unrefused b writes 1 && busy 0 busy1 && wait_for 60 yielded $(($(yields) + 50)) || return 1
	same=$(ran qp_engine_work same)
	other=$(ran qp_engine_work other)
	echo "work items on the CPU that queued them: $same, on another: $other"
	[ "$same" -gt 25 ] && [ "$other" -lt $((same / 10 + 1)) ]
}

# The programs are on CPU 0, and what they send arrives on CPU 1.
packets_to() {
	local host
	for host in a b; do
		ip netns exec $host sh -c "echo $1 >/sys/class/net/$NETDEV/queues/rx-0/rps_cpus" ||
			return 1
	done
}

moved_on() { [ "$(ran qp_takeover other)" -gt 5 ]; }

# There the engine work item hardly gets the CPU. After 4 ticks, the other CPU takes over.
moves() {
	unrefused b writes 0 && packets_to 2 && busy -20 busy1 busy2 busy3 && wait_for 40 moved_on &&
		return
	echo "engine work items: $(ran qp_engine_work .), after 4 ticks, elsewhere: $(ran qp_takeover other)"
	return 1
}

# with_trace CMD: the processes of the crowded CPU end first.
with_trace() {
	local process status=0
	echo >"$TRACING/trace" && echo 1 >"$TRACING/tracing_on" &&
		echo 1 >"$TRACING/events/workqueue/enable" || return 1
	"$@" || status=1
	echo 0 >"$TRACING/events/workqueue/enable"
	for process in busy1 busy2 busy3 client server; do
		[ ! -e "$T_DIR/$process.pid" ] || spawn_stop "$process"
		rm -f "$T_DIR/$process.pid"
	done
	return "$status"
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
t_run "work items stay on their CPU" with_trace stays
t_run "another CPU takes over" with_trace moves
packets_to 0
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
