#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: queues at their limits: overruns, arming, sizes, states, flushing
# TIMEOUT: 100
# KERNELS: uml uml-debug 6.12 uml-kcsan
# CHECK-KERNELS: uml-smp
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
verbs_cases overrun_receives overrun_sends overrun_by_flush overrun_by_fault overrun_shared \
	overrun_fenced overrun_destroyed destroyed_with_completions arm_race arm_late advertised \
	srq_modify srq_full srq_flush srq_partial reconnect states_starting states_closing \
	close_deadline half_closed half_closed_read states_ended masks counts_refusals counts_udata \
	counts_blocked counts_failures
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
