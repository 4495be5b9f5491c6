#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: programs are killed, and lose their device, in every state of a connection
# TIMEOUT: 120
# CHECK-KERNELS: uml-debug
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/life.sh
. "$SELFTESTS/life.sh"

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
life_cases long
rdma_down
echo "$((2000 * KIW_SLOW))" >"/sys/module/${KIW_LINK_TYPE%-ext}/parameters/startup_ms"
rdma_up || bail "no devices"
life_cases short
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
