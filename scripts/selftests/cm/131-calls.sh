#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: random calls of uverbs and rdma_cm do what a model predicts
# TIMEOUT: 120
# KERNELS: uml uml-debug
# SOAK-ONLY: uml uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/fuzz.sh
. "$SELFTESTS/fuzz.sh"

RUNS=15

# A process that ends while it connects waits for the end of the startup.
hurry() { echo "$((500 * ${KIW_SLOW:-1}))" >"/sys/module/${KIW_LINK_TYPE%-ext}/parameters/startup_ms"; }

{ load_kiwarp && hurry && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "calls" guided calls "$RUNS" 1 -- "$DEV_A" "$A4" "$DEV_B" "$B4" "$KIW_LINK_TYPE"
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
figures
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
