#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: each Terminate that a peer can send, and the work requests that it ends
# TIMEOUT: 120
# KERNELS: uml uml-debug
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

terminates() {
	# -P: peer is the package here, not the script beside it.
	on_a env "PYTHONPATH=$SELFTESTS/../..:$SELFTESTS" python3 -P "$SELFTESTS/terminated.py" \
		"$DEV_A" "$B4" /run/netns/b
}

{ load_kiwarp && topo_up 1500 && policy default rtr=write,read,send; } || bail "no two hosts"
told terminates
all_told "$(tail -n 1 "$T_DIR/case")"
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
