#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: large segments: MTU 9000 and 65535, where an FPDU is as long as one can be
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

# with_mtu MTU: long messages in both directions, and Reads.
with_mtu() {
	topo_up "$1" && rdma_up || return 1
	perf b ib_write_bw "$B4" 60 -s 1000000 && perf a ib_send_bw "$A4" 60 -s 1000000 &&
		perf b ib_read_bw "$B4" 60 -s 1000000 && rping_to b "$B4" -C 20 -S 65535 || return 1
	rdma_down
	topo_down
}

load_kiwarp || bail "no module"
t_run "MTU 9000" with_mtu 9000
t_run "MTU 65535" with_mtu 65535
t_run "unload" unload_kiwarp
done_testing
