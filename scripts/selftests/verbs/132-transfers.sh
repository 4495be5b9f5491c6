#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: verified transfers with each kind of FPDU, lent and copied, with and without loss
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: none
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

# For each of the cases below
SECONDS_EACH=$(((${KIW_SOAK:-18} + 17) / 18))
PROGRAMS_AT_A_TIME=4
TRANSFERS=0

# transfers: of several programs at a time, because one waits for TCP while packets are lost
transfers() {
	local i status=0
	local -a pids=()
	for ((i = 0; i < PROGRAMS_AT_A_TIME; i++)); do
		KIW_SEED=$((KIW_SEED + i)) "$PROGRAMS/sweep" long "$SECONDS_EACH" $((7801 + i)) \
			>"$T_DIR/sweep.$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || status=1; done
	cat "$T_DIR"/sweep.*
	TRANSFERS=$((TRANSFERS + $(awk '/operations$/ { n += $1 } END { print n + 0 }' "$T_DIR"/sweep.*)))
	return "$status"
}

lossy() {
	local host status=0
	for host in a b; do "on_$host" tc qdisc add dev "$NETDEV" root netem loss 0.1% || return 1; done
	transfers || status=1
	for host in a b; do "on_$host" tc qdisc del dev "$NETDEV" root || return 1; done
	return "$status"
}

policies() {
	local policy
	for policy in "$@"; do set_policy "${policy%=*}" "${policy#*=}" || return 1; done
}

# with POLICY=VALUE...
with() {
	policies "$@" || bail "no policies $*"
	t_run "$*" transfers
	t_run "$*, over loss" lossy
}

lent() { cat "/sys/class/infiniband/$DEV_A/ports/1/zero_copy/lent_bytes"; }
has_lent() { [ "$(lent)" -gt 0 ]; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for fpdu in segment large; do
	for crc in y n; do
		for markers in y n; do
			with "fpdu=$fpdu" "crc=$crc" "markers=$markers"
		done
	done
done
t_run "nothing was lent" _not has_lent
with fpdu=large crc=n markers=n zero_copy=on
t_run "pages were lent" has_lent
diag "$TRANSFERS transfers"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
