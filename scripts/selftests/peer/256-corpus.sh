#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the inputs that the guided fuzzer has kept, on the wire and in the rings
# TIMEOUT: 120
# KERNELS: uml uml-debug
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/fuzz.sh
. "$SELFTESTS/fuzz.sh"

# KIW_SOAK: for so many seconds together (scripts/fuzz/guided.sh)
RUNS=10

# on_target TARGET
on_target() {
	local KIW_LINK_TYPE=${1#*-}
	rdma_up || return 1
	case $1 in
	wire-*)
		guided "$1" "$RUNS" nsenter --net=/run/netns/b -- \
			"$DEV_A" "$A4" $((2 * ${KIW_SLOW:-1}))
		;;
	*) guided "$1" "$RUNS" -- "$PROGRAMS/hostile" "$KIW_LINK_TYPE" ;;
	esac
}

targets wire-kiwarp wire-kiwarp-ext rings-kiwarp rings-kiwarp-ext
{ load_kiwarp && topo_up 1500; } || bail "no two hosts"
run_targets
topo_down
t_run "unload" unload_kiwarp
done_testing
