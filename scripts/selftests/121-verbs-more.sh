#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: verbs of which rdma-core's tests have none for iWARP
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"
# shellcheck source=scripts/selftests/verbs.sh
. "$SELFTESTS/verbs.sh"

CASES=(full_receives bad_sends shared_cq fork invalidate_refused regions_refused)
HUGE=/proc/sys/vm/nr_hugepages

# User Mode Linux has no huge pages; a guest that has run for long may have none left.
has_huge_pages() {
	[ -e $HUGE ] && echo 4 >$HUGE && [ "$(cat $HUGE)" = 4 ]
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
! has_huge_pages || CASES+=(huge_pages)
verbs_cases "${CASES[@]}"
[ ! -e $HUGE ] || echo 0 >$HUGE
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
