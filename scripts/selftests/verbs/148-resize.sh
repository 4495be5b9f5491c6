#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: several threads replace the ring of one queue at the same time, during traffic
# TIMEOUT: 180
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

KIW_LINK_TYPE=kiwarp-ext

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for case in cq srq limit armed; do
	t_run "$case" "$PROGRAMS/resize" "$case"
done
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
