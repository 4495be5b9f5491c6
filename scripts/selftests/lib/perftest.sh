# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: perftest, with its own defects worked around. A test that uses it has
# "# DMESG-ALLOW: traps: ib_" at its top.

# perf SERVER TOOL ADDRESS ITERATIONS OPTIONS...
# With -R, perftest's client makes a second connection, and nothing keeps it from doing so
# before the server listens again: then it is refused and crashes. It may try again.
perf() {
	local server=$1 tool=$2 addr=$3 count=$4 log=$T_DIR/perf.out try
	shift 4
	for try in 1 2 3; do
		if perftest_to "$server" "$tool" "$addr" -n "$count" "$@" >"$log" 2>&1; then
			_perf_reported "$count" "$@"
			return
		fi
		cat "$log"
		grep -qE 'RDMA_CM_EVENT_REJECTED; error: -111|ERRNO: Connection refused' "$log" ||
			break
		echo "try $try: refused"
	done
	return 1
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
