# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: perftest and qperf, with their own defects worked around.

# unrefused HOST CMD...: runs CMD while HOST refuses no connection. The client of perftest -R makes a
# second connection, and nothing keeps it from doing so before the server listens again; qperf's
# server names a port before it listens there. Usually the client would be refused, and perftest's
# would crash. Here its SYN is lost instead, and TCP repeats it a second later. What is dropped is
# RST, ACK with sequence number 0: the answer to a SYN for a port without a listener. A CMD that
# leaves a client behind has to wait until it transfers data.
unrefused() {
	local host=$1 status
	shift
	on "$host" nft "add table inet unrefused
		add chain inet unrefused out { type filter hook output priority 0; }
		add rule inet unrefused out tcp sequence 0 tcp flags & (fin | syn | rst | ack) == rst | ack drop" ||
		return
	"$@"
	status=$?
	on "$host" nft delete table inet unrefused && return "$status"
}

# perf SERVER TOOL ADDRESS ITERATIONS OPTIONS...
perf() {
	local server=$1 tool=$2 addr=$3 count=$4 status
	shift 4
	unrefused "$server" perftest_to "$server" "$tool" "$addr" -n "$count" "$@" \
		>"$T_DIR/perf.out" 2>&1
	status=$?
	[ "$status" = 0 ] || { cat "$T_DIR/perf.out"; return "$status"; }
	_perf_reported "$count" "$@"
}

# _perf_reported ITERATIONS OPTIONS...: perftest ends with status 0 even when it did
# nothing, so its report has to have the line with that number of iterations.
_perf_reported() {
	local total=$1
	case " $* " in *" -q 4 "*) total=$((4 * $1)) ;; esac
	awk -v n="$total" '$1 ~ /^[0-9]+$/ && $2 == n { found = 1 } END { exit !found }' \
		"$T_DIR/perf.out" && return
	echo "no line of $total iterations"
	cat "$T_DIR/perf.out"
	return 1
}

# qperf_to_b TEST...: qperf's server on b; each test from a. "failed" in a result is a failure, too.
qperf_to_b() {
	local t status=0
	spawn qperf b timeout $((60 * ${KIW_SLOW:-1} + ${KIW_SOAK:-0})) qperf
	wait_listen b 19765 || { spawn_log qperf; spawn_stop qperf; return 1; }
	for t in "$@"; do
		unrefused b on_a timeout 60 qperf "$B4" -t 1 -cm1 "$t" >"$T_DIR/qperf" 2>&1 ||
			status=1
		cat "$T_DIR/qperf"
		grep -q -E '(bw|latency|msg_rate) *=' "$T_DIR/qperf" || status=1
	done
	spawn_stop qperf
	return "$status"
}
