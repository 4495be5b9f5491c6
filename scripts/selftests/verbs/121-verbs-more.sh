#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: verbs of which rdma-core's tests have none for iWARP
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug 6.12
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

CASES=(full_receives bad_sends shared_cq fork invalidate_refused regions_refused)
HUGE=/proc/sys/vm/nr_hugepages

# In a guest that has run for long they have to be found.
has_huge_pages() {
	echo 3 >/proc/sys/vm/drop_caches && echo 1 >/proc/sys/vm/compact_memory &&
		echo 4 >"$HUGE" && [ "$(cat "$HUGE")" = 4 ]
}

huge_pages() {
	wait_for 20 has_huge_pages || bail "no huge pages"
	verbs_cases huge_pages
	echo 0 >$HUGE
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
verbs_cases "${CASES[@]}"
if [ -e $HUGE ]; then huge_pages; else skip "huge_pages" "this kernel has no huge pages"; fi
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
