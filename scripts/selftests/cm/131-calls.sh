#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: random calls of uverbs and rdma_cm do what a model predicts
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

# A process that ends while it connects waits for the end of the startup.
hurry() { echo "$((1500 * ${KIW_SLOW:-1}))" >/sys/module/kiwarp/parameters/startup_ms; }

# on_target TARGET
on_target() {
	local KIW_LINK_TYPE=${1#*-}
	rdma_up && guided "$1" "$RUNS" -- "$DEV_A" "$A4" "$DEV_B" "$B4" "$KIW_LINK_TYPE"
}

targets calls-kiwarp calls-kiwarp-ext
{ load_kiwarp && hurry && topo_up 1500; } || bail "no two hosts"
run_targets
topo_down
t_run "unload" unload_kiwarp
done_testing
