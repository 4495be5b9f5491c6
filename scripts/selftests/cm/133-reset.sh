#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: queue pairs are reset and aborted by threads while they are connected
# TIMEOUT: 60
# KERNELS: uml uml-debug uml-kcsan
# CHECK-KERNELS: uml-smp
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

SECONDS_HERE=${KIW_SOAK:-2}

resets() {
	"$PROGRAMS/reset" "$SECONDS_HERE" >"$T_DIR/reset" || return 1
	# Some connections came about, though most did not
	diag "$(cat "$T_DIR/reset")" >&3
	grep -q '^[1-9][0-9]* connections, [1-9]' "$T_DIR/reset"
}

nothing_left() { ! rdma resource show qp | grep -q ' lqpn '; }

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
exec 3>&1
t_run "reset against connect and abort" resets
t_run "nothing is left" wait_for 20 nothing_left
t_run "the devices are of use" rping_to b "$B4" -C 3
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
