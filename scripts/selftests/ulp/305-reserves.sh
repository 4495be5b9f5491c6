#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: who may use the kernel's reserves of memory, and that no work waits for I/O
# TIMEOUT: 120
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-reserves
. "$SELFTESTS/rc-reserves"
# shellcheck source=scripts/selftests/lib/rc-ip
. "$SELFTESTS/rc-ip"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

KTEST=/sys/kernel/debug/kiwarp_ktest

# run NAME: a case of the kernel consumer, from its connection to its end
run() {
	echo "8 9 $1" >"$KTEST/run" && return
	cat "$KTEST/log"
	return 1
}

pings() { grep -c '^ping data' "$T_DIR/ping-a.log"; }

begin_processes() {
	spawn ping-b b timeout 100 rping -s -a "$B4"
	spawn bulk-b b timeout 100 ib_write_bw -R -F -d $DEV_B -D 90
	wait_listen b 7174 && wait_listen b 18515 || return 1
	unrefused b have_begun
}

have_begun() {
	spawn ping-a a timeout 100 stdbuf -oL rping -c -v -a "$B4"
	spawn bulk-a a timeout 100 ib_write_bw -R -F -d $DEV_A -D 90 "$B4"
	wait_for 10 _counts_beyond pings 10 && wait_for 10 _counts_beyond writes 10
}

end_processes() {
	local p
	for p in ping-a bulk-a ping-b bulk-b; do spawn_stop $p; done
}

writes() { on_a cat "/sys/class/infiniband/$DEV_A/ports/1/hw_counters/tx_writes"; }
_reset() { [ "$(reserve a resets)" -gt "$1" ]; }

# The peer receives nothing. A stream that was cut in the middle of an FPDU is reset by its QP;
# another one is reset after a while, because its FIN is not acknowledged.
resets() {
	local before status=0
	before=$(reserve a resets)
	starve b || return 1
	spawn_stop bulk-a
	spawn_stop ping-a
	wait_for 5 _reset "$before" && wait_for 10 _reset $((before + 1)) || status=1
	feed b
	echo "$(($(reserve a resets) - before)) resets, $(reserve a resets_io) with leave for I/O"
	[ "$(reserve a resets_io)" = 0 ] && return $status
}

_is_done() { grep -q 'done' "$T_DIR/callers.log"; }

# A consumer rejects callers that do not close, of which only one may linger: it resets the others.
rejects() {
	local before status=1 limit=/sys/class/infiniband/$DEV_B/policy/max_lingering
	on_b sh -c "echo 1 >$limit" || return 1
	spawn server b env PYTHONDONTWRITEBYTECODE=1 python3 "$SELFTESTS/unanswered.py" \
		reject "$DEV_B" "$B4" 7175
	wait_listen b 7175 || return 1
	before=$(reserve b resets) IO=$(reserve b resets_io)
	mkfifo "$T_DIR/hold"
	# shellcheck disable=SC2016 # for the inner shell
	spawn callers a sh -c 'PYTHONDONTWRITEBYTECODE=1 exec python3 "$@" 0<>"$0"' "$T_DIR/hold" \
		"$SELFTESTS/refused.py" "$B4" 7175 5 plain
	wait_for 10 _is_done && wait_for 10 _reset $((before + 3)) && status=0
	IO=$(($(reserve b resets_io) - IO))
	echo "$(($(reserve b resets) - before)) resets, $IO with leave for I/O"
	spawn_stop callers
	spawn_stop server
	[ "$IO" = 0 ] && return "$status"
}

# Nobody else in this guest lends pages to TCP.
unshared() {
	echo "$(reserve a paged) segments with fragments, $(reserve a shared) may be modified"
	[ "$(reserve a paged)" -gt 100 ] && [ "$(reserve a shared)" = 0 ]
}

nobody() { [ "$(reserve a memalloc)" = 0 ]; }

# Its packets are anybody's.
_has_stream() { [ "$(kip_streams a)" -gt 0 ]; }
interface() {
	ip_up && on_a ping -q -c 3 -i 0.1 -W 5 -s 8000 "$KB4" && wait_for 5 _has_stream && nobody && ip_down
}

if ! load_ip || ! topo_up || ! rdma_up || ! modprobe kiwarp_ktest || ! modprobe kiwarp_reserves; then
	bail "no two hosts"
fi
exec 8</run/netns/a 9</run/netns/b
t_run "nobody may use the reserves" nobody
t_run "the connections of an interface may not" interface
t_run "a kernel consumer connects and works at the min watermark" starved a run data-softirq
t_run "processes" begin_processes
t_run "a process does not use the reserves" starves a pings
t_run "streams are reset without I/O" resets
end_processes
t_run "rejected streams are reset without I/O" rejects
exec 8<&- 9<&-
rdma_down
t_run "nobody may use the reserves any more" nobody
t_run "the stack does not have to copy what is sent" unshared
modprobe -r kiwarp_ktest kiwarp_reserves
topo_down
t_run "unload" unload_ip
done_testing
