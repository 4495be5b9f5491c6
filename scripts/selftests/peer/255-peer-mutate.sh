#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: valid sessions with changed segments, beside a connection that behaves
# TIMEOUT: 120
# KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"

# KIW_SOAK: for so many seconds
SESSIONS=40
SLOW=${KIW_SLOW:-1}

target() {
	spawn target a python3 "$SELFTESTS/mutated.py" "$DEV_A" "$A4" 7174
	wait_listen a 7174
}

# Meanwhile, a valid connection keeps working, and no memory without access rights changes.
mutate() {
	spawn mutate b env "PYTHONPATH=$SELFTESTS/../.." python3 -m peer mutate "$A4" \
		--seed "$KIW_SEED" --sessions "$SESSIONS" --seconds "${KIW_SOAK:-0}" \
		--timeout $((20 * SLOW))
	good_beside mutate $((60 * SLOW + ${KIW_SOAK:-0})) 20
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
t_run "a connection that behaves" start_good
t_run "a server" target
t_run "sessions with changed segments" mutate
diag "$(spawn_log mutate)"
t_run "the connection that behaves goes on" end_good
t_run "the server can end" end_target
t_run "nothing is left" peer_left_nothing
t_run "nor on the other host" nothing_left "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
