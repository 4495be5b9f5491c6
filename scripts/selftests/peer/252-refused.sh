#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: callers that are refused and never close take a bounded number of sockets
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# SOAK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

# How many streams may linger, and how many peers connect
if [ -n "${KIW_SOAK:-}" ]; then
	LIMIT=1024 CALLERS=20000
else
	LIMIT=20 CALLERS=200
fi
# Sockets that are half-open, of the listener, or being released
MORE=40

sockets() {
	echo $(($(counter "$DEV_A" sock_created) - $(counter "$DEV_A" sock_destroyed)))
}

# What lingers is released after five seconds, so look while the peers come.
look() { on_a ss -Htnm state fin-wait-2 sport = :7174 >>"$T_DIR/lingering"; }

# flood: runs the peers, and counts their sockets on the other host. MOST: the maximum.
flood() {
	local now
	MOST=0
	mkfifo "$T_DIR/hold" 2>/dev/null
	exec {HOLD}<>"$T_DIR/hold"
	on_b env PYTHONDONTWRITEBYTECODE=1 python3 "$SELFTESTS/refused.py" "$A4" 7174 "$CALLERS" \
		<"$T_DIR/hold" >"$T_DIR/callers.log" 2>&1 {HOLD}>&- &
	CALLING=$!
	until grep -q 'done' "$T_DIR/callers.log"; do
		now=$(sockets)
		[ "$now" -le "$MOST" ] || MOST=$now
		runs "$CALLING" || return 1
		look
		_pause
	done
	look
	now=$(sockets)
	[ "$now" -le "$MOST" ] || MOST=$now
}

bounded() {
	local before status
	before=$(counter "$DEV_A" linger_limited)
	flood || { cat "$T_DIR/callers.log"; return 1; }
	LIMITED=$(($(counter "$DEV_A" linger_limited) - before))
	echo "$MOST sockets, $LIMITED reset"
	[ "$MOST" -le $((LIMIT + MORE)) ] && [ "$LIMITED" -ge $((CALLERS - LIMIT - MORE)) ]
}

# What a peer sends out of order stays in the buffer, which shrinks right after the FIN: of each peer,
# the last look counts.
small_buffers() {
	look
	awk '/^[0-9]/ { peer = $4 } /rb/ { last[peer] = $0 } END { for (p in last) print last[p] }' \
		"$T_DIR/lingering" >"$T_DIR/buffers"
	grep -c rb "$T_DIR/buffers" && ! grep -v -E ',rb2[0-9]{3},' "$T_DIR/buffers"
}

# Other clients are served meanwhile.
serves() { rping_client on_b timeout 60 rping -c -v -a "$A4" -C 2 -V; }

all_rejected() {
	exec {HOLD}>&-
	rm "$T_DIR/hold"
	wait_gone 10 runs "$CALLING" || return 1
	cat "$T_DIR/callers.log"
	[ "$(sed -n 's/ rejected//p' "$T_DIR/callers.log")" = "$CALLERS" ]
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
echo "$LIMIT" >"/sys/class/infiniband/$DEV_A/policy/max_lingering"
spawn server a timeout 300 rping -s -a "$A4" -P
wait_listen a 7174 || bail "nobody listens"
t_run "$CALLERS refused callers that do not close" bounded
diag "$MOST sockets at most, $LIMITED reset"
t_run "the buffers of those that linger are small" small_buffers
t_run "a caller that behaves" serves
t_run "each could read why" all_rejected
spawn_stop server
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
