#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: devices, netdevs and the module come and go under those who use them
# TIMEOUT: 60
# KERNELS: uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml-debug 6.12
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/life.sh
. "$SELFTESTS/life.sh"

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
life_cases churn
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
