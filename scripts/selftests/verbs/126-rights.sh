#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: no access right is wider than granted
# TIMEOUT: 60
# KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "rights of regions and queue pairs" "$PROGRAMS/rights"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
