#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a window is bound to a region while its registration fails
# TIMEOUT: 60
# KERNELS: 6.1 6.12
# EXCEPT: smp-debug uml-smp
# CHECK-KERNELS: 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

KIW_LINK_TYPE=kiwarp-ext

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "a region that is not there yet" "$PROGRAMS/windows" abandoned
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
