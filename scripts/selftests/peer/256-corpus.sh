#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the inputs that the guided fuzzer has kept, on the wire and in the rings
# TIMEOUT: 120
# KERNELS: uml uml-debug
# SOAK-ONLY: uml uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"
# shellcheck source=scripts/selftests/lib/fuzz.sh
. "$SELFTESTS/fuzz.sh"

# KIW_SOAK: for so many seconds together (scripts/fuzz/guided.sh)
RUNS=20

target() {
	spawn target a python3 "$SELFTESTS/mutated.py" "$DEV_A" "$A4" 7174
	wait_listen a 7174
}

wire() {
	local status=0
	guided wire "$RUNS" 3 nsenter --net=/run/netns/b -- "$A4" $((2 * ${KIW_SLOW:-1})) || status=1
	spawn_running target || { spawn_log target; status=1; }
	return "$status"
}

# rings TYPE
rings() {
	local KIW_LINK_TYPE=$1
	rdma_up && guided "rings-$1" "$RUNS" 3 -- "$PROGRAMS/hostile" "$1"
}

{ load_kiwarp && topo_up 1500 && policy default; } || bail "no two hosts"
t_run "a server" target
t_run "on the wire" wire
t_run "the server can end" end_target
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
for type in kiwarp kiwarp-ext; do
	t_run "in the rings of $type" rings "$type"
	t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
	rdma_down
done
figures
topo_down
t_run "unload" unload_kiwarp
done_testing
