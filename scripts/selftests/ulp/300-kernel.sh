#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a kernel consumer with both ends in its hands (ktest/)
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml-smp 6.12 newest
# DMESG-ALLOW: kiw[ab]: leaked 1000003
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

KTEST=/sys/kernel/debug/kiwarp_ktest
TRACING=/sys/kernel/tracing

# run NAME
run() {
	echo "8 9 $1" >"$KTEST/run" && return
	cat "$KTEST/log"
	return 1
}

# The one event of the overrun has a buffer of its own: later cases fill the other one.
OVERRUNS=$TRACING/instances/kiw_overruns

trace() {
	[ -d "$OVERRUNS" ] || mkdir "$OVERRUNS" || return
	echo "$1" >"$TRACING/events/kiwarp/kiw_mr/enable" &&
		echo "$1" >"$OVERRUNS/events/kiwarp/kiw_cq_overrun/enable" &&
		echo "$1" >"$TRACING/tracing_on"
}

# Checks the trace events of what earlier cases have done to memory and to a completion queue
traced() {
	local what
	trace 0
	for what in allocated 'registered by a work request' invalidated 'invalidated by the peer' \
		deregistered; do
		grep -q "kiw_mr: dev=kiw[ab] stag=0x[0-9a-f]* $what base=0x" "$TRACING/trace" ||
			{ echo "no trace event: $what"; return 1; }
	done
	grep -q 'kiw_cq_overrun: dev=kiw[ab] id=[1-9]' "$OVERRUNS/trace" ||
		{ echo "no trace event of the overrun"; return 1; }
	rmdir "$OVERRUNS"
}

# Checks the counters of fast registration and of RFC 7306.
counted() {
	local name
	for name in fast_registered fast_invalidated rx_invalidates wc_mem_op tx_immediates \
		rx_immediates tx_atomic_requests rx_atomic_requests tx_atomic_responses \
		rx_atomic_responses rx_align; do
		grep -q -v '^0$' /sys/class/infiniband/kiw[ab]/ports/1/hw_counters/"$name" ||
			{ echo "$name stays 0"; return 1; }
	done
}

# rfc7306 y|n HOST...
rfc7306() {
	local host value=$1
	shift
	for host; do
		echo "$value" >"/sys/class/infiniband/$(dev_of "$host")/policy/rfc7306" || return
	done
}

# without NAME HOST...: a case, while the policy of these hosts is off
without() {
	local status name=$1
	shift
	rfc7306 n "$@" && run "$name"
	status=$?
	rfc7306 y "$@" && return "$status"
}

lent_bytes() {
	awk '{ sum += $1 } END { print sum }' /sys/class/infiniband/kiw[ab]/ports/1/zero_copy/lent_bytes
}

# lending NAME: a case, while pages may be lent
lending() {
	local status
	set_policy crc n && set_policy fpdu large && set_policy zero_copy on && run "$1"
	status=$?
	set_policy crc y && set_policy fpdu auto && set_policy zero_copy off && return "$status"
}

# lent NAME: a case, while the consumer's pages are lent
lent() {
	local before
	before=$(lent_bytes)
	lending "$1" || return
	[ "$(lent_bytes)" -gt "$before" ] || { echo "nothing was lent"; return 1; }
}

# not_lent NAME: a case of memory that cannot be
not_lent() {
	local before
	before=$(lent_bytes)
	lending "$1" || return
	[ "$(lent_bytes)" = "$before" ] || { echo "pages were lent"; return 1; }
}

# two_cpus NAME: a case in which one CPU waits for another
two_cpus() {
	[ "$(nproc)" -gt 1 ] || { skip_this "one CPU"; return; }
	run "$1"
}

# in_segments NAME: such a case, while no FPDU is larger than a TCP segment
in_segments() {
	local status
	set_policy fpdu segment && two_cpus "$1"
	status=$?
	set_policy fpdu auto && return "$status"
}

qp_is_up() { rdma resource show qp link "$(dev_of "$1")/1" | grep -q 'state RTS'; }

# removal a|b: the device is deleted while a connection has traffic, and added again.
removal() {
	local status
	run removal &
	wait_for 10 qp_is_up "$1" && rdma_del "$1"
	status=$?
	wait $! && [ "$status" = 0 ] && rdma_add "$1" && wait_for 5 rdma_is_active "$1"
}

# lost a|b: a device that seems to have lost objects of all kinds says so at its end.
lost() {
	local dev what
	dev=$(dev_of "$1")
	log_mark
	run unbalanced && rdma_del "$1" || return
	for what in 'queue pairs' 'completion queues' 'receive queues' 'regions or windows' \
		endpoints sockets 'protection domains'; do
		log_says "$dev: leaked 1000003 $what" >"$T_DIR/log" ||
			{ cat "$T_DIR/log"; echo "nothing of lost $what"; return 1; }
	done
	rdma_add "$1" && wait_for 5 rdma_is_active "$1"
}

if ! load_kiwarp || ! topo_up || ! rdma_up || ! modprobe kiwarp_ktest soak="${KIW_SOAK:-0}"; then
	bail "no two hosts"
fi
trace 1
exec 8</run/netns/a 9</run/netns/b
while read -r name; do
	t_run "$name" run "$name"
done <"$KTEST/cases"
t_run "trace events" traced
t_run "counters" counted
t_run "pages are lent" lent data-softirq
t_run "pages of many SGEs are lent" lent many-sges
t_run "octets of lent pages are counted" lent offset-counts
t_run "pages of other memory are not" not_lent other-sources
t_run "without RFC 7306" without ext-off a b
t_run "a peer without RFC 7306" without ext-unknown b
t_run "memory in use is invalidated" two_cpus inv-used
t_run "the peer invalidates memory in use" two_cpus inv-used-peer
t_run "memory is invalidated in the middle of a Write" in_segments inv-mid-run
t_run "a QP ends while it is connected" two_cpus accept-ended
t_run "a work request completes while the list is posted" two_cpus wr-reused
t_run "a queue gets another ring while a receive is posted" two_cpus srq-moved
for host in a b; do
	t_run "$(dev_of $host) is removed" removal $host
done
t_run "objects that seem to be lost" lost a
exec 8<&- 9<&-
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
