#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a process abuses its system calls: responses, mappings, numbers, limits
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

abuse() { KIW_SECONDS=${KIW_SOAK:-2} "$PROGRAMS/abuse" "$1"; }

nothing_left() { ! rdma resource show | grep -q -E '(pd|qp|mr|cm_id|ctx|srq) [1-9]'; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "responses that cannot be delivered" abuse responses
t_run "mappings" abuse mappings
t_run "mappings against destruction" abuse mmap-destroy
t_run "numbers of QPs that come and go" abuse numbers
t_run "accept against destroy" abuse accept-destroy
t_run "locked memory" abuse memlock
t_run "a process with many uverbs files names its QPs" abuse files
t_run "nothing is left" wait_for 10 nothing_left
t_run "the device still works" rping_to b $B4 -C 10 -S 4000
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
