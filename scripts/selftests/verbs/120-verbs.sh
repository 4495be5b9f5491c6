#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: verbs with all data verified: SEND, WRITE, READ, order, errors, SRQ, events
# TIMEOUT: 100
# CHECK-KERNELS: uml-debug
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

CASES=(send_sizes write_sizes read_sizes send_back server_first multi_sge read_into_local
	inline unsignaled fence in_order many_reads flush orderly_close closed_first arm_next
	arm_solicited srq write_wrong_rkey write_out_of_bounds write_to_read_only
	read_without_access read_out_of_bounds too_long no_receive local_errors local_errors_before iova
	rereg rereg_writable dereg dereg_midway dereg_under_writes regions_in_turn
	changing_memory read_without_depth states limits)

# The stream of dereg_midway never pauses: with KASAN, softirqs need more than a tick to process
# what arrives in a tick. If the engines were not left to a work item, nothing else would run.
gave_way() { [ $(($(counter "$DEV_A" run_yields) + $(counter "$DEV_B" run_yields))) -gt 0 ]; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
verbs_cases "${CASES[@]}"
case $KIW_KERNEL in
uml-debug | uml-smp) t_run "softirqs gave way to tasks" gave_way ;;
esac
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
